"""The plan of a run at servers of one's own: hours instead of dollars, and beside it the API of [fallback]."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyas.config import RunConfig
from eyas.engine.inputs import Inputs, Offer
from eyas.engine.planning import Sources, draft
from eyas.errors import UsageError
from eyas.plan import routes
from eyas.plan.engines import Known, pace, share_done
from eyas.plan.figures import Wish
from eyas.providers.choose import Verdict
from eyas.providers.rules import Rule
from eyas.providers.throughput import Throughput
from eyas.report.next_step import next_step
from eyas.report.planned import tables
from eyas.state import State
from eyas.types import Endpoint, Prompt
from tests.localkit import HERE, THERE, answered, config, replica
from tests.plankit import endpoint

MILLION = 1_000_000


def asked(number: int = 40_000, tools: int = 0) -> Inputs:
    """So many prompts in both sets."""
    made = [
        Prompt(f"{n:016x}", name, ({"role": "user", "content": f"{n}"},), ({"type": "function"},) * (n < tools))
        for name in ("B3", "B4")
        for n in range(number)
    ]
    return Inputs(made, Counter({(each.dataset, each.id): 100 for each in made}), (), 0)


def offer(*endpoints: Endpoint, away: tuple[Endpoint, ...] = ()) -> Offer:
    """Those that may answer, and those that are away."""
    found = [Verdict(each, use=True, reason="answers", rule=Rule.STATUS) for each in endpoints]
    return Offer(
        (*found, *(Verdict(e, use=False, reason="refused: is it started?", rule=Rule.STATUS) for e in away)), {}
    )


BOTH = offer(replica(HERE), replica(THERE))
API = offer(endpoint("chutes/int4", 0.44, 2.0), endpoint("inceptron/int4", 0.44, 2.2))


def planned(
    of: RunConfig, state: State | None = None, *, tps: float | None = None, number: int = 2000, silent: str = ""
) -> dict[str, Any]:
    """The figures of a plan at both servers, and at the API where there is [fallback]."""
    inputs = asked(number)
    there = None if of.fallback is None or silent else Sources(of.fallen_back, inputs, API, None)
    return draft(Sources(of, inputs, BOTH, None, there, silent), state or State(), Wish(local_tps=tps)).figures


def test_hours_are_tokens_over_tokens_a_second() -> None:
    """What is owed over what the user says the servers do; no dollar anywhere."""
    found = planned(config(quota=MILLION), tps=1000)
    tokens = found["total"]["output_tokens"]
    assert found["local"]["hours"] == pytest.approx(tokens / 1000 / 3600, rel=0.01)
    assert found["minutes"]["expected"] == pytest.approx(tokens / 1000 / 60, rel=0.01)
    assert found["minutes"]["low"] <= found["minutes"]["expected"] <= found["minutes"]["high"]
    assert (found["local"]["source"], found["local"]["usd"], found["fits"]) == ("given", 0.0, True)
    assert found["total"]["usd"] == {"low": 0.0, "expected": 0.0, "high": 0.0, "worst": 0.0}
    text = tables(found, 120)
    assert text.startswith(
        f"1 M tokens a set: {found['minutes']['expected']:.0f} minutes at your 2 servers, no dollars"
    )
    assert "$" not in text
    assert text.count("dollar") == 1
    assert draft(Sources(config(), asked(10), BOTH, None), State(), Wish()).pilot(50) == 0, "a pilot costs nothing"


def test_the_run_tells_how_fast_its_servers_are() -> None:
    """Without a word of the user the answers of the run do; an API's answers tell nothing."""
    known = planned(config(), answered({HERE: 30, THERE: 25, "chutes/int4": 40}))
    assert (known["local"]["source"], known["local"]["tps"], known["local"]["answers"]) == ("measured", 2750, 55)
    assert known["speed"]["answers"] == 55
    assert "2,750 tokens/s, 2 servers together, measured on 55 answers of this run with 55 in flight" in tables(
        known, 200
    )
    assert "lets 256 fly" in tables(known, 200), "more will fly than flew"
    said = planned(config(), answered({HERE: 30, THERE: 25}), tps=500)
    assert (said["local"]["source"], said["local"]["tps"]) == ("given", 500)


def test_where_nobody_knows_it_is_said() -> None:
    """No minutes rather than wrong ones, and how to learn them."""
    found = planned(config())
    assert (found["minutes"], found["local"]["hours"], found["local"]["source"]) == (None, None, "unknown")
    text = tables(found, 120)
    assert "how long your 2 servers will take is not known, no dollars" in text
    assert "--local-tps says it" in text
    assert "--pilot 50` asks a first few" in next_step(found, config(), Path("RUN.toml"), None)
    sure = planned(config(), tps=100)
    assert next_step(sure, config(), Path("RUN.toml"), Path("p.json")) == "`eyas run p.json`"


