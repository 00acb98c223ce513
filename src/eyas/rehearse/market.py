"""The market of a rehearsal: the endpoints of the API's own list with the prices it gives, or those of a scenario. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple, cast

from msgspec.structs import replace

from eyas.plan.cost import ROOM
from eyas.providers.cancel import stops
from eyas.sim import Provider, Scenario
from eyas.types import Endpoint

_MILLION = 1_000_000


class Speed(NamedTuple):
    """What the list has measured of an endpoint; None where it does not say.

    Attributes:
        tps: median tokens a second of a stream.
        ttft: median seconds to the first token.
    """

    tps: float | None = None
    ttft: float | None = None


def speeds(data: Any) -> dict[str, Speed]:
    """Speeds by tag, from the `data` of an endpoint list; the API tells them only to whoever has a key."""
    rows = _mapping(data).get("endpoints")
    found: dict[str, Speed] = {}
    for row in map(_mapping, cast("list[Any]", rows) if isinstance(rows, list) else []):
        tps, latency = _median(row.get("throughput_last_30m")), _median(row.get("latency_last_30m"))
        found[str(row.get("tag"))] = Speed(tps, None if latency is None else latency / 1000)
    return found


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _median(value: Any) -> float | None:
    median = _mapping(value).get("p50")
    if isinstance(median, bool) or not isinstance(median, int | float):
        return None
    return float(median) if 0 < median < _MILLION else None


def market(scenario: Scenario, endpoints: Iterable[Endpoint], measured: Mapping[str, Speed]) -> Scenario:
    """The scenario with the endpoints of a list instead of its own.

    What the list does not say of an endpoint is the scenario's where that has one of the same tag: slots, requests a second,
    habits. Else it carries as many streams as a plan takes for granted, at the speed of the scenario's first.
    """
    known = {provider.tag: provider for provider in scenario.providers}
    made = tuple(_provider(known, scenario, each, measured.get(each.tag, Speed())) for each in endpoints)
    return replace(scenario, providers=made)


def _provider(known: Mapping[str, Provider], scenario: Scenario, endpoint: Endpoint, measured: Speed) -> Provider:
    first = scenario.providers[0]
    plain = Provider(
        name=endpoint.provider, tag=endpoint.tag, quantization=endpoint.quantization, prompt="0", completion="0",
        slots=ROOM, tps=first.tps, tps_sigma=first.tps_sigma, ttft=first.ttft, cancel_stops=stops(endpoint),
    )  # fmt: skip
    provider = known.get(endpoint.tag, plain)
    return replace(
        provider,
        name=endpoint.provider,
        quantization=endpoint.quantization,
        prompt=_price(endpoint.prices.prompt),
        completion=_price(endpoint.prices.completion),
        context=endpoint.context or provider.context,
        max_output=endpoint.max_output,
        status=endpoint.status or 0,
        tps=measured.tps or provider.tps,
        ttft=measured.ttft or provider.ttft,
    )


def _price(per_million: int) -> str:
    """Dollars a token as a decimal; rounded down to whole nano-dollars, so that no bill passes its reservation."""
    return f"{Decimal(per_million // _MILLION).scaleb(-9):f}"
