"""The endpoint list, the verdict on each endpoint, and the `provider` object that is sent."""

from __future__ import annotations

from typing import Any

import pytest

from eyas.config import Providers
from eyas.providers.choose import Verdict, allowed, can_serve, matches, provider_block, served_by, verdicts
from eyas.providers.rules import Rule
from tests.endpoints import listed, row

NO_WISH = Providers()


MARKET = [
    row("Chutes", "chutes/int4", completion="0.000002"),
    row("SiliconFlow", "siliconflow/fp8", "fp8", completion="0.00000225"),
    row("Moonshot AI", "moonshotai", None, completion="0.000003"),
    row("Novita", "novita/bf16", "bf16", completion="0.0000031"),
    row("DeepInfra", "deepinfra/fp4", "fp4", completion="0.000001"),
    row("Nebius", "nebius/nvfp4", "nvfp4", completion="0.0000011"),
    row("Venice", "venice", "unknown", completion="0.0000012"),
    row("Phala", "phala", None, completion="0.0000013"),
    row("Fireworks", "fireworks", "unknown", completion="0.0000014"),
    row("Fireworks", "fireworks/fast", "int4", completion="0.0000015"),
    row("BaseTen", "baseten/int4", "int4", completion="0.0000016"),
    row("Parasail", "parasail/int4", "int4", status=-2, completion="0.0000017"),
    row("Inceptron", "inceptron/int4", "int4", status=-5, completion="0.0000018"),
]


def judged(*rows: dict[str, Any], **wish: Any) -> dict[str, Verdict]:
    """Verdicts by tag."""
    return {verdict.endpoint.tag: verdict for verdict in verdicts(listed(*rows), Providers(**wish))}


def used(*rows: dict[str, Any], **wish: Any) -> set[str]:
    """Tags that may answer."""
    return {tag for tag, verdict in judged(*rows, **wish).items() if verdict.use}


def test_the_founding_market_is_judged_as_the_founding_run_was() -> None:
    """INT4 and wider are used, the author's own without a label too; narrower, unlabelled, known and sick ones are out."""
    found = judged(*MARKET)
    assert [v.endpoint.tag for v in verdicts(listed(*MARKET), NO_WISH) if v.use] == [
        "chutes/int4", "siliconflow/fp8", "moonshotai", "novita/bf16"
    ]  # fmt: skip
    reasons = {tag: verdict.reason for tag, verdict in found.items()}
    assert "native format" in reasons["chutes/int4"]
    assert "holds every native int4 weight" in reasons["siliconflow/fp8"]
    assert "author's own" in reasons["moonshotai"]
    assert "re-quantizes" in reasons["deepinfra/fp4"]
    assert "re-quantizes" in reasons["nebius/nvfp4"]
    assert "says nothing usable" in reasons["venice"]
    assert "no label" in reasons["phala"]
    for tag in ("fireworks", "fireworks/fast", "baseten/int4"):
        assert "known to serve nvfp4" in reasons[tag], "knowledge goes before the label"
    assert "status -2" in reasons["parasail/int4"]
    assert "status -5" in reasons["inceptron/int4"]


def test_the_rule_that_decided_is_named() -> None:
    """Each verdict carries its rule; where several speak against an endpoint, all of them are said, the first one counts."""
    rules = {
        tag: verdict.rule
        for tag, verdict in judged(*MARKET, ignore=("chutes",), max_price={"completion": 3.05}).items()
    }
    assert rules == {
        "chutes/int4": Rule.IGNORE, "siliconflow/fp8": Rule.LABEL, "moonshotai": Rule.AUTHOR, "novita/bf16": Rule.MAX_PRICE,
        "deepinfra/fp4": Rule.LABEL, "nebius/nvfp4": Rule.LABEL, "venice": Rule.UNKNOWN, "phala": Rule.UNKNOWN,
        "fireworks": Rule.KNOWLEDGE, "fireworks/fast": Rule.KNOWLEDGE, "baseten/int4": Rule.KNOWLEDGE,
        "parasail/int4": Rule.STATUS, "inceptron/int4": Rule.STATUS,
    }  # fmt: skip
    sick = judged(row("BaseTen", "baseten/fp4", "fp4", status=-5, uptime_last_30m=41.0))["baseten/fp4"]
    assert sick.rule is Rule.KNOWLEDGE
    assert sick.reason.endswith(
        "native int4 weights; also degraded or down (status -5, up 41 % of the last 30 minutes)"
    )
    assert judged(*MARKET, only=("venice",))["baseten/int4"].rule is Rule.ONLY
    assert judged(*MARKET, quantizations=("fp8",))["chutes/int4"].rule is Rule.QUANTIZATIONS
    assert judged(*MARKET, precision="any")["venice"].rule is Rule.ANY


