"""An endpoint list, as the API gives it, as Endpoints. Decoded permissively: fields and values may appear at any time.

Sources of the shapes: https://openrouter.ai/docs/api-reference/list-endpoints for GET /models/{author}/{slug}/endpoints,
GET /providers, and GET /endpoints/zdr. No page describes a `data_policy`; its fields are those of the API's own web site.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from eyas.errors import ApiError, UsageError
from eyas.ledger import price_per_million
from eyas.types import Endpoint, Prices

Json = dict[str, Any]


class Terms(NamedTuple):
    """What the API says of an endpoint beside its offer.

    Attributes:
        kept, trained: whether prompts may be kept, and trained on; None where it does not say.
        country: where the provider is based, as the API writes it; empty where it does not say.
        datacenters: countries of its data centers.
        discount: the share taken off the listed price, 0 to 1; never counted on.
    """

    kept: bool | None = None
    trained: bool | None = None
    country: str = ""
    datacenters: tuple[str, ...] = ()
    discount: float = 0.0


class Company(NamedTuple):
    """A provider by the API's list of providers: its slug, and its terms."""

    slug: str
    terms: Terms


class Listing(NamedTuple):
    """All endpoints of a model, and the terms of each. A price of 0 is none: such an endpoint cannot be used."""

    endpoints: tuple[Endpoint, ...]
    terms: Mapping[Endpoint, Terms]


def endpoints(
    model: str, data: Any, companies: Mapping[str, Company] | None = None, forgetful: frozenset[str] | None = None
) -> Listing:
    """Read the `data` of an endpoint list.

    Args:
        model: whose list it is.
        data: as decoded from JSON.
        companies: display name -> company, where the API told.
        forgetful: what `no_retention` read; None where it was not asked for.

    Raises:
        ApiError: it is no endpoint list.
    """
    rows = _mapping(data).get("endpoints")
    if not isinstance(rows, list):
        raise ApiError(f"the endpoint list of {model} holds no endpoints: check [target] base_url and model")
    found: dict[Endpoint, Terms] = {}
    listed: list[Endpoint] = []
    for row in map(_mapping, cast("list[Any]", rows)):
        company = (companies or {}).get(_provider(row))
        endpoint = _endpoint(model, row, company)
        listed.append(endpoint)
        found[endpoint] = _terms(row, company.terms if company else Terms(), forgetful)
    return Listing(tuple(listed), found)


def companies(data: Any) -> dict[str, Company]:
    """Display name -> company, from the `data` of GET /providers; empty if it is something else."""
    rows = map(_mapping, _list(data))
    named = {_text(row, "name"): Company(_text(row, "slug"), _terms(row, Terms(), None)) for row in rows}
    return {name: company for name, company in named.items() if name and company.slug}


def no_retention(data: Any) -> frozenset[str]:
    """Which endpoints keep no prompt, from the `data` of GET /endpoints/zdr, as `name|tag`; empty if it is something else."""
    return frozenset(_name(row) for row in map(_mapping, _list(data)))


def _name(row: Json) -> str:
    return f"{_text(row, 'name')}|{_text(row, 'tag')}"


def _provider(row: Json) -> str:
    return _text(row, "provider_name") or _text(row, "name").split(" | ")[0]


def _endpoint(model: str, row: Json, company: Company | None) -> Endpoint:
    provider = _provider(row)
    tag = _text(row, "tag") or (company.slug if company else provider.lower().replace(" ", "-"))
    quantization = row.get("quantization")
    return Endpoint(
        model=model,
        provider=provider,
        slug=company.slug if company else tag.split("/", 1)[0],
        tag=tag,
        prices=_prices(_mapping(row.get("pricing"))),
        quantization=quantization if isinstance(quantization, str) else None,
        context=_whole(row.get("context_length")),
        max_output=_whole(row.get("max_completion_tokens")),
        status=_whole(row.get("status")),
        uptime=_number(row.get("uptime_last_30m")),
        parameters=tuple(str(name) for name in _list(row.get("supported_parameters"))),
    )


def _prices(pricing: Json) -> Prices:
    """The highest price that may apply; 0 where there is no usable one.

    Conditional overrides (time of day, length of the prompt) count at their highest, and so do the prices of a thinking
    token and of a token that is written to a cache. A discount does not count: the listed price may be without it.
    """
    layers = [pricing, *map(_mapping, _list(pricing.get("overrides")))]
    # A request's fee is listed in dollars, not a token's: undo the scaling to a million.
    fee = max((_price(layer, "request") or 0 for layer in layers), default=0)
    return Prices(
        _highest(layers, "prompt", "input_cache_write"),
        _highest(layers, "completion", "internal_reasoning"),
        -(-fee // 1_000_000),
    )


def _highest(layers: list[Json], name: str, *others: str) -> int:
    """The highest of these prices; 0 if the price `name` itself is missing or no price somewhere."""
    base = _price(layers[0], name)
    if not base or any(layer.get(name) is not None and _price(layer, name) is None for layer in layers):
        return 0
    return max(base, *(_price(layer, each) or 0 for layer in layers for each in (name, *others)))


def _price(layer: Json, name: str) -> int | None:
    """Nano-dollars per million tokens; None where nothing usable is listed."""
    try:
        return price_per_million(str(layer[name])) if layer.get(name) is not None else None
    except UsageError:
        return None


def _terms(row: Json, of_company: Terms, forgetful: frozenset[str] | None) -> Terms:
    """What the row says, else what is known of the company."""
    policy = _mapping(row.get("data_policy") or row.get("dataPolicy"))
    policy = policy | _mapping(policy.get("paidModels"))
    kept, trained = _flag(policy, "retainsPrompts", "retains_prompts"), _flag(policy, "training")
    if forgetful and _text(row, "name"):
        # "Providers that do not retain your data are also unable to train on your data", says the API's page on it.
        kept = _name(row) not in forgetful
        trained = trained if kept else False
    discount = _number(_mapping(row.get("pricing")).get("discount")) or 0.0
    return Terms(
        kept=of_company.kept if kept is None else kept,
        trained=of_company.trained if trained is None else trained,
        country=_text(row, "headquarters") or of_company.country,
        datacenters=tuple(map(str, _list(row.get("datacenters")))) or of_company.datacenters,
        discount=discount if 0 < discount < 1 else 0.0,
    )


def _flag(policy: Json, *names: str) -> bool | None:
    return next((policy[name] for name in names if isinstance(policy.get(name), bool)), None)


def _mapping(value: Any) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _text(row: Json, name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""


def _whole(value: Any) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


def _number(value: Any) -> float | None:
    """A finite number; JSON of others may hold Infinity."""
    usable = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15
    return float(value) if usable else None
