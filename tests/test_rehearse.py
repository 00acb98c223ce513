"""Rehearsals: the real engine in simulated time. Counts and money hold as in a run; what differs is that nothing is bought."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from eyas.errors import UsageError
from eyas.events import Intent, PromptAdded, SessionOpened, Settled
from eyas.ledger import nano_dollars
from eyas.plan.curve import kaplan_meier
from eyas.rehearse import Job, Origin, Played, Wish, rehearsal, rehearse
from eyas.rehearse.demand import counts_of, light, lightly, own
from eyas.rehearse.gather import of_scenario
from eyas.rehearse.market import Speed, market, speeds
from eyas.rehearse.smaller import smaller
from eyas.rehearse.variants import variants
from eyas.sim import SCENARIOS, Workload, load
from eyas.state import fold
from eyas.types import Endpoint, Prices, Prompt, Verdict, Work

SMALL = Workload(datasets=("A", "B"), prompts=150, output_tokens=60_000, max_tokens=4096, in_flight=20, usd=5.0)
ORIGIN = Origin("", "founding", "scenario", 0, {"A": "scenario", "B": "scenario"})


def small(name: str = "founding", **more: Any) -> Job:
    """A small run in a scenario."""
    job, _ = of_scenario(structs.replace(load(name), workload=structs.replace(SMALL, **more)))
    return job


def test_a_seed_decides_everything() -> None:
    """The same seed plays the same run, another one another."""
    assert rehearse(small(), 3) == rehearse(small(), 3)
    assert rehearse(small(), 3) != rehearse(small(), 4)


def test_a_quota_is_met_and_paid_for_once() -> None:
    """Each set gets its tokens within a percent or one answer, and what is paid are those tokens and their prompts."""
    played = rehearse(small(), 1)
    assert played.reason == "complete"
    for tokens in played.datasets.values():
        assert tokens == pytest.approx(60_000, rel=0.01, abs=4096)
    exact = played.tokens * 2200 + played.answers * 200 * 500
    assert played.paid == played.kept == exact


def test_looking_less_often_changes_next_to_nothing() -> None:
    """A look every quarter of a second, as in a run, and the rehearsal's own pace give the same tokens and dollars."""
    often, seldom = rehearse(small(), 1, 0.25), rehearse(small(), 1)
    assert seldom.paid == pytest.approx(often.paid, rel=0.03)
    assert seldom.tokens == pytest.approx(often.tokens, rel=0.03)
    assert seldom.seconds == pytest.approx(often.seconds, rel=0.25)


@settings(max_examples=8)
@given(
    seed=st.integers(0, 10_000), name=st.sampled_from(sorted(SCENARIOS)), usd=st.floats(0.05, 1.0),
    mode=st.sampled_from(["strict", "metered"]),
)  # fmt: skip
def test_the_cap_holds_in_every_market(seed: int, name: str, usd: float, mode: str) -> None:
    """Strict: what is paid and what is held for unknown outcomes never passes the cap. Metered: by chance, and by little."""
    played = rehearse(small(name, usd=usd, mode=mode, prompts=60), seed)
    most = nano_dollars(usd)
    assert played.paid + played.unknown <= most * (1.0 if mode == "strict" else 1.05)
    assert played.kept + played.wasted <= played.paid
    assert played.refused + played.failed <= played.requests
    assert 0 <= played.tail <= played.seconds


def test_the_founding_run_at_a_twentieth_of_its_size() -> None:
    """About half an hour and $95 of $100; at four times the speed a quarter of the time for the same money."""
    slow, fast = (rehearse(smaller(of_scenario(load(name))[0], 0.05), 1) for name in ("founding", "founding-fast"))
    assert 25 < slow.seconds / 60 < 40
    assert fast.seconds / 60 < 15
    for played in (slow, fast):
        assert played.reason == "complete"
        assert played.paid / 1e9 / 0.05 == pytest.approx(94.5, rel=0.02)
    assert slow.tokens / slow.seconds / (0.05 * 2000) == pytest.approx(10.5, rel=0.2)


