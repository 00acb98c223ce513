"""A run inside a longer process is ended in order: by its listener, by cancellation, by ^C; nothing is lost or paid twice."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import eyas
from eyas.errors import UsageError
from eyas.types import StopReason
from tests import kit

SLOW = {"tps": 80, "length_median": 150, "length_sigma": 0.2, "slots": 0}
PROMPTS = 24


@pytest.fixture(scope="module")
def sim(kimi_folder: Path) -> Iterator[kit.Sim]:
    """One simulator for all tests of this file, whose answers take two seconds."""
    with kit.simulator(kimi_folder, **SLOW) as found:
        yield found


@pytest.fixture
def path(sim: kit.Sim, kimi_folder: Path, tmp_path: Path) -> Path:
    """The RUN.toml of a run that was not begun."""
    kit.write_run(tmp_path, sim, kimi_folder, PROMPTS, in_flight=10)
    return tmp_path / "RUN.toml"


def finish(path: Path, sim: kit.Sim, before: int, partial: int = 0) -> None:
    """Run it to its end: what had an answer is not asked again."""
    with eyas.open_run(path.parent / "run") as run:
        figures = run.status()["datasets"]["B3"]
        assert (figures["done"], figures["partial"] > 0) == (before, bool(partial))
        kept = before + figures["partial"]
    asked = len(sim.books())
    result = eyas.run(path, key=kit.KEY)
    assert result.complete
    assert result.figures["money"]["unknown"] == 0
    assert len(sim.books()) - asked == PROMPTS - kept


def test_a_listener_that_returns_false_drains(path: Path, sim: kit.Sim) -> None:
    """What flies lands whole, the result says that it was ended, and the same call goes on."""
    result = eyas.run(path, key=kit.KEY, on_progress=lambda now: now.answers < 5)
    assert result.ending is eyas.Ending.INTERRUPTED
    assert result.reason is StopReason.INTERRUPTED
    assert not result.complete
    done = result.figures["datasets"]["B3"]["done"]
    assert 5 <= done < PROMPTS
    finish(path, sim, done)


def test_an_error_of_a_listener_waits_for_what_flies(path: Path, sim: kit.Sim) -> None:
    """It is raised when all has landed, and the listener is not called again."""
    calls: list[eyas.Progress] = []

    def fails(now: eyas.Progress) -> None:
        calls.append(now)
        raise ValueError("no room to draw")

    with pytest.raises(ValueError, match="no room to draw"):
        eyas.run(path, key=kit.KEY, on_progress=fails)
    assert len(calls) == 1
    assert sim.state()["in_flight"] == 0
    with eyas.open_run(path.parent / "run") as run:
        done = run.status()["datasets"]["B3"]["done"]
    assert done == calls[0].answers + calls[0].in_flight
    finish(path, sim, done)


def test_cancelled_it_keeps_the_text_of_what_flies(path: Path, sim: kit.Sim) -> None:
    """Cancellation ends answers in flight and keeps their text; the journal is closed before it is raised."""

    async def main() -> None:
        flying = asyncio.Event()

        def look(now: eyas.Progress) -> None:
            if now.answers > 0:
                flying.set()

        task = asyncio.create_task(eyas.run_async(path, key=kit.KEY, on_progress=look))
        await flying.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    with eyas.open_run(path.parent / "run") as run:
        assert run.status()["state"] == "stopped"
        done = run.status()["datasets"]["B3"]["done"]
        assert {record.completion.cut is None for record in run.records()} == {True, False}
    finish(path, sim, done, partial=1)


def test_cancelled_before_it_begins_it_leaves_nothing(path: Path) -> None:
    """Before the first session nothing is there to be kept: no run directory, no request."""

    async def main() -> None:
        task = asyncio.create_task(eyas.run_async(path, key=kit.KEY))
        asyncio.get_running_loop().call_soon(task.cancel)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    with pytest.raises(UsageError, match="no run directory"):
        eyas.open_run(path.parent / "run")


def test_control_c_drains_and_is_raised(path: Path, sim: kit.Sim) -> None:
    """A script that is sent SIGINT lets what flies land, then stops with KeyboardInterrupt."""
    script = (
        "import os, signal, eyas\n"
        "def look(now):\n"
        "    if now.answers and not told:\n"
        "        told.append(1); os.kill(os.getpid(), signal.SIGINT)\n"
        "told, before = [], signal.getsignal(signal.SIGINT)\n"
        "try:\n"
        f"    eyas.run('RUN.toml', key={kit.KEY!r}, on_progress=look)\n"
        "except KeyboardInterrupt:\n"
        "    print(signal.getsignal(signal.SIGINT) is before)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=path.parent, capture_output=True, text=True, timeout=170, check=True
    )
    assert ended.stdout == "True\n"
    assert "starting nothing more" in ended.stderr
    with eyas.open_run(path.parent / "run") as run:
        done = run.status()["datasets"]["B3"]["done"]
    finish(path, sim, done)


def test_another_thread_may_run_it(path: Path) -> None:
    """Where signals are not to be had, a run goes on without them, and the main thread's handler stays."""
    found: list[eyas.Result] = []
    handler = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=lambda: found.append(eyas.run(path, key=kit.KEY, limit=2)))
    thread.start()
    thread.join()
    assert found[0].figures["datasets"]["B3"]["done"] == 2
    assert signal.getsignal(signal.SIGINT) is handler
