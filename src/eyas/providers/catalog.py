"""An endpoint list, as the API gives it, as Endpoints. Decoded permissively: fields and values may appear at any time.

Source of the shape: GET /models/{author}/{slug}/endpoints, https://openrouter.ai/docs/api-reference/list-endpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from eyas.errors import ApiError, UsageError
from eyas.ledger import price_per_million
from eyas.types import Endpoint, Prices

Json = dict[str, Any]


class Unpriced(NamedTuple):
    """An endpoint whose price cannot be used, and why."""

    provider: str
    tag: str
    reason: str


class Listing(NamedTuple):
    """All endpoints of a model, and those that cannot be judged for want of a price."""

    endpoints: tuple[Endpoint, ...]
    unpriced: tuple[Unpriced, ...]


def endpoints(model: str, data: Any, slugs: Mapping[str, str] | None = None) -> Listing:
    """Read the `data` of an endpoint list; `slugs` maps display names to slugs where the API said so.

    Raises:
        ApiError: it is no endpoint list.
    """
    rows = _mapping(data).get("endpoints")
    if not isinstance(rows, list):
        raise ApiError(f"the endpoint list of {model} holds no endpoints: check [target] base_url and model")
    good: list[Endpoint] = []
    bad: list[Unpriced] = []
    for row in cast("list[Any]", rows):
        fields = _mapping(row)
        try:
            good.append(_endpoint(model, fields, slugs or {}))
        except UsageError as error:
            bad.append(Unpriced(_text(fields, "provider_name"), _text(fields, "tag"), str(error)))
    return Listing(tuple(good), tuple(bad))


def slugs(data: Any) -> dict[str, str]:
    """Display name -> slug, from the `data` of GET /providers; empty if it is something else."""
    rows = cast("list[Any]", data) if isinstance(data, list) else []
    named = ((_text(_mapping(row), "name"), _text(_mapping(row), "slug")) for row in rows)
    return {name: slug for name, slug in named if name and slug}


def _endpoint(model: str, row: Json, slugs: Mapping[str, str]) -> Endpoint:
    provider = _text(row, "provider_name") or _text(row, "name").split(" | ")[0]
    tag = _text(row, "tag") or slugs.get(provider) or provider.lower().replace(" ", "-")
    quantization = row.get("quantization")
    return Endpoint(
        model=model,
        provider=provider,
        slug=slugs.get(provider) or tag.split("/", 1)[0],
        tag=tag,
        prices=_prices(_mapping(row.get("pricing"))),
        quantization=quantization if isinstance(quantization, str) else None,
        context=_whole(row.get("context_length")),
        max_output=_whole(row.get("max_completion_tokens")),
        status=_whole(row.get("status")),
        uptime=_number(row.get("uptime_last_30m")),
        parameters=tuple(str(name) for name in cast("list[Any]", row.get("supported_parameters") or [])),
    )


def _prices(pricing: Json) -> Prices:
    """The highest price that may apply: conditional overrides count, discounts do not."""
    layers = [pricing, *(_mapping(layer) for layer in cast("list[Any]", pricing.get("overrides") or []))]
    highest = {
        name: max((price_per_million(str(layer[name])) for layer in layers if layer.get(name) is not None), default=0)
        for name in ("prompt", "completion", "request")
    }
    if highest["prompt"] <= 0 or highest["completion"] <= 0:
        raise UsageError(f"a price of zero or none ({pricing or 'no pricing'}): a bill could not be bounded")
    # A request's fee is listed in dollars, not a token's: undo the scaling to a million.
    return Prices(highest["prompt"], highest["completion"], -(-highest["request"] // 1_000_000))


def _mapping(value: Any) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}


def _text(row: Json, name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None