def test_what_a_run_has_is_not_bought_again() -> None:
    """A run that has begun is rehearsed from where it stands: only what is owed is asked, its money is what is left."""
    job = small(prompts=10, output_tokens=None, in_flight=5)
    first, second = job.prompts[0], job.prompts[2]
    prices = Prices(500_000_000, 2_200_000_000)
    events = [
        SessionOpened(at=1.0, model=job.config.target.model, cap=nano_dollars(5.0), quotas={"A": None, "B": None},
                      waste_limit=None, samples={}, family="kimi-k2.5", thinking={}),
        *(PromptAdded(1.0, p.dataset, p.id, 200, 0) for p in job.prompts),
        Intent(at=2.0, attempt=1, work=Work("A", first.id), number=1, tag="chutes/int4", prices=prices, reserved=9_000_000),
        Settled(at=3.0, attempt=1, verdict=Verdict.DONE, cost=1_000_000, tokens=400, provider="Chutes"),
        Intent(at=2.0, attempt=2, work=Work("A", second.id), number=1, tag="chutes/int4", prices=prices, reserved=9_000_000),
    ]  # fmt: skip
    state = fold(events)
    played = rehearse(replace(job, state=state), 0)
    assert played.answers == 19
    assert played.tokens + 400 == sum(played.datasets.values())
    assert state.last_attempt == 2, "the run's own state is left alone"
    assert len(smaller(replace(job, state=state), 0.999).prompts) <= 19


def test_a_conversation_is_rehearsed_turn_by_turn() -> None:
    """Every turn is a request of its own, and its prompt holds the turns before it."""
    config, _ = own(structs.replace(load("clean"), workload=SMALL))
    config = config.model_copy(update={"datasets": config.datasets[:1], "budget": config.budget.model_copy(
        update={"output_tokens": None})})  # fmt: skip
    talk = [
        Prompt(f"{n:016x}", "A", ({"role": "user", "content": "hello"},), turns=("go on, please",) * 2)
        for n in range(5)
    ]
    counts = {("A", prompt.id): 100 for prompt in talk}
    played = rehearse(Job(config, lightly(talk, counts), counts, load("clean")), 0)
    assert played.answers == 15
    cheapest = 440
    assert played.paid > played.tokens * 2000 + 15 * 100 * cheapest


def test_lengths_come_from_the_curve_of_a_set() -> None:
    """A dataset with a curve of its own has its lengths, the other one the scenario's."""
    job = replace(small(prompts=40, output_tokens=None), curves={"A": kaplan_meier([50] * 100, [])})
    played = rehearse(job, 0)
    assert played.datasets["A"] == pytest.approx(40 * 52, rel=0.05)
    assert played.datasets["B"] > 40 * 500


def test_a_smaller_run_has_everything_in_proportion() -> None:
    """Slots, rates, quotas, prompts and dollars shrink alike, so that its minutes stay about what they are."""
    job = small("three", prompts=4000, output_tokens=100_000, in_flight=200, usd=8.0)
    half = smaller(job, 0.5)
    assert half.config.limits.in_flight == 100
    assert half.config.budget.usd == pytest.approx(4.0)
    assert half.config.quota("A") == 50_000
    assert len(half.prompts) == pytest.approx(4000, rel=0.1)
    assert [p.slots for p in half.scenario.providers] == [450, 300, 150]
    assert [p.per_second for p in half.scenario.providers] == [50.0, 30.0, 15.0]
    assert [p.batching for p in half.scenario.providers] == [150.0] * 3
    assert smaller(job, 1.0) is job


def test_variants_differ_in_one_setting_each() -> None:
    """Half and twice as many in flight and as long, the other mode, the other routing; never more than RUN.toml may ask."""
    config = small(in_flight=3000).config
    found = {each.setting: each.config for each in variants(config)}
    assert list(found) == [
        "in_flight = 1_500", "in_flight = 5_000", "max_tokens = 2_048", "max_tokens = 8_192", 'mode = "metered"',
        'routing = "gateway"',
    ]  # fmt: skip
    assert found["in_flight = 1_500"].limits.in_flight == 1500
    assert found["max_tokens = 8_192"].max_tokens("A") == 8192
    assert found['mode = "metered"'].budget.usd == config.budget.usd


