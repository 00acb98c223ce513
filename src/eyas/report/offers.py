"""What `eyas providers` says of a market: the figures of --json, from verdicts, terms and what a run learned. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eyas.config.target import API
from eyas.providers.cancel import listed
from eyas.providers.catalog import Terms
from eyas.providers.choose import Verdict, served_by
from eyas.providers.precision import native_row
from eyas.report.habits import cuts
from eyas.state import State
from eyas.types import NANO, Endpoint

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Learned:
    """What a run saw of one endpoint: whole and cut answers kept, their tokens, all dollars there, how it cuts its stream.

    `usd_per_m_output` is what a million kept output tokens really cost, prompts and waste included.
    """

    answers: int
    output_tokens: int
    usd: float
    streams: str

    @property
    def usd_per_m_output(self) -> float | None:
        """None where no token was kept."""
        return self.usd / self.output_tokens * MILLION if self.output_tokens else None


@dataclass(frozen=True, slots=True)
class Market:
    """A model's endpoints as judged, and what requests to them carry.

    Attributes:
        model: its id.
        verdicts: one an endpoint, in the order of price.
        terms: what the API says of each beside its offer.
        block: the `provider` object of a request that any usable endpoint may serve (routing = "gateway").
        routes: tag and `provider` object of each way to ask (routing = "pinned"), in the order of preference.
        learned: by endpoint, from a run; None without one.
        backend: what answers; all but OpenRouter are servers of the user's own, which have no prices.
    """

    model: str
    verdicts: tuple[Verdict, ...]
    terms: Mapping[Endpoint, Terms]
    block: Mapping[str, Any]
    routes: Sequence[tuple[str, Mapping[str, Any]]] = ()
    learned: Mapping[Endpoint, Learned] | None = field(default=None)
    backend: str = API

    @property
    def bills(self) -> bool:
        """Whether prices are spoken of."""
        return self.backend == API


def learned(state: State, endpoints: Sequence[Endpoint]) -> dict[Endpoint, Learned]:
    """What a run saw of these endpoints.

    Attempts whose tag names no endpoint, those where OpenRouter picked, count for the first endpoint of who answered.
    """
    tags = {endpoint.tag for endpoint in endpoints}
    found: dict[Endpoint, list[int]] = {}
    for attempt in state.attempts.values():
        if attempt.tag in tags:
            endpoint = next(e for e in endpoints if e.tag == attempt.tag)
        else:
            endpoint = served_by(attempt.provider, endpoints) if attempt.provider else None
        if endpoint is None or attempt.settled is None:
            continue
        sums = found.setdefault(endpoint, [0, 0, 0])
        sums[0] += attempt.answered
        sums[1] += attempt.settled.tokens if attempt.answered else 0
        sums[2] += attempt.cost or 0
    words = cuts(state.habits)
    return {
        endpoint: Learned(answers, tokens, cost / NANO, words.get(endpoint.provider, ""))
        for endpoint, (answers, tokens, cost) in found.items()
    }


def figures(market: Market) -> dict[str, Any]:
    """The figures of `eyas providers --json`; prices in USD per million tokens, null where nothing is said."""
    row = native_row(market.model) if market.bills else None
    return {
        "schema": 1,
        "model": market.model,
        "backend": market.backend,
        "native": row.format if row else None,
        "native_source": row.source if row else None,
        "endpoints": [_endpoint(verdict, market) for verdict in market.verdicts],
        "provider_block": dict(market.block),
        "routes": [{"tag": tag, "provider": dict(block)} for tag, block in market.routes],
    }


def _endpoint(verdict: Verdict, market: Market) -> dict[str, Any]:
    endpoint, terms = verdict.endpoint, market.terms.get(verdict.endpoint, Terms())
    found: dict[str, Any] = {
        "provider": endpoint.provider,
        "slug": endpoint.slug,
        "tag": endpoint.tag,
        "quantization": endpoint.quantization,
        "status": endpoint.status,
        "context": endpoint.context,
        "max_output": endpoint.max_output,
        "usd_per_m_prompt": _price(endpoint.prices.prompt) if market.bills else 0.0,
        "usd_per_m_completion": _price(endpoint.prices.completion) if market.bills else 0.0,
        "verdict": "use" if verdict.use else "exclude",
        "reason": verdict.reason,
        "rule": verdict.rule.value,
        "fidelity": verdict.fidelity.value,
        "uptime": endpoint.uptime,
        "usd_per_request": endpoint.prices.request / NANO,
        "discount": terms.discount,
        "cancel_stops_billing": listed(endpoint),
        "prompts_kept": terms.kept,
        "prompts_trained_on": terms.trained,
        "country": terms.country or None,
        "datacenters": list(terms.datacenters),
    }
    if not market.bills:
        found["slots"] = endpoint.slots
    if market.learned is not None:
        found["run"] = _learned(market.learned.get(endpoint, Learned(0, 0, 0.0, "")))
    return found


def _learned(seen: Learned) -> dict[str, Any]:
    return {
        "answers": seen.answers,
        "output_tokens": seen.output_tokens,
        "usd": seen.usd,
        "usd_per_m_output": seen.usd_per_m_output,
        "streams": seen.streams or None,
    }


def _price(nano: int) -> float | None:
    return nano / NANO if nano > 0 else None