def test_both_ways_stand_side_by_side() -> None:
    """With [fallback]: hours here, minutes and dollars there, which is sooner, which is cheaper, and a mix of them."""
    slow = planned(config(quota=MILLION, fallback=True, after=60.0), tps=100)
    there, mix = slow["fallback"], slow["mix"]
    assert (there["backend"], there["total"]["usd"]["expected"] > 2) == ("openrouter", True)
    assert (slow["sooner"], slow["cheaper"]) == ("fallback", "local")
    assert mix["local_minutes"] == 60
    assert mix["local_share"] == pytest.approx(60 / slow["minutes"]["expected"], rel=0.01)
    rest = 1 - mix["local_share"]
    assert mix["usd"]["expected"] == pytest.approx(rest * there["total"]["usd"]["expected"], rel=0.01)
    assert 60 < mix["minutes"] < 60 + there["minutes"]["expected"] + 0.2
    text = " ".join(tables(slow, 80).split())
    for part in ("Both ways", "Sooner: openrouter; cheaper: here.", "Here for 60 minutes (18% of it), the rest by"):
        assert part in text
    fast = planned(config(quota=MILLION, fallback=True, after=600.0), tps=50_000)
    assert (fast["sooner"], fast["mix"]["local_share"], fast["mix"]["usd"]["expected"]) == ("local", 1.0, 0.0)
    assert "All of it is done here before openrouter would take over." in tables(fast, 120)
    unknown = planned(config(fallback=True))
    assert (unknown["sooner"], unknown["mix"]) == (None, None)
    assert "not known" in tables(unknown, 80)


def test_an_api_that_cannot_be_asked_does_not_end_the_plan() -> None:
    """What the servers here take is said all the same, and why the rest is not known."""
    found = planned(config(fallback=True), tps=100, silent="api.test cannot be reached")
    assert found["fallback"] is None
    assert "What [fallback] would cost is not known: api.test cannot be reached." in tables(found, 120)


def test_a_server_that_is_away_is_named() -> None:
    """The plan is for those that answer; without any there is none."""
    of, inputs = config(), asked(10)
    found = draft(Sources(of, inputs, offer(replica(HERE), away=(replica(THERE),)), None), State(), Wish()).figures
    assert found["excluded"] == [{"tag": THERE, "reason": "refused: is it started?"}]
    assert f"{THERE} is left out of this plan: refused: is it started?\n" in tables(found, 120) + "\n"
    assert [each["tag"] for each in found["endpoints"]] == [HERE]
    with pytest.raises(UsageError, match=r"eyas doctor RUN\.toml"):
        draft(Sources(of, inputs, offer(away=(replica(HERE),)), None), State(), Wish())


def test_a_context_that_is_too_short_is_refused() -> None:
    """As a run would be, with what to do."""
    short = offer(replica(HERE, context=4096))
    with pytest.raises(UsageError, match="start the server with a longer context"):
        draft(Sources(config(), asked(10), short, None), State(), Wish())


def test_each_server_is_a_way_of_its_own() -> None:
    """Asked alike, without a `provider` object, also under routing = "gateway"; a plan does not go stale when one dies."""
    made = routes(config(), [replica(HERE), replica(THERE)])
    assert [(each.tag, each.block, each.prices.free) for each in made] == [(HERE, {}, True), (THERE, {}, True)]
    found = planned(config(), number=10)
    assert [each["share"] for each in found["endpoints"]] == [0.5, 0.5]
    whole, part = (
        draft(Sources(config(), asked(10), each, None), State(), Wish()).basis for each in (BOTH, offer(replica(HERE)))
    )
    assert whole.digest == part.digest


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("tps", [None, 10.0, 5000.0])
@pytest.mark.parametrize("fallback", [False, True])
def test_tables_fit_the_terminal(width: int, tps: float | None, fallback: bool) -> None:
    """No line is wider than asked."""
    assert max(map(len, tables(planned(config(fallback=fallback), tps=tps), width).splitlines())) <= width


@given(st.floats(0.1, 1e6), st.none() | st.floats(0.01, 1e6))
def test_a_mix_is_never_more_than_all(local: float, until: float | None) -> None:
    """The API takes over within the time that all would take here, and does the rest."""
    after, done = share_done(local, until)
    assert 0 <= after <= local
    assert 0 <= done <= 1
    assert after == pytest.approx(done * local)


def test_what_the_user_says_goes_first() -> None:
    """Then what was measured; else nothing is known."""
    seen = Throughput(800, 60, 10, 50)
    assert (pace(100, seen).tps, pace(None, seen).tps, pace(None, None).tps) == (100, 800, None)
    assert [pace(*each).known for each in ((1, None), (None, seen), (None, None))] == list(Known)