def test_figures_tell_of_all_seeds_and_of_all_variants() -> None:
    """Percentiles rise, shares are shares, and each variant that some endpoint can serve has its row."""
    heard = list[tuple[int, int]]()
    told = rehearsal(small(prompts=15), ORIGIN, Wish(3, workers=1, heard=lambda done, of: heard.append((done, of))))
    assert told["schema"] == 1
    assert told["seeds"] == sum(told["ends"].values()) == 3
    for key in (
        "minutes",
        "usd",
        "output_tokens",
        "tail_minutes",
        "refused_share",
        "exposure_usd",
        "yield",
        "cut_share",
    ):
        assert 0 <= told[key]["p10"] <= told[key]["p50"] <= told[key]["p90"]
    assert sum(told["providers"].values()) == pytest.approx(1.0, abs=1e-3)
    assert len(told["variants"]) == 6
    assert heard[-1] == (31, 31)
    alone = rehearsal(small(prompts=15), ORIGIN, Wish(3, compare=False, workers=1))
    assert alone["minutes"] == told["minutes"]
    assert alone["variants"] == []


def test_a_run_with_nothing_owed_is_said() -> None:
    """Nothing to ask is no rehearsal of zero minutes."""
    job = small()
    with pytest.raises(UsageError, match="nothing is left to ask"):
        rehearsal(replace(job, prompts=()), ORIGIN, Wish(workers=1, compare=False))


def test_the_market_of_a_list_has_its_prices_and_measured_speeds() -> None:
    """Prices are the list's, rounded down to whole nano-dollars; what it does not say is the scenario's, or a plan's guess."""
    row = {"tag": "new/int4", "throughput_last_30m": {"p50": 33.0}, "latency_last_30m": {"p50": 700}}
    found = speeds(
        {
            "endpoints": [
                row,
                {"tag": "old/int4", "throughput_last_30m": None},
                {"tag": "odd", "throughput_last_30m": {"p50": "?"}},
            ]
        }
    )
    assert found == {"new/int4": Speed(33.0, 0.7), "old/int4": Speed(), "odd": Speed()}
    assert speeds(None) == speeds({"endpoints": 3}) == {}
    new = Endpoint("m", "New", "new", "new/int4", Prices(247_500_000, 2_000_000_000), "int4", 131_072, 65_536, 0)
    known = Endpoint("m", "Chutes", "chutes", "chutes/int4", Prices(1_000_000_000, 3_000_000_000), "int4")
    first, second = market(load("founding"), [new, known], found).providers
    assert (first.prompt, first.completion, first.tps, first.ttft, first.slots) == (
        "0.000000247",
        "0.000002000",
        33.0,
        0.7,
        1000,
    )
    assert (second.prompt_nano, second.completion_nano, second.slots) == (1000, 3000, 1400)
    assert not first.cancel_stops
    assert second.cancel_stops


def test_prompts_are_kept_as_nothing_but_their_size() -> None:
    """No text of a prompt goes into a rehearsal."""
    prompt = Prompt(
        "0" * 16, "A", ({"role": "user", "content": "secret"},), tools=({"type": "function"},), turns=("secret",)
    )
    kept = light(prompt, 12)
    assert "secret" not in repr(kept)
    assert kept.tools
    assert len(kept.turns) == 1
    assert counts_of([kept], 12) == {("A", "0" * 16): 12}


def test_a_play_says_where_it_was_when_nothing_came() -> None:
    """A cap that covers no request ends the run at once, and no figure divides by nothing."""
    played = rehearse(small(usd=0.000001), 0)
    assert isinstance(played, Played)
    assert (played.reason, played.answers, played.tokens) == ("cap", 0, 0)
