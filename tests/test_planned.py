"""The plan in words: the advice comes first, tables fit the terminal, every wall has its remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eyas.ledger import nano_dollars
from eyas.plan.estimate import Source
from eyas.plan.figures import Wish
from eyas.plan.scenarios import Ground, KeyLimit, Wall
from eyas.report.next_step import next_step
from eyas.report.planned import quantity, short, tables
from tests.plankit import config, endpoint, estimate, ground, market, plan, wall

MILLION = 1_000_000


def test_the_first_line_is_the_advice() -> None:
    """A plan that fits says its cost and minutes; one that does not says which quota does."""
    fits = tables(plan(ground(config(7 * MILLION))), 120).splitlines()[0]
    assert fits.startswith("7 M tokens a set: about $92.")
    assert fits.endswith(" minutes in metered mode")
    assert " of $100.00, " in fits
    too_much = tables(plan(ground(config(10 * MILLION))), 200).splitlines()[0]
    assert too_much.startswith("10 M tokens a set: about $132.")
    assert "and $100.00 may be spent: it does not fit. Choose 7 M tokens a set: about $92." in too_much


def test_without_a_quota_every_prompt_is_priced() -> None:
    """Few prompts fit whole; many do not, and a quota is chosen."""
    few = plan(ground(config(), works=1000))["advice"]
    assert few.startswith("An answer to every prompt: about $")
    many = plan(ground(config()))
    assert "it does not fit. Choose 7 M" in many["advice"]
    assert many["largest_output_tokens"] < 7.3 * MILLION


def test_no_quota_of_the_table_fits() -> None:
    """Then the largest that would fit is said; with no money, that none does."""
    assert plan(ground(config()), wall(30))["advice"].endswith("About 2.1 M tokens a set would fit")
    assert plan(ground(config()), wall(0.01))["advice"].endswith("No quota fits")


def test_a_tight_plan_says_so() -> None:
    """Within the cap, but without the margin."""
    of = config(8 * MILLION)
    tight = plan(ground(of, market(of, endpoint("chutes", 0, 2.0))))
    assert tight["fits"]
    assert not tight["comfortable"]
    assert tight["advice"].endswith("Less than 5% is to spare")


def done() -> Ground:
    """A run whose quotas are met."""
    of = ground(config(7 * MILLION))
    for each in of.facts.values():
        each.kept = 7 * MILLION
    return of


def test_what_is_done_needs_no_advice() -> None:
    """A met quota leaves nothing to ask, and nothing to choose."""
    found = plan(done())
    assert found["advice"].startswith("Nothing is left to ask")
    assert found["minutes"] == {"low": 0.0, "expected": 0.0, "high": 0.0}
    text = tables(found, 80)
    assert "To be bought" in text
    assert not any(each in text for each in ("What fits", "Minutes", "In flight", "<- choose"))


def test_quotas_that_no_prompt_reaches_are_one_row() -> None:
    """Where the prompts end first all quotas cost the same; none is to be chosen."""
    text = tables(plan(ground(config(), works=100)), 80)
    assert [line.split("  ")[0] for line in text.splitlines() if "left" in line and "fits" in line] == ["all prompts"]
    assert "<- choose" not in text
    some = tables(plan(ground(config(), works=100), wish=Wish((50_000, 7 * MILLION, 8 * MILLION))), 80)
    assert [line.split("  ")[0] for line in some.splitlines() if "left" in line and "fits" in line] == [
        "50 k",
        "7 M or more",
    ]


def test_small_amounts_are_said_in_words() -> None:
    """Less than a minute is no 0 minutes, and equal ends are no band."""
    few = plan(ground(config(), works=1, guess=estimate(100)))
    assert few["advice"].endswith("less than a minute in strict mode")
    assert "to $" not in few["advice"]


def test_the_next_step_follows_the_advice() -> None:
    """A run, a smaller quota, a first few where lengths are a guess, an export where nothing is left."""
    run = Path("RUN.toml")

    def after(of: Ground, money: Wall | None = None, out: Path | None = None) -> str:
        return next_step(plan(of, money), of.config, run, out)

    fits = ground(config(7 * MILLION, mode="metered"))
    assert plan(fits)["advised_mode"] == "metered"
    assert after(fits) == "`eyas run RUN.toml`"
    assert after(fits, out=Path("plan.json")) == "`eyas run plan.json`"
    assert after(ground(config(7 * MILLION))).endswith('with [budget] mode = "metered" it would take less time')
    assert after(ground(config(10 * MILLION))).startswith("set [budget] output_tokens = 7_000_000, then `eyas plan")
    assert "output_tokens = 2_100_000," in after(ground(config(10 * MILLION)), wall(30))
    assert after(ground(config(10 * MILLION)), wall(0.01)).startswith("raise [budget] usd or the key's limit, then")
    assert 'mode = "strict" it would hardly' in after(ground(config(mode="metered"), works=300))
    guessed = ground(config(mode="metered"), works=300, guess=estimate(source=Source.PRIOR))
    assert after(guessed).startswith("`eyas run RUN.toml --limit 20` asks a first few")
    assert after(done()).startswith("`eyas export ")


SHAPES = [
    {},
    {"guess": estimate(2000, 0.8, source=Source.PRIOR)},
    {"works": 300},
]


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("quota", [None, 10 * MILLION])
def test_tables_fit_the_terminal(width: int, shape: dict[str, Any], quota: int | None) -> None:
    """No line is wider than asked, whatever is planned; numbers are in full where there is room."""
    of = config(quota)
    sellers = (endpoint("chutes/int4", 0.44, 2.0), endpoint("a-provider-of-some-name/int4", 0.44, 2.2))
    text = tables(
        plan(ground(of, market(of, *sellers), **shape), wish=Wish(local_tps=1100, train_max_length=4096)), width
    )
    assert max(map(len, text.splitlines())) <= width
    assert ("20,000" in text) == (width == 120 and "works" not in shape)
    for each in (
        "To be bought",
        "What fits",
        "Answers that end unfinished",
        "Minutes",
        "Who may answer",
        "In flight: ",
    ):
        assert each in text


def _text(money: Wall, **more: Any) -> str:
    return " ".join(tables(plan(ground(config(7 * MILLION)), money, Wish(**more)), 2000).split())


def test_each_wall_has_its_remedy() -> None:
    """The key's limit below the cap, no limit at all, an unknown one, a low balance."""
    cap = nano_dollars(100)
    low = _text(Wall(cap, key=nano_dollars(40), key_limit=KeyLimit.LIMITED))
    assert (
        "The key may spend $40.00 more, this run $100.00: it would stop at the key's limit, with exit 6. Raise that"
        in low
    )
    assert "give it one of $100.00" in _text(Wall(cap, key_limit=KeyLimit.NONE))
    assert "set OPENROUTER_API_KEY" in _text(Wall(cap))
    enough = _text(Wall(cap, key=nano_dollars(95), key_limit=KeyLimit.LIMITED))
    assert "should it cost more than $95.00, it stops at the key's limit" in enough
    assert "The account holds $200.00." in _text(wall(balance=nano_dollars(200)))
    assert "Second wall: the key may spend $100.00 more" in _text(wall())
    assert "it would stop there, with exit 6. Add credits, or lower [budget] usd" in _text(
        wall(balance=nano_dollars(60))
    )
    assert "more than the balance: expect such waits" in _text(wall(balance=nano_dollars(60)))


