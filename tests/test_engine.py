"""The engine on a virtual clock: money, quotas, storage and interrupts over whole runs, scripted or in a simulated world."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from eyas.config import parse
from eyas.engine.recover import doubles, recovers
from eyas.errors import StorageError
from eyas.families import Loaded
from eyas.ledger import nano_dollars
from eyas.sim import Faults, Reply, load
from eyas.sim import World as Sim
from eyas.types import Label, StopReason, Verdict
from tests import virtual as v
from tests.stage import SMALL, TOML, Stage, simulated
from tests.virtual import failed, good, now, play, reply, script


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["clean", "rough", "storm"])
def test_every_prompt_ends_and_no_dollar_is_lost(kimi: Loaded, name: str, seed: int) -> None:
    """In every scenario each work ends in one state, few fly, the cap holds, and we never book less than the world bills."""
    stage = Stage(kimi)
    reason = play(simulated(stage, replace(load(name), **SMALL), seed))
    stage.check()
    ended = stage.ended()
    assert reason is StopReason.COMPLETE
    assert sum(ended.values()) == 40
    assert ended.keys() <= {Verdict.DONE, Verdict.PARTIAL, Verdict.FAILED, Verdict.UNKNOWN, Verdict.REFUSED}
    assert ended[Verdict.DONE] >= (40 if name == "clean" else 30)
    assert stage.transport.peak <= stage.in_flight
    money, billed = stage.state.money, stage.sim.books.billed
    assert billed <= money.settled + money.unknown
    if not money.unknown:
        assert money.settled == billed


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", ["clean", "rough", "storm"])
def test_the_cap_holds_to_the_last_cent(kimi: Loaded, name: str, seed: int) -> None:
    """A run whose cap ends before its prompts stops for the cap, and the world billed no more than that."""
    stage = Stage(kimi, usd=0.004)
    assert play(simulated(stage, replace(load(name), **SMALL), seed)) is StopReason.CAP
    stage.check()
    money = stage.state.money
    assert stage.sim.books.billed <= money.committed <= nano_dollars("0.004")
    assert money.settled > 0.5 * nano_dollars("0.004") or money.unknown
    assert stage.ended()[Verdict.DONE] > 0


def test_a_quota_is_met_within_one_answer(kimi: Loaded) -> None:
    """Each dataset ends at its quota, neither short of it nor far above, while many fly at once."""
    stage = Stage(kimi, prompts=60, quota="output_tokens = 2000", in_flight=16)
    assert play(simulated(stage, replace(load("clean"), **SMALL), 1)) is StopReason.COMPLETE
    stage.check()
    for dataset in stage.state.datasets.values():
        assert dataset.quota.met
        assert dataset.quota.kept <= 2000 + 400
        assert sum(dataset.ended.values()) < 60


def test_unknown_outcomes_are_looked_up_and_corrected(kimi: Loaded) -> None:
    """Answers without usage are kept; their cost comes from the generation, exactly as the world billed it."""
    scenario = replace(load("clean"), **SMALL, faults=Faults(no_usage=0.5, cut_close=0.3), generation_delay=3.0)
    stage = Stage(kimi)
    assert play(simulated(stage, scenario, 4)) is StopReason.COMPLETE
    stage.check()
    corrected = [event for event in stage.log.events if type(event).__name__ == "Corrected"]
    assert len(corrected) > 10
    assert stage.state.money.unknown == 0
    assert stage.state.money.settled == stage.sim.books.billed
    assert all(a.counts for a in stage.state.attempts.values() if a.answered)


@pytest.mark.parametrize("status", [401, 402])
def test_a_refused_key_stops_the_run(kimi: Loaded, status: int) -> None:
    """Key and credits end the session at once: nothing more starts, nothing is booked, the works stay owed."""
    stage = Stage(kimi)
    assert play(lambda: stage.run(script([good, good, failed(status, message="no")]))) is StopReason.KEY
    stage.check()
    assert len(stage.transport.sent) <= 2 * stage.in_flight
    assert {v for v in stage.ended() if v is not Verdict.DONE} == {Verdict.AGAIN}


DONE40 = {Verdict.DONE: 40}
TROUBLE = {
    "refused": ([failed(400, message="bad prompt"), good], {Verdict.REFUSED: 1, Verdict.DONE: 39}, 40),
    "rejected": ([failed(429, {"Retry-After": "2"}, message="busy")] * 30 + [good], DONE40, 70),
    "unreachable": ([v.unreachable] * 12 + [good], DONE40, 52),
    "in error": ([failed(502, message="oops")] * 2 + [good], DONE40, 42),
    "in error for ever": ([failed(500, message="oops")], {Verdict.FAILED: 40}, 120),
}


@pytest.mark.parametrize("name", TROUBLE)
def test_trouble_costs_nothing_and_ends(kimi: Loaded, name: str) -> None:
    """A 400 is not repeated, rejections are paced and count no try, errors are tried thrice; all of it is free."""
    answers, ended, sent = TROUBLE[name]
    stage = Stage(kimi)
    assert play(lambda: stage.run(script(answers))) is StopReason.COMPLETE
    stage.check()
    assert stage.ended() == ended
    assert len(stage.transport.sent) == sent
    assert stage.state.money.settled == ended.get(Verdict.DONE, 0) * nano_dollars("0.0001")
    assert (sum(known.tries for known in stage.state.works.values()) > 0) == name.startswith("in error")
    times = [when for when, _ in stage.transport.sent]
    assert times[-1] - times[0] < 300
    assert times[-1] - times[0] >= 2 or name != "rejected"


def test_a_failing_journal_stops_the_sending(kimi: Loaded) -> None:
    """From the first failed write on nothing leaves, wherever it hits, look-ups included; the error reaches the caller."""
    scenario = replace(load("clean"), **SMALL, faults=Faults(no_usage=0.5, early_cut=0.1))
    for fail_at in (42, 45, 50, 60, 70, 77, 85, 100, 120, 140, 160, 180):
        stage = Stage(kimi, fail_at=fail_at)
        with pytest.raises(StorageError, match="free some space"):
            play(simulated(stage, scenario, fail_at))
        assert stage.transport.open_now == 0
        assert stage.log.failed_at is not None
        assert all(when <= stage.log.failed_at for when, _ in stage.transport.sent)
        assert stage.log.late <= 2 * stage.in_flight, "the run went on starting requests"


@pytest.mark.parametrize("seconds", [0.05, 0.7, 1.5, 3.0, 6.0, 9.0])
@pytest.mark.parametrize("name", ["clean", "rough", "storm"])
def test_a_killed_run_resumes_where_it_was(kimi: Loaded, name: str, seconds: float) -> None:
    """I4, I5: what was answered is never bought again, each work ends, texts in flight are kept, no dollar is lost."""
    stage = Stage(kimi)

    async def main() -> StopReason:
        stage.sim = Sim(replace(load(name), **SMALL), 5, kimi.vocab, now, kimi.count_prompt)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await stage.run(stage.sim.handle)
        stage.killed()
        before = {work for work, known in stage.state.works.items() if known.answer is not None}
        last, left = stage.state.last_attempt, len(stage.state.left_open())
        assert left or seconds > 6 or name == "storm"
        reason = await stage.run(stage.sim.handle)
        assert not before & {a.work for a in stage.state.attempts.values() if a.id > last}
        return reason

    assert play(main) is StopReason.COMPLETE
    stage.check()
    assert sum(stage.ended().values()) == 40
    money, billed = stage.state.money, stage.sim.books.billed
    assert billed <= money.settled + money.unknown


async def _after(stage: Stage, seconds: float, times: int) -> None:
    await asyncio.sleep(seconds)
    for _ in range(times):
        stage.engine.interrupt()
        await asyncio.sleep(0)


def test_the_first_interrupt_drains(kimi: Loaded) -> None:
    """What flies lands whole, nothing more starts, and the rest stays owed."""
    stage = Stage(kimi)
    assert play(lambda: stage.run(script([good]), lambda s: _after(s, 0.6, 1))) is StopReason.INTERRUPTED
    stage.check()
    assert stage.ended() == {Verdict.DONE: stage.in_flight}


def test_the_second_interrupt_keeps_the_text(kimi: Loaded) -> None:
    """What flies is cut; text of enough tokens becomes a partial answer with its cost unknown, and nothing leaks."""
    stage = Stage(kimi)

    def slow() -> Reply:
        parts = [v.delta(content=" word")] * 5000
        return reply(*v.sse(*parts), headers={"X-Generation-Id": "gen-1"}, every=0.01)

    assert play(lambda: stage.run(script([slow]), lambda s: _after(s, 5.0, 2))) is StopReason.INTERRUPTED
    stage.check()
    assert stage.ended() == {Verdict.PARTIAL: stage.in_flight}
    assert stage.log.drafts.keys() == stage.state.attempts.keys()
    assert all(r.completion.content.startswith(" word word") for r in stage.answers)
    assert all(known.tokens >= 64 for known in stage.state.works.values())
    assert len(stage.state.unknown()) == stage.in_flight
    assert Label.COUNTED not in stage.state.labels.values()


def test_a_bill_above_its_reservation_is_booked_and_stops(kimi: Loaded) -> None:
    """A provider that breaks its price is booked in full, an alarm says so, and nothing more starts."""
    stage = Stage(kimi, in_flight=1)
    bill = v.delta(v.USAGE | {"cost": 0.5, "completion_tokens": 9}, "stop")
    assert (
        play(lambda: stage.run(script([good, lambda: reply(*v.sse(v.delta(reasoning="x", content="y"), bill)), good])))
        is StopReason.ALARM
    )
    stage.check()
    assert len(stage.transport.sent) == 2
    assert stage.state.money.settled == nano_dollars("0.5001")
    assert "above the" in stage.state.alarms[0]


RUN_ON = tuple(replace(provider, cancel_stops=False) for provider in load("clean").providers)
LATE = replace(load("clean"), **SMALL, providers=RUN_ON, faults=Faults(reset=0.3, html=0.05, early_cut=0.15))
"""A market that loses answers, but whose providers finish them."""


@pytest.mark.parametrize("seed", range(4))
def test_lost_answers_come_back_from_the_cache(kimi: Loaded, seed: int) -> None:
    """A lost answer is asked for under the identical body: hits cost nothing more, and the lost attempt is cleared."""
    stage = Stage(kimi)
    assert play(simulated(stage, LATE, seed)) is StopReason.COMPLETE
    stage.check()
    hits = [entry for entry in stage.sim.books.entries.values() if entry.source]
    assert len(hits) > 5
    answered = {a.generation_id: a for a in stage.state.attempts.values() if a.answered}
    for entry in hits:
        attempt = answered[entry.source]
        assert attempt.cost == stage.sim.books.entries[entry.source].counts.cost
        assert attempt.counts is not None
        lost = [a for a in stage.state.attempts.values() if a.mark == attempt.mark and a.id != attempt.id]
        assert any(a.cost == 0 for a in lost)
    money, billed = stage.state.money, stage.sim.books.billed
    assert billed <= money.settled + money.unknown
    if not money.unknown:
        assert money.settled == billed


@pytest.mark.parametrize("recover", [True, False])
def test_lost_outcomes_that_become_known_end_within_the_bound_on_waste(kimi: Loaded, recover: bool) -> None:
    """Where every answer is lost and billed, a work is asked three times at most, and a complete run owes nothing."""
    stage = Stage(kimi, prompts=1, quota="waste = 0.0", more={"target.recover": recover})
    assert (
        play(simulated(stage, replace(load("clean"), **SMALL, faults=Faults(early_cut=1.0)), 1)) is StopReason.COMPLETE
    )
    stage.check()
    assert stage.ended() == {Verdict.FAILED: 2}
    assert len(stage.state.attempts) <= 6
    assert stage.state.money.settled == stage.sim.books.billed == stage.state.money.wasted


def test_marks_make_bodies_unique_and_repeats_identical(kimi: Loaded) -> None:
    """No two works or samples share a body; only a body whose answer was lost is sent again."""
    stage = Stage(kimi)
    play(simulated(stage, LATE, 1))
    bodies = Counter(body for _, body in stage.transport.sent)
    marks = Counter(attempt.mark for attempt in stage.state.attempts.values())
    assert sorted(bodies.values()) == sorted(marks.values())
    by_mark = {}
    for attempt in stage.state.attempts.values():
        by_mark.setdefault(attempt.mark, []).append(attempt)
    repeated = [group for group in by_mark.values() if len(group) > 1]
    assert repeated
    for group in repeated:
        assert len({(a.work, a.tag) for a in group}) == 1
        assert not any(a.answered for a in group[:-1])


def test_a_resumed_run_asks_the_cache_for_what_a_kill_lost(kimi: Loaded) -> None:
    """An attempt that a kill left before its headers is asked again under the identical body."""
    stage = Stage(kimi)

    async def main() -> StopReason:
        stage.sim = Sim(replace(LATE, faults=Faults()), 5, kimi.vocab, now, kimi.count_prompt)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.6):
                await stage.run(stage.sim.handle)
        stage.killed()
        await asyncio.sleep(60)
        return await stage.run(stage.sim.handle)

    assert play(main) is StopReason.COMPLETE
    stage.check()
    money, billed = stage.state.money, stage.sim.books.billed
    assert any(entry.source for entry in stage.sim.books.entries.values())
    assert billed <= money.settled + money.unknown


def test_nothing_is_kept_for_those_who_forbid_it() -> None:
    """With zdr or data_collection = "deny" no request asks for the cache, and no body carries a mark."""
    for wish, asks in (("", True), ("zdr = true", False), ('data_collection = "deny"', False)):
        text = TOML.format(usd=1, quota="", in_flight=1) + f"[providers]\n{wish}\n"
        assert recovers(parse(text, Path("/nowhere/RUN.toml"))) is asks


def test_a_generation_is_booked_once(kimi: Loaded) -> None:
    """A lost attempt and the cached answer that stands for it share a generation: its cost is booked on the answer only."""
    stage = Stage(kimi)
    play(simulated(stage, LATE, 1))
    (answer, lost) = next(
        (a, b)
        for a in stage.state.attempts.values()
        for b in stage.state.attempts.values()
        if a.answered and a.mark == b.mark and b.id < a.id and not b.answered
    )
    lost.generation_id, lost.cost = answer.generation_id, 7
    stage.state.money = stage.state.money.correct(0, 7)
    assert doubles(stage.state, answer) == [lost]
    assert doubles(stage.state, lost) == []
