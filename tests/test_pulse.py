"""The pulse of a session: what it says, where it is left, and that it can cost the run nothing but a view."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from eyas.engine.pulse import UNKNOWN, Beat, Rates, Sample, rates
from eyas.engine.run import Engine
from eyas.families import Loaded
from eyas.journal import NAME, Journal
from eyas.report.end import By
from eyas.report.live.pulse import FILE, STALE, Pulse, current, decode, encode
from eyas.sim import Scenario
from tests.stage import SMALL, Stage, simulated
from tests.test_journal import history
from tests.virtual import play


class Disk:
    """A journal that is late."""

    lag = 1.5
    commit_seconds = 0.25


def beaten(kimi: Loaded, folder: Path, seen: list[Pulse], **more: Any) -> Stage:
    """A run on the virtual clock, its pulse taken at every tick."""
    stage = Stage(kimi, prompts=30, in_flight=6, **more)
    former = Engine.__post_init__

    def begin(engine: Engine) -> None:
        former(engine)
        beat = Beat(engine, folder, Disk(), lambda engine: seen.append(engine.pulse))
        engine.on_tick = beat.tick
        stage.beat = beat

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "__post_init__", begin)
        play(simulated(stage, Scenario(**SMALL), 1))
    return stage


def test_it_says_what_flies_and_is_left_for_others(kimi: Loaded, tmp_path: Path) -> None:
    """Windows and what flies agree, tokens a second are those that came, the file is the last pulse of a second."""
    seen: list[Pulse] = []
    stage = beaten(kimi, tmp_path, seen)
    busy = [pulse for pulse in seen if pulse.in_flight]
    assert busy
    for pulse in busy:
        assert pulse.in_flight == sum(lane.in_flight for lane in pulse.lanes.values())
        assert pulse.in_flight == sum(each.answers for each in pulse.flying.values()) <= pulse.limit == 6
        assert (pulse.pid, pulse.lag, pulse.commit) == (os.getpid(), 1.5, 0.25)
    assert any(pulse.by is By.COMPLETE and pulse.ends_at > pulse.at for pulse in busy)
    last = [pulse for pulse in seen if pulse.tokens_per_second is not None][-1]
    kept = sum(dataset.quota.kept for dataset in stage.state.datasets.values())
    assert 0 < last.tokens_per_second <= kept
    assert last.tokens_per_second == pytest.approx(sum(lane.tokens_per_second for lane in last.lanes.values()), abs=1)
    path = tmp_path / FILE
    assert decode(path.read_bytes()) in seen
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == [FILE]
    stage.beat.end()
    assert not path.exists()


def test_a_place_that_takes_no_file_ends_nothing(kimi: Loaded, tmp_path: Path) -> None:
    """The run goes on to its end."""
    seen: list[Pulse] = []
    stage = beaten(kimi, tmp_path / "nowhere", seen)
    assert sum(len(each.ended) for each in stage.state.datasets.values())
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ((), UNKNOWN), (((0.0, {"a": 5}),), UNKNOWN), (((0.0, {"a": 5}), (1.0, {"a": 9})), UNKNOWN),
        (((0.0, {"a": 5}), (4.0, {"a": 9, "b": 8})), Rates(3.0, {"a": 1.0, "b": 2.0})),
        (((0.0, {"a": 5}), (1.0, {"a": 99}), (4.0, {"a": 3})), Rates(0.0, {"a": 0.0})),
    ],
)  # fmt: skip
def test_rates(samples: tuple[tuple[float, Mapping[str, int]], ...], expected: Rates) -> None:
    """Between the first sample and the last; none of too short a time; what was lost makes no negative one."""
    assert rates(deque(Sample(*each) for each in samples)) == expected


def test_a_pulse_is_of_now_and_of_who_holds_the_run() -> None:
    """One that a killed process left says nothing."""
    pulse = Pulse(pid=7, at=100.0)
    assert current(pulse, 101.0, 7)
    assert not current(pulse, 101.0, 8)
    assert not current(pulse, 101.0, None)
    assert not current(pulse, 101.0 + STALE, 7)
    assert decode(encode(pulse)) == pulse


def test_a_journal_says_how_late_it_is(tmp_path: Path) -> None:
    """Nothing waits: no lag. A write that cannot be made yet: its age. What is durable is late no more, and took its time."""
    journal = Journal(tmp_path)

    async def written() -> float:
        assert (journal.lag, journal.commit_seconds) == (0.0, 0.0)
        other = sqlite3.connect(tmp_path / NAME)
        other.execute("BEGIN IMMEDIATE")
        for event, payload in history():
            journal.write(event, payload)
        late = journal.lag
        other.close()
        await journal.flush()
        return late

    try:
        assert asyncio.run(written()) > 0
    finally:
        journal.close()
    assert journal.commit_seconds > 0
    assert journal.lag == 0.0
