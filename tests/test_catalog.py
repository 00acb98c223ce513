"""The endpoint list as the API gives it, read whatever it holds: prices that bound a bill, and terms."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyas.config import Providers
from eyas.errors import ApiError
from eyas.providers import catalog
from eyas.providers.catalog import Company, Terms
from eyas.providers.choose import Verdict, verdicts
from eyas.providers.rules import Rule
from eyas.types import Endpoint, Prices
from tests.endpoints import MODEL, listed, row


def test_the_list_is_decoded_whatever_is_missing() -> None:
    """Null and absent fields are None, unknown ones are ignored, slugs come from the API where it names them."""
    bare = {"provider_name": "Atlas Cloud", "pricing": {"prompt": 5e-07, "completion": "0.000002", "request": None}}
    null = row("X", "x/fast", None, context_length=None, max_completion_tokens=None, status=None, uptime_last_30m=None)
    first, second, third = listed(bare, null | {"supported_parameters": None, "new": {}}, row("Z.AI", "zai/fp8"))
    assert first == Endpoint(MODEL, "Atlas Cloud", "atlas-cloud", "atlas-cloud", Prices(500_000_000, 2_000_000_000))
    assert (second.slug, second.quantization, second.context, second.max_output) == ("x", None, None, None)
    assert (second.status, second.uptime, second.parameters) == (None, None, ())
    assert (third.context, third.max_output, third.status, third.uptime) == (262_144, 65_536, 0, 99.1)
    named = listed(row("Z.AI", "zai/fp8"), bare, slugs={"Z.AI": "z-ai", "Atlas Cloud": "atlas"})
    assert [(each.slug, each.tag) for each in named] == [("z-ai", "zai/fp8"), ("atlas", "atlas")]
    assert listed(bare | {"provider_name": None, "name": "Together | x"})[0].provider == "Together"
    for wrong in (None, [], {}, {"endpoints": None}, {"endpoints": {}}):
        with pytest.raises(ApiError, match="check"):
            catalog.endpoints(MODEL, wrong)
    assert catalog.companies([{"name": "Z.AI", "slug": "z-ai"}, {"name": "Y"}, None]) == {
        "Z.AI": Company("z-ai", Terms())
    }
    assert catalog.companies(None) == {}


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*sorted(row("X", "x")), "overrides", "discount", "data_policy"]), inner, max_size=5
        )
    ),
)


@given(
    st.lists(_json, max_size=3),
    _json,
    st.sampled_from([*sorted(row("X", "x")), "supported_parameters", "data_policy"]),
    _json,
)
def test_any_list_is_read_and_nothing_but_a_price_is_used(rows: list[Any], other: Any, field: str, value: Any) -> None:
    """Whatever JSON a list holds, it is read without an error, and no endpoint without a price above zero is used."""
    rows = [*rows, row("X", "x") | {field: value}]
    listing = catalog.endpoints(MODEL, {"endpoints": rows}, catalog.companies(other), catalog.no_retention(other))
    assert len(listing.endpoints) == len(rows)
    for verdict in verdicts(listing.endpoints, Providers(precision="any")):
        assert not verdict.use or min(verdict.endpoint.prices.prompt, verdict.endpoint.prices.completion) > 0


def test_the_highest_price_that_may_apply_counts() -> None:
    """Conditional overrides raise the bound, a discount does not lower it, a fee a request is dollars."""
    pricing = {"prompt": "0.0000005", "completion": "0.000002", "request": "0.001", "discount": 0.5,
               "overrides": [{"completion": "0.000004", "min_context": 9}, {"prompt": "0.0000001"}]}  # fmt: skip
    assert listed(row("X", "x", pricing=pricing))[0].prices == Prices(500_000_000, 4_000_000_000, 1_000_000)


def test_prices_that_hide_beside_the_plain_ones_count() -> None:
    """A dearer price of thinking tokens or of a cache write bounds the bill too; a cheaper one changes nothing."""
    more = {
        "prompt": "0.0000005",
        "completion": "0.000002",
        "internal_reasoning": "0.000003",
        "input_cache_write": "0.000001",
    }
    assert listed(row("X", "x", pricing=more))[0].prices == Prices(1_000_000_000, 3_000_000_000)
    less = {"prompt": "0.0000005", "completion": "0.000002", "internal_reasoning": "0", "input_cache_write": "0"}
    assert listed(row("X", "x", pricing=less))[0].prices == Prices(500_000_000, 2_000_000_000)


@pytest.mark.parametrize("price", ["0", 0, None, "-1", "free", "NaN"])
def test_an_endpoint_without_a_usable_price_is_shown_and_not_used(price: Any) -> None:
    """A price of zero, none or nonsense cannot bound a bill, even where `only` names it; it comes last, with its reason."""
    found = verdicts(listed(row("X", "x", prompt=price), row("Y", "y")), Providers(only=("x", "y")))
    assert [(each.endpoint.tag, each.use) for each in found] == [("y", True), ("x", False)]
    assert found[1].rule is Rule.PRICE
    assert "no usable price" in found[1].reason
    half = {"prompt": "0.0000005", "completion": "0.000002", "overrides": [{"completion": price or "-1"}]}
    assert _verdict(row("X", "x", pricing=half)).use is (price == "0"), (
        "an override of 0 is no upper bound, nor a fault"
    )
    free_by_day = {"prompt": "0", "completion": "0", "overrides": [{"prompt": "0.0000005", "completion": "0.000002"}]}
    assert not _verdict(row("X", "x", pricing=free_by_day)).use


def test_terms_are_what_the_api_says_and_unknown_else() -> None:
    """Endpoints go before companies, the list of those that keep nothing goes before both; silence is None."""
    policy = {"training": False, "retainsPrompts": True, "retentionDays": 30}
    rows = [
        row("A", "a"),
        row("B", "b", data_policy=policy),
        row("C", "c", pricing={"prompt": "1", "completion": "1", "discount": 0.1}),
    ]
    listing = [
        {"name": "A", "slug": "a", "headquarters": "US", "datacenters": ["US", "SG"]},
        {"name": "B", "slug": "b", "dataPolicy": {"paidModels": {"training": True, "retainsPrompts": False}}},
    ]

    def terms(forgetful: frozenset[str] | None) -> list[Terms]:
        found = catalog.endpoints(MODEL, {"endpoints": rows}, catalog.companies(listing), forgetful)
        return [found.terms[endpoint] for endpoint in found.endpoints]

    assert terms(None) == [Terms(country="US", datacenters=("US", "SG")), Terms(True, False), Terms(discount=0.1)]
    private = catalog.no_retention([{"name": f"A | {MODEL}-0127", "tag": "a"}, None, {"name": 1}])
    assert [(each.kept, each.trained) for each in terms(private)] == [(False, False), (True, False), (True, None)]
    assert terms(catalog.no_retention({"error": 1})) == terms(None)


def _verdict(row: dict[str, Any]) -> Verdict:
    return verdicts(listed(row), Providers())[0]