def test_what_was_asked_for_is_said() -> None:
    """A local engine's hours, and the dollars beyond a trainer's length."""
    text = _text(wall(), local_tps=1000.0, train_max_length=2048)
    assert "On a machine of yours at 1,000 tokens/s: 11.7 hours, $0 to an API." in text
    assert "Rows longer than 2,048 tokens: 28.0%" in text
    assert "machine of yours" not in _text(wall())


def test_the_keys_that_other_programs_read() -> None:
    """Plan --json keeps its names; money is JSON numbers, in order."""
    found = plan(ground(config(7 * MILLION)), wish=Wish(local_tps=1000, train_max_length=2048))
    assert found["schema"] == 1
    assert found["datasets"].keys() == {"B3", "B4", "B5", "B6", "B7", "B8"}
    (one, *_) = found["datasets"].values()
    assert {"rows", "prompts", "prompt_tokens", "output_tokens", "usd"} <= one.keys()
    for band in (one["usd"], *(each["usd"] for each in found["scenarios"])):
        assert 0 < band["low"] <= band["expected"] <= band["worst"]
    assert [each["output_tokens"] for each in found["scenarios"]] == [
        5 * MILLION,
        7 * MILLION,
        8 * MILLION,
        10 * MILLION,
    ]
    assert [each["fits"] for each in found["scenarios"]] == [True, True, False, False]
    assert [each["chosen"] for each in found["scenarios"]] == [False, True, False, False]
    assert found["exposure_usd"] == pytest.approx(2000 * (16_384 * 2.2 + 190 * 0.1) / 1e6, rel=0.01)
    assert found["max_in_flight_at_cap"] == int(5 / (found["exposure_usd"] / 2000))
    assert found["minutes"].keys() == {"low", "expected", "high"}


@pytest.mark.parametrize(
    ("tokens", "said", "brief"),
    [(7_000_000, "7 M", "7.0M"), (2_500_000, "2.5 M", "2.5M"), (300_000, "300 k", "300.0k"), (950, "950", "950")],
)
def test_numbers_are_said_as_people_say_them(tokens: int, said: str, brief: str) -> None:
    """In words and in narrow tables."""
    assert quantity(tokens) == said
    assert short(tokens) == brief
