"""Whole runs over several workers of one process, against the simulator: nothing lost, nothing bought twice, never above the cap."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from eyas.cli.live import Live
from eyas.engine.coordinator import Coordinator
from eyas.engine.grants import Crew
from eyas.records import Run
from eyas.report.end import By
from eyas.report.live.pulse import FILE, Pulse, decode
from eyas.state import Left
from eyas.types import StopReason, Verdict
from tests import fleetkit, kit
from tests.fleetkit import Here

pytestmark = pytest.mark.e2e
SHORT = {"length_median": 60, "speed": 100}


def when(answers: int, act: Callable[[Coordinator, Here], None]) -> Callable[[Coordinator, Here], None]:
    """Does something once, as soon as so many answers are there."""

    def begin(coordinator: Coordinator, fleet: Here) -> None:
        done: list[bool] = []

        def tick(now: Coordinator) -> None:
            if not done and sum(worker.answers for worker in now.books.state.workers.values()) >= answers:
                done.append(True)
                act(now, fleet)

        coordinator.on_tick = tick

    return begin


def lose(coordinator: Coordinator, fleet: Here) -> None:
    """Kill the worker that has the most in flight."""
    worker = max(coordinator.hands, key=lambda number: coordinator.hands[number].report.in_flight)
    fleet.tasks.pop(worker).cancel()


def check(folder: Path, sim: kit.Sim, cap: int) -> Run:
    """Every dollar that the simulator billed is explained, and it is no more than the cap."""
    run = Run(folder / "run")
    books, money = sim.books(), run.state.money
    billed = sum(row["billed_nano"] for row in books.values())
    assert billed <= cap
    assert money.committed <= cap
    assert money.settled <= billed <= money.committed
    assert money.leased == sum(worker.lease.left for worker in run.state.workers.values() if worker.left is Left.NOT)
    return run


def test_it_is_watched_as_a_run_of_one_machine_is(kimi_folder: Path, tmp_path: Path) -> None:
    """What its workers have in flight stands in one pulse, which others can read; the live view draws it and hears every event."""
    seen: list[Pulse] = []
    left: list[Pulse] = []
    with kit.simulator(kimi_folder, length_median=60, speed=10) as sim:
        config = fleetkit.write(tmp_path, sim, kimi_folder, 200, usd=10.0)
        with (tmp_path / "terminal").open("w+") as out, ExitStack() as stack:
            screen = Live(out, stack)

            def tick(coordinator: Coordinator) -> None:
                screen.tick(coordinator)
                seen.append(coordinator.pulse or Pulse(pid=0, at=0))
                path = tmp_path / "run" / FILE
                left.extend([decode(path.read_bytes())] if path.exists() else [])

            def begin(coordinator: Coordinator, _: Here) -> None:
                screen.begin(coordinator)
                coordinator.on_tick = tick

            ended = asyncio.run(fleetkit.led(config, begin))
        said = (tmp_path / "terminal").read_text()
    assert ended.reason is StopReason.COMPLETE, ended
    busy = [pulse for pulse in seen if pulse.in_flight]
    assert busy
    for pulse in busy:
        assert pulse.pid == os.getpid()
        assert pulse.in_flight == sum(lane.in_flight for lane in pulse.workers.values())
        assert pulse.in_flight == sum(lane.in_flight for lane in pulse.lanes.values()) <= pulse.limit <= 120
    assert {len(pulse.workers) for pulse in busy} >= {3}
    assert any(pulse.by is By.COMPLETE and pulse.ends_at and pulse.ends_at > pulse.at for pulse in busy)
    assert all(pulse in seen for pulse in left)
    assert len({pulse.at for pulse in left}) > 2
    assert not (tmp_path / "run" / FILE).exists()
    assert "complete, took" in said
    assert all(f"{number} node-{number}" in said for number in (1, 2, 3))


@pytest.mark.parametrize("twice", [False, True])
def test_every_prompt_is_answered_once(kimi_folder: Path, tmp_path: Path, twice: bool) -> None:
    """Three workers answer all prompts, also where every word between them and the coordinator is told twice."""
    with kit.simulator(kimi_folder, **SHORT) as sim:
        config = fleetkit.write(tmp_path, sim, kimi_folder, 200, usd=10.0)
        ended = asyncio.run(fleetkit.led(config, twice=twice))
        assert ended.reason is StopReason.COMPLETE, ended
        assert set(kit.asked(sim.books().values()).values()) == {1}
        with closing(check(tmp_path, sim, 10**10)) as run:
            assert len(kit.answered(run)) == 200
            assert [worker.left for worker in run.state.workers.values()] == [Left.READ] * 3
            assert min(worker.answers for worker in run.state.workers.values()) > 20


def test_the_cap_is_never_passed_and_used_to_the_last_reservation(kimi_folder: Path, tmp_path: Path) -> None:
    """Money that one worker cannot use comes to others, till less is left than one request may cost."""
    with kit.simulator(kimi_folder, **SHORT) as sim:
        config = fleetkit.write(tmp_path, sim, kimi_folder, 600, usd=0.05)
        ended = asyncio.run(fleetkit.led(config))
        assert ended.reason is StopReason.CAP, ended
        with closing(check(tmp_path, sim, 50_000_000)) as run:
            assert run.state.money.settled > 50_000_000 - 2 * 3_400_000


def test_a_lost_worker_costs_nothing_that_its_journal_holds(kimi_folder: Path, tmp_path: Path) -> None:
    """A worker is killed in mid-run: its answers are taken in, its conversations are asked elsewhere, none is bought again."""
    with kit.simulator(kimi_folder, "rough", length_median=100, speed=5) as sim:
        config = fleetkit.write(tmp_path, sim, kimi_folder, 300, usd=10.0)
        ended = asyncio.run(fleetkit.led(config, when(60, lose)))
        assert ended.reason is StopReason.COMPLETE, ended
        with closing(check(tmp_path, sim, 10**10)) as run:
            assert len(run.state.workers) == 4
            assert any("was lost" in alarm for alarm in run.state.alarms)
            ended_well = (Verdict.DONE, Verdict.PARTIAL)
            assert all(known.verdict in ended_well for known in run.state.works.values()), run.state.datasets
            assert len(kit.answered(run)) == 300


def test_a_coordinator_that_is_killed_goes_on_where_it_was(kimi_folder: Path, tmp_path: Path) -> None:
    """The coordinator dies with its workers in mid-run; one machine alone then finishes what they began, without Ray."""
    with kit.simulator(kimi_folder, length_median=100, speed=5) as sim:
        config = fleetkit.write(tmp_path, sim, kimi_folder, 200, usd=10.0)

        async def killed() -> None:
            task = asyncio.create_task(fleetkit.led(config, when(50, lambda _c, _f: task.cancel())))
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(killed())
        before = kit.asked(sim.books().values())
        done = kit.eyas(tmp_path, "run", "RUN.toml", "--yes")
        assert done.returncode in (0, 5), done.stderr
        with closing(check(tmp_path, sim, 10**10)) as run:
            assert len(kit.answered(run)) == 200
            assert all(worker.left is Left.READ for worker in run.state.workers.values())
            bought = [attempt for attempt in run.state.attempts.values() if attempt.answered]
            assert len(bought) == 200
        assert before


def test_what_cannot_be_read_stays_set_apart(kimi_folder: Path, tmp_path: Path) -> None:
    """A worker whose directory is gone keeps its money and its prompts, until it is written off; what turns up late counts."""
    with kit.simulator(kimi_folder, length_median=100, speed=5) as sim:
        config = fleetkit.write(tmp_path, sim, kimi_folder, 200, usd=10.0)
        hidden = tmp_path / "hidden"

        def hide(coordinator: Coordinator, fleet: Here) -> None:
            worker = max(coordinator.hands, key=lambda number: coordinator.hands[number].report.in_flight)
            fleet.cut.add(worker)
            (config.dir / "workers" / str(worker)).rename(hidden)

        ended = asyncio.run(fleetkit.led(config, when(50, hide)))
        with closing(check(tmp_path, sim, 10**10)) as run:
            (away,) = [worker for worker in run.state.workers.values() if worker.left is Left.NOT]
            assert away.works
            assert away.lease.left > 0
            assert run.state.money.leased == away.lease.left
            assert not any(work in kit.answered(run) for work in away.works)
            (number,) = [number for number, worker in run.state.workers.items() if worker is away]
        assert ended.reason is StopReason.COMPLETE
        written_off = kit.eyas(tmp_path, "reconcile", "run", "--write-off", str(number))
        assert written_off.returncode == 0, written_off.stderr
        assert kit.eyas(tmp_path, "run", "RUN.toml", "--yes").returncode in (0, 5)
        with closing(Run(config.dir)) as run:
            assert len(kit.answered(run)) == 200
            assert run.state.workers[number].lease.lost > 0
            assert run.state.money.committed <= 10**10
        hidden.rename(config.dir / "workers" / str(number))
        assert kit.eyas(tmp_path, "run", "RUN.toml", "--yes").returncode in (0, 5)
        with closing(check(tmp_path, sim, 10**10)) as run:
            assert run.state.workers[number].left is Left.READ
            assert run.state.workers[number].lease.lost == 0
            assert run.state.money.reserved == 0
            assert len(kit.answered(run)) == 200


def test_conversations_go_on_at_another_worker(kimi_folder: Path, tmp_path: Path) -> None:
    """Turns that a lost worker had answered are the history of those that another one asks."""
    with kit.simulator(kimi_folder, length_median=60, speed=20) as sim:
        fleetkit.write(tmp_path, sim, kimi_folder, 60, usd=10.0)
        rows = [
            {"messages": [{"role": "user", "content": f"Question {number}, part {part}?"} for part in range(3)]}
            for number in range(60)
        ]
        talk = [{"conversations": [{"from": "human", "value": m["content"]} for m in row["messages"]]} for row in rows]
        (tmp_path / "prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in talk))
        text = (tmp_path / "RUN.toml").read_text()
        text = text.replace("usd = 10.0", "usd = 10.0\nkeep_from = 100000")  # a kept part would end its conversation
        (tmp_path / "RUN.toml").write_text(f'{text}turns = "replay"\n')
        config = fleetkit.configs.load(tmp_path / "RUN.toml")
        ended = asyncio.run(fleetkit.led(config, when(60, lose), Crew(2, 20, 10)))
        assert ended.reason is StopReason.COMPLETE, ended
        with closing(check(tmp_path, sim, 10**10)) as run:
            assert len(run.state.works) == 180
            assert len(kit.answered(run)) == 180
