"""Which ways there are to ask, the most that a request on each can cost, and how it is sampled. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eyas.config import RunConfig
from eyas.errors import UsageError
from eyas.ledger import cost_of, prompt_upper
from eyas.providers.choose import can_serve, matches, provider_block
from eyas.types import Endpoint, Prices

GATEWAY = "gateway"
"""Tag of the one route where OpenRouter picks among all allowed endpoints."""


@dataclass(frozen=True, slots=True)
class Route:
    """A way to ask: the endpoints that may answer on it, the dearest of their prices, and its `provider` object."""

    tag: str
    endpoints: tuple[Endpoint, ...]
    prices: Prices
    block: Mapping[str, Any]

    def serves(self, prompt_tokens: int, max_tokens: int, *, tools: bool) -> bool:
        """Whether some endpoint on it takes a request of that size."""
        size = prompt_upper(prompt_tokens)
        return any(can_serve(endpoint, size, max_tokens, tools=tools) for endpoint in self.endpoints)

    def takes(self, parameter: str) -> bool:
        """Whether the endpoints take that sampling parameter; one that lists none is taken at its word of silence."""
        return all(not endpoint.parameters or parameter in endpoint.parameters for endpoint in self.endpoints)


def routes(config: RunConfig, allowed: Sequence[Endpoint], barred: Iterable[Endpoint] = ()) -> tuple[Route, ...]:
    """The ways to ask, cheapest first: one a tag where eyas picks (pinned), a single one where OpenRouter does.

    Raises:
        UsageError: no endpoint may answer.
    """
    if not allowed:
        raise UsageError(
            f"no endpoint of {config.target.model} may answer: run `eyas providers {config.target.model}` to see why each "
            "is excluded, and change [providers]"
        )
    barred = tuple(barred)
    groups: dict[str, list[Endpoint]] = {}
    for endpoint in allowed:
        groups.setdefault(GATEWAY if config.providers.routing == GATEWAY else endpoint.tag, []).append(endpoint)
    made = [
        Route(tag, tuple(group), _dearest(group), provider_block(group, config.providers, barred))
        for tag, group in groups.items()
    ]
    return tuple(sorted(made, key=lambda route: _preference(route, config.providers.order)))


def _preference(route: Route, order: Sequence[str]) -> tuple[int, int, str]:
    """Routes named in [providers] order come first, in that order; then the cheapest, at one prompt token in five."""
    named = (place for place, name in enumerate(order) if any(matches(endpoint, name) for endpoint in route.endpoints))
    return next(named, len(order)), cost_of(route.prices, 1_000_000, 4_000_000), route.tag


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