def test_who_is_down_is_asked_only_by_name() -> None:
    """A negative status excludes, unless `only` names the endpoint; every other rule still holds for it."""
    assert used(*MARKET, only=("parasail",)) == {"parasail/int4"}
    assert used(*MARKET, only=("inceptron/int4", "fireworks")) == {"inceptron/int4"}
    assert "parasail/int4" not in used(*MARKET, precision="any")


def test_unknown_precision_is_let_in_on_demand() -> None:
    """The key `unknown` lets in who says nothing, not who is known or declares another format."""
    assert used(*MARKET, unknown="accept") - used(*MARKET) == {"venice", "phala"}
    assert "accepted" in judged(*MARKET, unknown="accept")["venice"].reason
    assert used(row("X", "x", "int4-awq")) == set()
    assert used(row("X", "x", "int4-awq"), unknown="accept") == {"x"}


def test_a_tag_shared_with_an_excluded_endpoint_is_out() -> None:
    """Two endpoints of one tag cannot be told apart by a request, so the good twin goes with the bad one."""
    twins = (row("Acme", "acme/x", "int4"), row("Acme", "acme/x", "fp4"), row("Chutes", "chutes/int4"))
    found = verdicts(listed(*twins), NO_WISH)
    assert [(v.endpoint.quantization, v.use) for v in found if v.endpoint.tag == "acme/x"] == [
        ("fp4", False),
        ("int4", False),
    ]
    assert sum("shares its tag" in verdict.reason for verdict in found) == 1
    both = (row("Acme", "acme/x", "int4"), row("Acme", "acme/x", "fp8"))
    assert [endpoint.tag for endpoint in allowed(verdicts(listed(*both), NO_WISH))] == ["acme/x", "acme/x"]


@pytest.mark.parametrize("name", ["moonshotai", "Moonshot AI", " MOONSHOTAI ", "moonshot ai"])
def test_names_are_slugs_tags_or_display_names(name: str) -> None:
    """In only and ignore alike, whatever the case."""
    assert used(*MARKET, only=(name,)) == {"moonshotai"}
    assert "moonshotai" not in used(*MARKET, ignore=(name,))


def test_a_full_tag_means_one_endpoint_and_a_base_slug_all_but_tiers() -> None:
    """`x` is every variant of x but flex and priority; `x/fp8` is that one."""
    rows = [row("X", tag, "int4") for tag in ("x", "x/fp8", "x/us", "x/flex", "x/priority")]
    assert used(*rows, ignore=("x",)) == {"x/flex", "x/priority"}
    assert used(*rows, ignore=("X",)) == {"x/flex", "x/priority"}
    assert used(*rows, ignore=("x/fp8",)) == {"x", "x/us", "x/flex", "x/priority"}
    assert used(*rows, only=("x/flex",)) == {"x/flex"}
    endpoint = listed(row("Z.AI", "z-ai/fp8"), slugs={"Z.AI": "zai"})[0]
    assert all(matches(endpoint, name) for name in ("zai", "z-ai", "z.ai", "z-ai/fp8"))
    assert not matches(endpoint, "z-ai/fp")


def test_the_users_other_wishes_exclude_too() -> None:
    """Price bounds in dollars a million and a list of formats."""
    assert used(*MARKET, max_price={"completion": 2.25}) == {"chutes/int4", "siliconflow/fp8"}
    assert used(*MARKET, max_price={"prompt": 0.49}) == set()
    assert used(*MARKET, quantizations=("fp8",)) == {"siliconflow/fp8"}
    everyone = used(*MARKET, precision="any")
    assert everyone == {each["tag"] for each in MARKET if each["status"] == 0}


