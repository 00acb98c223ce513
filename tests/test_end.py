"""The predicted end: within a fifth of the truth at half way, the cap foreseen, in words and as JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eyas.engine.outlook import outlook
from eyas.families import Loaded
from eyas.forecast import Lengths, Times
from eyas.report import watched
from eyas.report.end import By, Curve, End, end, figures, words
from eyas.sim import World, load
from eyas.state import State
from eyas.types import StopReason
from tests.stage import SMALL, Stage
from tests.virtual import now, play

Seen = list[tuple[float, End | None, End | None]]


def watched_run(stage: Stage, seen: Seen) -> Callable[[], Any]:
    """A session in scenario clean that notes every second what its engine predicts, and what its journal alone tells."""

    async def watch(stage: Stage) -> None:
        engine = stage.engine
        while engine.books.stopping is None and (engine.flights or not seen or seen[-1][0] < began + 5):
            await asyncio.sleep(1.0)
            seen.append((now(), outlook(engine), watched.outlook(engine.books.state, stage.config(), now())))

    async def main() -> StopReason:
        nonlocal began
        began = now()
        stage.sim = World(replace(load("clean"), **SMALL), 1, stage.kimi.vocab, now, stage.kimi.count_prompt)
        return await stage.run(stage.sim.handle, watch)

    began = 0.0
    return main


@pytest.mark.parametrize(
    ("prompts", "quota", "in_flight"),
    [(400, "", 40), (400, "output_tokens = 30000", 40), (500, "", 100)],
)
def test_at_half_way_the_end_is_foreseen(kimi: Loaded, prompts: int, quota: str, in_flight: int) -> None:
    """At half of a session's time its end is predicted within 20 %, by its own process and by `eyas status` in another."""
    seen: Seen = []
    stage = Stage(kimi, prompts=prompts, quota=quota, in_flight=in_flight)
    assert play(watched_run(stage, seen)) is StopReason.COMPLETE
    first, last = seen[0][0], seen[-1][0]
    at, *predicted = next(row for row in seen if row[0] >= (first + last) / 2)
    for found in predicted:
        assert found is not None
        assert found.by is By.COMPLETE
        assert found.seconds == pytest.approx(last - at, rel=0.2)


def test_the_cap_is_foreseen(kimi: Loaded) -> None:
    """Money for about half of the works: the end is that of the money, and comes when it was predicted."""
    seen: Seen = []
    stage = Stage(kimi, prompts=600, usd=0.1, in_flight=40)
    assert play(watched_run(stage, seen)) is StopReason.CAP
    first, last = seen[0][0], seen[-1][0]
    at, found, _ = next(row for row in seen if row[0] >= (first + last) / 2)
    assert found is not None
    assert found.by is By.CAP
    assert found.seconds == pytest.approx(last - at, rel=0.35)
    assert words(found).startswith("at the cap in about ")


def test_nothing_is_foretold_before_twenty_answers() -> None:
    """A run that has just begun, or of which nothing flies though something is wanted, has no predicted end."""
    assert end(State(), {}, Times(), []) is None or end(State(), {}, Times(), []) == End(0.0, 0.0, By.COMPLETE)
    times = Times()
    for number in range(40):
        assert (times.of("A") is None) is (number < 20)
        times.add("B" if number < 20 else "A", 2.0)
    assert times.of("C") is not None


def test_the_end_in_words_and_figures() -> None:
    """As the progress line and `eyas status --json` say it."""
    ends = [End(seconds, 1234.5, By.COMPLETE) for seconds in (0.0, 42.4, 720.0, 9000.0)]
    assert [words(each) for each in (None, *ends)] == [
        "", "", "done in about 42 s", "done in about 12 min", "done in about 2.5 h"]  # fmt: skip
    assert figures(ends[1]) == {"seconds": 42.4, "output_tokens": 1234, "by": "complete"}
    assert figures(None) is None


@given(st.lists(st.integers(0, 400), min_size=20, max_size=200), st.integers(0, 399))
def test_a_curve_falls_and_keeps_its_mean(lengths: list[int], length: int) -> None:
    """The share of longer answers never grows, and the mean is that of the answers as far as their bins tell."""
    known = Lengths(400)
    for each in lengths:
        known.add(each)
    curve = Curve(known, [])
    assert 1.0 >= curve.longer(length) >= curve.longer(length + 1) >= 0.0
    assert 0.0 <= curve.left(length) <= 400 - length + 1e-6
    assert curve.deviation >= 0.0


def test_answers_that_are_all_alike_leave_no_tail() -> None:
    """Lengths within a bin or two: the mean is theirs, whatever the most may be, and with some in flight too."""
    known = Lengths(72_000)
    for number in range(40):
        known.add(25 + number % 3)
    assert Curve(known, []).mean == pytest.approx(26, rel=0.2)
    assert Curve(known, [5, 10, 15, 20, 30]).mean == pytest.approx(26, rel=0.3)


def test_nothing_is_foretold_of_a_session_that_was_told_to_stop(kimi: Loaded) -> None:
    """After ^C only what flies is waited for, so what is still owed says nothing of the end."""
    seen: Seen = []
    stage = Stage(kimi, prompts=400, in_flight=40)
    play(watched_run(stage, seen))
    assert any(found is not None for _, found, _ in seen)
    stage.engine.interrupt()
    assert outlook(stage.engine) is None
