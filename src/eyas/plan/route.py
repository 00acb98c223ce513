"""Which ways there are to ask, the most that a request on each can cost, and how it is sampled. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eyas.config import RunConfig
from eyas.errors import UsageError
from eyas.ledger import cost_of, prompt_upper
from eyas.providers.choose import can_serve, matches, provider_block
from eyas.state import ProviderState
from eyas.types import Endpoint, Prices

GATEWAY = "gateway"
"""Tag of the one route where OpenRouter picks among all allowed endpoints."""

JUDGED = 50
"""So many judged answers of an endpoint are taken at list price: its habits, and so its labels, are not known before."""

PRIOR = 50
"""Typical answers at list price, all of them exported, that stand beside what was seen: a few bad ones turn no order."""


@dataclass(frozen=True, slots=True)
class Route:
    """A way to ask: the endpoints that may answer on it, the dearest of their prices, and its `provider` object.

    `rank` is its place in [providers] order, from 0; what is not named there comes after it.
    """

    tag: str
    endpoints: tuple[Endpoint, ...]
    prices: Prices
    block: Mapping[str, Any]
    rank: int = 0

    def serves(self, prompt_tokens: int, max_tokens: int, *, tools: bool) -> bool:
        """Whether some endpoint on it takes a request of that size."""
        size = prompt_upper(prompt_tokens)
        return any(can_serve(endpoint, size, max_tokens, tools=tools) for endpoint in self.endpoints)

    def takes(self, parameter: str) -> bool:
        """Whether the endpoints take that sampling parameter; one that lists none is taken at its word of silence."""
        return all(not endpoint.parameters or parameter in endpoint.parameters for endpoint in self.endpoints)


def routes(config: RunConfig, allowed: Sequence[Endpoint], barred: Iterable[Endpoint] = ()) -> tuple[Route, ...]:
    """The ways to ask, cheapest first: one a tag where eyas picks (pinned), a single one where OpenRouter does.

    Servers of the user's own are one way each, and no request to them carries a `provider` object.

    Raises:
        UsageError: no endpoint may answer.
    """
    if not allowed:
        raise UsageError(_none(config))
    barred, bills = tuple(barred), config.target.bills
    groups: dict[str, list[Endpoint]] = {}
    for endpoint in allowed:
        alone = endpoint.tag if config.providers.routing != GATEWAY or not bills else GATEWAY
        groups.setdefault(alone, []).append(endpoint)
    made = [
        Route(
            tag,
            tuple(group),
            _dearest(group),
            provider_block(group, config.providers, barred) if bills else {},
            _rank(group, config.providers.order),
        )
        for tag, group in groups.items()
    ]
    return ordered(made, {})


def _none(config: RunConfig) -> str:
    target = config.target
    if target.bills:
        return (
            f"no endpoint of {target.model} may answer: run `eyas providers {target.model}` to see why each is excluded, "
            "and change [providers]"
        )
    return f"none of {', '.join(target.urls)} may answer: `eyas doctor RUN.toml` says why; start the server, or mend [target]"


def _rank(group: Sequence[Endpoint], order: Sequence[str]) -> int:
    named = (place for place, name in enumerate(order) if any(matches(endpoint, name) for endpoint in group))
    return next(named, len(order))


def ordered(among: Iterable[Route], learned: Mapping[str, ProviderState]) -> tuple[Route, ...]:
    """Routes named in [providers] order first, in that order; then by dollars for each token that will be exported strict.

    That is the list price, at one prompt token in five, times `overpaid`; `learned` is what this run saw, by tag.
    """
    answers = sum(provider.answers for provider in learned.values())
    typical = sum(provider.output_tokens for provider in learned.values()) // answers if answers else 0

    def preference(route: Route) -> tuple[int, float, str]:
        answer = cost_of(route.prices, typical // 4, typical)
        price = cost_of(route.prices, 1_000_000, 4_000_000)
        return route.rank, price * overpaid(learned.get(route.tag), answer), route.tag

    return tuple(sorted(among, key=preference))


def overpaid(known: ProviderState | None, answer: int) -> float:
    """What was paid at an endpoint, over what its answers with a strict label cost by the list: 1.0 where nothing is known.

    Paid is all of it: waste, parts, other labels, answers that were misserved; a discount makes it less than 1. `answer` is
    what a typical answer costs there by the list, nano-dollars: PRIOR of them are added to both.
    """
    if known is None or known.judged < JUDGED:
        return 1.0
    prior = PRIOR * max(1, answer)
    return (max(0, known.cost - known.unjudged) + prior) / (max(0, known.listed) + prior)


def sampling(config: RunConfig, dataset: str, preset: Mapping[str, float], route: Route) -> dict[str, float]:
    """Sampling parameters of a request: the dataset's, else the target's, else the family's; none that the route fixes."""
    own = config.dataset(dataset)
    wished = {
        "temperature": own.temperature if own.temperature is not None else config.target.temperature,
        "top_p": own.top_p if own.top_p is not None else config.target.top_p,
    }
    chosen = {**preset, **{name: value for name, value in wished.items() if value is not None}}
    return {name: value for name, value in chosen.items() if route.takes(name)}


def _dearest(endpoints: Sequence[Endpoint]) -> Prices:
    return Prices(
        max(e.prices.prompt for e in endpoints),
        max(e.prices.completion for e in endpoints),
        max(e.prices.request for e in endpoints),
    )
