"""The endpoints that only read: models, endpoints, providers, key, credits, generation, and the simulator's books."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

from eyas.sim.billing import Purse
from eyas.sim.books import Books, Entry
from eyas.sim.chunks import envelope
from eyas.sim.providers import Provider
from eyas.sim.reply import Reply, as_json, body
from eyas.sim.scenarios import Scenario
from eyas.types import NANO

PREFIX = "/api/v1"


class Account:
    """Answers GET requests from the scenario, the books and the purse."""

    def __init__(self, scenario: Scenario, books: Books, purse: Purse, now: Callable[[], float]) -> None:
        self._scenario = scenario
        self._books = books
        self._purse = purse
        self._now = now

    def get(self, target: str, key: str | None) -> Reply:
        """The reply to a GET; `key` is None without a valid one."""
        url = urlsplit(target)
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        path = url.path.removeprefix(PREFIX)
        model = f"/models/{self._scenario.model}"
        if url.path == "/sim/state":
            return as_json(self._books.state())
        if url.path == "/sim/books":
            return as_json(self._books.to_json(ids=query.get("ids") == "1"))
        plain: dict[str, Callable[[], Any]] = {
            "/models": lambda: [self._model()],
            model: self._model,
            f"/model/{self._scenario.model}": self._model,
            f"{model}/endpoints": lambda: self._endpoints(key),
            "/providers": self._providers,
        }
        if url.path.startswith(PREFIX) and path in plain:
            return as_json({"data": plain[path]()})
        return self._private(path if url.path.startswith(PREFIX) else "", key, query)

    def _private(self, path: str, key: str | None, query: dict[str, str]) -> Reply:
        if path not in ("/key", "/auth/key", "/credits", "/generation"):
            return body(404, envelope(404, "Not Found"))
        if key is None:
            return body(401, envelope(401, "Missing Authentication header"))
        if path == "/credits":
            return self._credits(key)
        if path == "/generation":
            return self._generation(query.get("id", ""), key)
        return as_json({"data": self._key(key)})

    def _model(self) -> dict[str, Any]:
        scenario, first = self._scenario, self._scenario.providers[0]
        return {
            "id": scenario.model,
            "canonical_slug": scenario.permaslug,
            "name": "MoonshotAI: Kimi K2.5",
            "created": 1769472000,
            "context_length": first.context,
            "hugging_face_id": "moonshotai/Kimi-K2.5",
            "architecture": _ARCHITECTURE,
            "pricing": _pricing(first),
            "top_provider": {"context_length": first.context, "max_completion_tokens": first.max_output,
                             "is_moderated": False},
            "per_request_limits": None,
            "supported_parameters": list(first.parameters),
            "default_parameters": None,
            "reasoning": {"mandatory": False, "supported_efforts": None, "default_enabled": True},
            "links": {"details": f"{PREFIX}/models/{scenario.permaslug}/endpoints"},
        }  # fmt: skip

    def _endpoints(self, key: str | None) -> dict[str, Any]:
        model = self._model()
        head = {name: model[name] for name in ("id", "name", "created", "architecture")}
        return {**head, "description": "Simulated.", "endpoints": [
            _endpoint(provider, self._scenario, measured=key is not None) for provider in self._scenario.providers
        ]}  # fmt: skip

    def _providers(self) -> list[dict[str, Any]]:
        names = {provider.name: provider.slug for provider in self._scenario.providers}
        empty = {"privacy_policy_url": None, "terms_of_service_url": None, "status_page_url": None}
        return [{"name": name, "slug": slug, **empty} for name, slug in names.items()]

    def _key(self, key: str) -> dict[str, Any]:
        used = self._purse.spent_by_key.get(key, 0) / NANO
        left = self._purse.remaining(key, "key")
        return {
            "label": "sk-or-v1-sim...",
            "limit": self._scenario.key_limit_usd,
            "limit_remaining": None if left is None else left / NANO,
            "limit_reset": None,
            "include_byok_in_limit": False,
            "usage": used,
            "usage_daily": used,
            "usage_weekly": used,
            "usage_monthly": used,
            "byok_usage": 0,
            "is_free_tier": False,
            "is_management_key": key in self._scenario.management_keys,
            "is_provisioning_key": False,
            "expires_at": None,
            "rate_limit": {"requests": -1, "interval": "10s", "note": "This field is deprecated."},
        }

    def _credits(self, key: str) -> Reply:
        if key not in self._scenario.management_keys:
            return body(403, envelope(403, "Only management keys can perform this operation"))
        total = self._scenario.balance_usd or 0.0
        return as_json({"data": {"total_credits": total, "total_usage": self._purse.spent / NANO}})

    def _generation(self, name: str, key: str) -> Reply:
        entry = self._books.entries.get(name)
        if entry is None or entry.key != key or not self._settled(entry):
            return body(404, envelope(404, f"Generation {name} not found"))
        return as_json({"data": _generation_row(entry, self._scenario)})

    def _settled(self, entry: Entry) -> bool:
        return entry.ended is not None and entry.ended + self._scenario.generation_delay <= self._now()


_ARCHITECTURE = {
    "modality": "text+image->text",
    "input_modalities": ["text", "image"],
    "output_modalities": ["text"],
    "tokenizer": "Other",
    "instruct_type": None,
}


def _pricing(provider: Provider) -> dict[str, Any]:
    return {"prompt": provider.prompt, "completion": provider.completion, "discount": 0}


def _endpoint(provider: Provider, scenario: Scenario, *, measured: bool) -> dict[str, Any]:
    latency = {p: round(provider.ttft * factor * 1000) for p, factor in _SPREAD.items()} if measured else None
    speed = {p: round(provider.tps / factor, 1) for p, factor in _SPREAD.items()} if measured else None
    return {
        "name": f"{provider.name} | {scenario.permaslug}",
        "model_id": scenario.model,
        "model_name": "MoonshotAI: Kimi K2.5",
        "context_length": provider.context,
        "pricing": _pricing(provider),
        "provider_name": provider.name,
        "tag": provider.tag,
        "quantization": provider.quantization,
        "max_completion_tokens": provider.max_output,
        "max_prompt_tokens": None,
        "supported_parameters": list(provider.parameters),
        "status": provider.status,
        "uptime_last_5m": provider.uptime,
        "uptime_last_30m": provider.uptime,
        "uptime_last_1d": provider.uptime,
        "latency_last_30m": latency,
        "throughput_last_30m": speed,
        "supports_implicit_caching": False,
    }


_SPREAD = {"p50": 1.0, "p75": 1.3, "p90": 1.8, "p99": 3.0}


def _generation_row(entry: Entry, scenario: Scenario) -> dict[str, Any]:
    ended, counts = entry.ended or entry.accepted, entry.counts
    cost = counts.cost / NANO
    return {
        "id": entry.id,
        "upstream_id": f"chatcmpl-{entry.id[-12:]}",
        "total_cost": cost,
        "usage": cost,
        "upstream_inference_cost": cost,
        "cache_discount": None,
        "provider_name": entry.provider,
        "model": scenario.permaslug,
        "created_at": datetime.fromtimestamp(entry.accepted, UTC).isoformat(),
        "streamed": entry.stream,
        "cancelled": entry.status == "cancelled",
        "latency": round(entry.latency * 1000),
        "generation_time": round((ended - entry.accepted) * 1000),
        "finish_reason": entry.finish,
        "native_finish_reason": entry.finish,
        "tokens_prompt": counts.prompt,
        "tokens_completion": counts.completion,
        "native_tokens_prompt": counts.prompt,
        "native_tokens_completion": counts.completion,
        "native_tokens_reasoning": counts.reasoning,
        "native_tokens_cached": 0,
        "is_byok": False,
        "api_type": "completions",
        "response_cache_source_id": entry.source,
        "provider_responses": [],
    }
