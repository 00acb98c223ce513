"""Which endpoints may answer, why the others may not, and the `provider` object that says so to the API. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eyas.config import Providers
from eyas.providers.precision import Fidelity, judge
from eyas.types import Endpoint

_OURS = frozenset({"precision", "routing", "drop_above", "require_streamed", "only", "ignore", "order"})
_MILLION_NANO = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """An endpoint, whether it may answer, and the reason in words."""

    endpoint: Endpoint
    use: bool
    reason: str


def verdicts(endpoints: Iterable[Endpoint], wish: Providers) -> tuple[Verdict, ...]:
    """A verdict on every endpoint, cheapest output first."""
    ordered = sorted(endpoints, key=lambda e: (e.prices.completion, e.prices.prompt, e.tag, e.quantization or ""))
    found = [Verdict(endpoint, *_verdict(endpoint, wish)) for endpoint in ordered]
    barred = {verdict.endpoint.tag for verdict in found if not verdict.use}
    return tuple(
        Verdict(verdict.endpoint, False, f"shares its tag {verdict.endpoint.tag} with an excluded endpoint")
        if verdict.use and verdict.endpoint.tag in barred
        else verdict
        for verdict in found
    )


def allowed(found: Sequence[Verdict]) -> tuple[Endpoint, ...]:
    """The endpoints that may answer, in the order of preference."""
    return tuple(verdict.endpoint for verdict in found if verdict.use)


def matches(endpoint: Endpoint, name: str) -> bool:
    """Whether a name in only/ignore/order means this endpoint: its full tag, its provider's slug, or display name.

    A base slug means every endpoint of the provider but those of a service tier, as OpenRouter matches it.
    """
    wanted = name.strip().lower()
    if wanted == endpoint.tag.lower():
        return True
    if endpoint.tag.rsplit("/", 1)[-1] in ("flex", "priority"):
        return False
    return wanted in (endpoint.slug.lower(), endpoint.provider.lower(), endpoint.tag.split("/", 1)[0].lower())


def provider_block(endpoints: Sequence[Endpoint], wish: Providers, barred: Iterable[Endpoint] = ()) -> dict[str, Any]:
    """The `provider` object for requests that these endpoints, and no other, may serve.

    `only` names tags, `max_price` bounds the bill on the API's side too, in USD per million tokens. A bare tag names
    all endpoints of its provider, so those of them that are `barred` are ignored by their full tags.
    """
    block: dict[str, Any] = {
        name: value
        for name, value in wish.model_dump(mode="json", exclude_none=True).items()
        if name not in _OURS and value not in ([], {})
    }
    block["only"] = list(dict.fromkeys(endpoint.tag for endpoint in endpoints))
    if wish.order:
        block["order"] = list(wish.order)
    also = [e.tag for e in barred if e.tag not in block["only"] and any(matches(e, name) for name in block["only"])]
    if wish.ignore or also:
        block["ignore"] = list(dict.fromkeys((*wish.ignore, *also)))
    block.setdefault("allow_fallbacks", len(endpoints) > 1)
    if endpoints:
        block["max_price"] = _max_price(endpoints, wish.max_price or {})
    return block


def can_serve(endpoint: Endpoint, prompt_tokens: int, max_tokens: int, *, tools: bool) -> bool:
    """Whether an endpoint takes a request of that size: input and output share its context."""
    if endpoint.max_output is not None and max_tokens > endpoint.max_output:
        return False
    if endpoint.context is not None and prompt_tokens + max_tokens > endpoint.context:
        return False
    return not (tools and endpoint.parameters and "tools" not in endpoint.parameters)


def served_by(provider: str, endpoints: Iterable[Endpoint]) -> Endpoint | None:
    """The endpoint among these whose provider's display name (or slug) an answer gives; None if there is none."""
    name = _plain(provider)
    return next((e for e in endpoints if name in (_plain(e.provider), _plain(e.slug))), None)


def _verdict(endpoint: Endpoint, wish: Providers) -> tuple[bool, str]:
    for test in (_by_name, _by_precision, _by_health, _by_price):
        reason = test(endpoint, wish)
        if reason is not None:
            return False, reason
    return True, judge(endpoint)[1] if wish.precision == "native" else "any precision is allowed"


def _by_name(endpoint: Endpoint, wish: Providers) -> str | None:
    for name in wish.ignore:
        if matches(endpoint, name):
            return f"ignored by name ({name!r} in [providers] ignore)"
    if wish.only and not any(matches(endpoint, name) for name in wish.only):
        return "not named in [providers] only"
    return None


def _by_precision(endpoint: Endpoint, wish: Providers) -> str | None:
    label = (endpoint.quantization or "unknown").lower()
    if wish.quantizations and label not in wish.quantizations:
        return f"{label} is not in [providers] quantizations"
    if wish.precision == "any":
        return None
    found, reason = judge(endpoint)
    return None if found in (Fidelity.SAME, Fidelity.WIDER) else reason


def _by_health(endpoint: Endpoint, _: Providers) -> str | None:
    if endpoint.status is not None and endpoint.status < 0:
        return f"down or degraded (status {endpoint.status})"
    return None


def _by_price(endpoint: Endpoint, wish: Providers) -> str | None:
    limits = wish.max_price or {}
    for name, price in (("prompt", endpoint.prices.prompt), ("completion", endpoint.prices.completion)):
        if name in limits and price > limits[name] * _MILLION_NANO:
            return f"{name} costs ${price / _MILLION_NANO:g}/M, above [providers] max_price"
    return None


def _max_price(endpoints: Sequence[Endpoint], wish: Mapping[str, float]) -> dict[str, float]:
    bounds = {
        "prompt": max(e.prices.prompt for e in endpoints) / _MILLION_NANO,
        "completion": max(e.prices.completion for e in endpoints) / _MILLION_NANO,
    }
    return dict(wish) | {name: min(bound, wish.get(name, bound)) for name, bound in bounds.items()}


def _plain(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())
