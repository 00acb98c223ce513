"""Which endpoints may answer, why the others may not, and the `provider` object that says so to the API. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from eyas.config import Providers
from eyas.providers.precision import Fidelity, Judgement, judge
from eyas.providers.rules import Rule
from eyas.types import NANO, Endpoint

_SENT = (
    "sort", "allow_fallbacks", "require_parameters", "data_collection", "zdr", "enforce_distillable_text",
    "quantizations", "preferred_min_throughput", "preferred_max_latency", "max_price", "options",
)  # fmt: skip
"""Keys of [providers] that OpenRouter takes as they are; only, order and ignore are built; the others are eyas's own."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """An endpoint, whether it may answer, the rule that decided, the reason in words, and how faithful its weights are."""

    endpoint: Endpoint
    use: bool
    reason: str
    rule: Rule
    fidelity: Fidelity = Fidelity.UNKNOWN


class _Finding(NamedTuple):
    """What one rule says against an endpoint."""

    rule: Rule
    reason: str


def verdicts(endpoints: Iterable[Endpoint], wish: Providers, today: str = "") -> tuple[Verdict, ...]:
    """A verdict on every endpoint, cheapest output first, those without a usable price last.

    `today` is a date as YYYY-MM-DD, by which knowledge of providers may have expired; without it all of it counts.
    """
    found = [_verdict(endpoint, wish, today) for endpoint in sorted(endpoints, key=_cheapest)]
    barred = {verdict.endpoint.tag for verdict in found if not verdict.use}
    return tuple(
        replace(
            verdict, use=False, rule=Rule.TAG, reason=f"shares its tag {verdict.endpoint.tag} with an excluded endpoint"
        )
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
    wished = wish.model_dump(mode="json", exclude_none=True)
    block: dict[str, Any] = {name: wished[name] for name in _SENT if wished.get(name) not in (None, [], {})}
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


def _cheapest(endpoint: Endpoint) -> tuple[bool, int, int, str, str]:
    prices = endpoint.prices
    return _priceless(endpoint), prices.completion, prices.prompt, endpoint.tag, endpoint.quantization or ""


def _priceless(endpoint: Endpoint) -> bool:
    return endpoint.prices.prompt <= 0 or endpoint.prices.completion <= 0


def _verdict(endpoint: Endpoint, wish: Providers, today: str) -> Verdict:
    judged = judge(endpoint, today)
    precision = _by_precision(endpoint, wish, judged)
    against = [
        each
        for each in (_by_name(endpoint, wish), precision, _by_health(endpoint, wish), _by_price(endpoint, wish))
        if each
    ]
    if against and against[0].rule in (Rule.IGNORE, Rule.ONLY):
        del against[1:]  # who names a provider knows why
    if against:
        reason = "; also ".join(each.reason for each in against)
        return Verdict(endpoint, False, reason, against[0].rule, judged.fidelity)
    if wish.precision == "any":
        return Verdict(endpoint, True, "any precision is allowed", Rule.ANY, judged.fidelity)
    reason = judged.reason if judged.fidelity.faithful else f"{judged.reason}; unknown precision is accepted"
    return Verdict(endpoint, True, reason, judged.rule, judged.fidelity)


def _by_name(endpoint: Endpoint, wish: Providers) -> _Finding | None:
    for name in wish.ignore:
        if matches(endpoint, name):
            return _Finding(Rule.IGNORE, f"ignored by name ({name!r} in [providers] ignore)")
    if wish.only and not any(matches(endpoint, name) for name in wish.only):
        return _Finding(Rule.ONLY, "not named in [providers] only")
    return None


def _by_precision(endpoint: Endpoint, wish: Providers, judged: Judgement) -> _Finding | None:
    label = (endpoint.quantization or "unknown").lower()
    if wish.quantizations and label not in wish.quantizations:
        return _Finding(Rule.QUANTIZATIONS, f"{label} is not in [providers] quantizations")
    accepted = judged.fidelity.faithful or (judged.fidelity is Fidelity.UNKNOWN and wish.unknown == "accept")
    return None if accepted or wish.precision == "any" else _Finding(judged.rule, judged.reason)


def _by_health(endpoint: Endpoint, wish: Providers) -> _Finding | None:
    if endpoint.status is None or endpoint.status >= 0 or any(matches(endpoint, name) for name in wish.only):
        return None
    uptime = "" if endpoint.uptime is None else f", up {endpoint.uptime:g} % of the last 30 minutes"
    return _Finding(Rule.STATUS, f"degraded or down (status {endpoint.status}{uptime})")


def _by_price(endpoint: Endpoint, wish: Providers) -> _Finding | None:
    if _priceless(endpoint):
        return _Finding(Rule.PRICE, "no usable price is listed (zero, none or no number): a bill could not be bounded")
    limits = wish.max_price or {}
    for name, price in (("prompt", endpoint.prices.prompt), ("completion", endpoint.prices.completion)):
        if name in limits and price > limits[name] * NANO:
            return _Finding(Rule.MAX_PRICE, f"{name} costs ${price / NANO:g}/M, above [providers] max_price")
    return None


def _max_price(endpoints: Sequence[Endpoint], wish: Mapping[str, float]) -> dict[str, float]:
    bounds = {
        "prompt": max(e.prices.prompt for e in endpoints) / NANO,
        "completion": max(e.prices.completion for e in endpoints) / NANO,
    }
    return dict(wish) | {name: min(bound, wish.get(name, bound)) for name, bound in bounds.items()}


def _plain(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())