def test_the_provider_block_names_tags_and_bounds_the_bill() -> None:
    """Only the tags, no fallbacks for a single one, max_price in dollars a million of the dearest of them."""
    chutes, silicon = listed(MARKET[0], MARKET[1] | {"pricing": {"prompt": "0.0000009", "completion": "0.0000011"}})
    block = provider_block([chutes], NO_WISH)
    assert block == {
        "sort": "price", "only": ["chutes/int4"], "allow_fallbacks": False,
        "max_price": {"prompt": 0.5, "completion": 2.0},
    }  # fmt: skip
    both = provider_block([chutes, silicon, silicon], NO_WISH)
    assert both["only"] == ["chutes/int4", "siliconflow/fp8"]
    assert both["allow_fallbacks"] is True
    assert both["max_price"] == {"prompt": 0.9, "completion": 2.0}
    lower = provider_block([chutes], Providers(max_price={"completion": 1.5, "request": 0.1}))
    assert lower["max_price"] == {"prompt": 0.5, "completion": 1.5, "request": 0.1}


def test_fields_of_openrouter_pass_through_and_ours_do_not() -> None:
    """What the user writes for OpenRouter is sent as it stands; eyas's own keys are not."""
    wish = Providers(
        precision="any", routing="gateway", sort={"by": "price", "partition": "none"}, data_collection="deny", zdr=True,
        require_parameters=True, quantizations=("int4",), order=("x",), ignore=("y",), allow_fallbacks=False, unknown="accept",
        options={"x": {"a": 1}}, preferred_min_throughput={"p90": 20},
    )  # fmt: skip
    block = provider_block(listed(MARKET[0], MARKET[1]), wish)
    assert not block.keys() & {"precision", "routing", "unknown", "drop_above", "require_streamed"}
    assert (block["order"], block["ignore"], block["allow_fallbacks"]) == (["x"], ["y"], False)
    assert (block["sort"], block["data_collection"], block["zdr"]) == (
        {"by": "price", "partition": "none"},
        "deny",
        True,
    )
    assert (block["options"], block["quantizations"], block["require_parameters"]) == ({"x": {"a": 1}}, ["int4"], True)
    assert block["preferred_min_throughput"] == {"p90": 20}


def test_barred_siblings_of_a_bare_tag_are_ignored() -> None:
    """A bare tag names all of its provider's endpoints on the API's side, so the bad ones are named for exclusion."""
    good, bad, tier, other = listed(
        row("X", "x", "int4"), row("X", "x/fp4", "fp4"), row("X", "x/flex", "fp4"), row("Y", "y/fp4", "fp4")
    )
    assert provider_block([good], NO_WISH, [bad, tier, other])["ignore"] == ["x/fp4"]
    assert provider_block([good], Providers(ignore=("z",)), [bad])["ignore"] == ["z", "x/fp4"]
    assert "ignore" not in provider_block([good], NO_WISH, [other])


def test_a_request_must_fit_the_endpoint() -> None:
    """Input and output share the context; max_tokens stays below the endpoint's own limit; tools where they are taken."""
    plain, tools = listed(
        row("X", "x", context_length=1000, max_completion_tokens=600),
        row("Y", "y", context_length=None, max_completion_tokens=None, supported_parameters=["temperature"]),
    )
    assert can_serve(plain, 400, 600, tools=True)
    assert not can_serve(plain, 401, 600, tools=False)
    assert not can_serve(plain, 1, 601, tools=False)
    assert can_serve(tools, 10**9, 10**9, tools=False)
    assert not can_serve(tools, 1, 1, tools=True)


def test_who_served_is_found_by_display_name() -> None:
    """Spelling of spaces and case does not matter; a provider that is not among the allowed ones is none."""
    endpoints = listed(*MARKET[:3])
    for name in ("Moonshot AI", "moonshotai", "MoonshotAI"):
        assert served_by(name, endpoints) == endpoints[2]
    assert served_by("Fireworks", endpoints) is None
