"""`eyas tune` on a live session: taken within seconds, noted in the journal, refused with a reason, and never by a stranger."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from eyas.engine import tune
from eyas.engine.tune import Asked, ask
from eyas.engine.wish import Wish
from eyas.errors import UsageError
from eyas.events import Intent, Tuned
from eyas.families import Loaded
from eyas.lock import lock
from eyas.sim import World, load
from eyas.types import StopReason
from tests.stage import SMALL, Stage
from tests.virtual import now, play


def session(stage: Stage, act: Any) -> StopReason:
    """A session of scenario clean, with `act` beside it."""

    async def main() -> StopReason:
        stage.sim = World(replace(load("clean"), **SMALL), 1, stage.kimi.vocab, now, stage.kimi.count_prompt)
        return await stage.run(stage.sim.handle, act)

    return play(main)


def stage_in(folder: Path, kimi: Loaded, **more: Any) -> Stage:
    """A run of which the directory is there."""
    return Stage(kimi, more={"run.dir": str(folder)}, **more)


def test_a_session_takes_changes_up(kimi: Loaded, tmp_path: Path) -> None:
    """Fewer fly, a dropped endpoint is asked no more until it is taken back; answers in flight are left to finish."""
    stage, said = stage_in(tmp_path, kimi, prompts=300, in_flight=40), list[tuple[float, tuple[str, ...]]]()

    async def act(stage: Stage) -> None:
        await asyncio.sleep(5)
        for wish in (Wish(10, ("chutes",)), Wish(30, take=("chutes/int4",))):
            before = now()
            said.append((now(), await ask(tmp_path, wish)))
            assert now() - before < 2
            await asyncio.sleep(12)
            assert len(stage.engine.flights) <= (wish.in_flight or 0)

    with lock(tmp_path):
        assert session(stage, act) is StopReason.COMPLETE
    assert [sentences for _, sentences in said] == [
        ("in_flight: 40 → 10", "chutes/int4: asked → dropped"),
        ("in_flight: 10 → 30", "chutes/int4: dropped → asked"),
    ]
    dropped, back = (next(e.at for e in stage.log.events if isinstance(e, Tuned) and e.changes == s) for _, s in said)
    asked = [event for event in stage.log.events if isinstance(event, Intent)]
    assert "chutes/int4" in {e.tag for e in asked if e.at <= dropped}
    assert "chutes/int4" not in {e.tag for e in asked if dropped < e.at < back}
    assert "chutes/int4" in {e.tag for e in asked if e.at >= back}
    assert len(asked) == 600  # nothing was asked twice for it
    assert not list(tmp_path.glob("tune*"))


def test_a_refusal_changes_nothing(kimi: Loaded, tmp_path: Path) -> None:
    """The command hears why; the journal holds nothing of it."""
    stage, why = stage_in(tmp_path, kimi, prompts=100), list[str]()

    async def act(stage: Stage) -> None:
        await asyncio.sleep(2)
        with pytest.raises(UsageError) as error:
            await ask(tmp_path, Wish(10, ("nobody",)))
        why.append(str(error.value))

    with lock(tmp_path):
        session(stage, act)
    assert why[0].startswith("nothing changed: the run asks no endpoint named nobody: it asks chutes/int4")
    assert not any(isinstance(event, Tuned) for event in stage.log.events)


def test_the_next_session_begins_from_the_config(kimi: Loaded, tmp_path: Path) -> None:
    """What was tuned is folded to nothing: a resumed run goes by its RUN.toml."""
    stage = stage_in(tmp_path, kimi, prompts=200, in_flight=20)

    async def act(stage: Stage) -> None:
        await asyncio.sleep(2)
        await ask(tmp_path, Wish(2, ("chutes",)))
        await asyncio.sleep(2)
        stage.engine.interrupt()

    async def look(stage: Stage) -> None:
        await asyncio.sleep(5)
        assert stage.engine.books.pace.most == 20
        assert not stage.engine.admission.choice.dropped

    with lock(tmp_path):
        assert session(stage, act) is StopReason.INTERRUPTED
        assert session(stage, look) is StopReason.COMPLETE


def test_nothing_runs_there(tmp_path: Path) -> None:
    """Without a living process the command says what to do instead, and leaves no file."""
    with lock(tmp_path):
        pass
    with pytest.raises(UsageError, match=r"nothing runs in .*: change RUN.toml instead"):
        play(lambda: ask(tmp_path, Wish(10)))
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_a_request_that_is_not_taken_is_withdrawn(tmp_path: Path) -> None:
    """A process that holds the lock and does not look: after five seconds nothing is left for it to find."""
    with (
        lock(tmp_path),
        pytest.raises(UsageError, match=r"did not take the change within 5 s \(.*busy\): nothing changed"),
    ):
        play(lambda: ask(tmp_path, Wish(10)))
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_a_session_takes_no_request_to_another_process(kimi: Loaded, tmp_path: Path) -> None:
    """One that was left by a run that is dead, or garbage, is passed over; a new request takes its place."""
    stage = stage_in(tmp_path, kimi, prompts=150)
    request = tmp_path / "tune.json"
    request.write_bytes(msgspec.json.encode(Asked("old", os.getpid() + 1, Wish(1))))

    async def act(stage: Stage) -> None:
        await asyncio.sleep(3)
        assert request.exists()
        assert await ask(tmp_path, Wish(5)) == ("in_flight: 8 → 5",)
        request.write_bytes(b"{")
        await asyncio.sleep(3)

    with lock(tmp_path):
        assert session(stage, act) is StopReason.COMPLETE
    assert stage.engine.books.pace.most == 5


def test_one_request_at_a_time(tmp_path: Path) -> None:
    """A second command does not take the first one's place."""
    (tmp_path / "tune.json").write_bytes(msgspec.json.encode(Asked("first", os.getpid(), Wish(1))))
    with lock(tmp_path), pytest.raises(UsageError, match="another `eyas tune` waits"):
        play(lambda: ask(tmp_path, Wish(10)))
    assert tune._claimed(tmp_path) == Asked("first", os.getpid(), Wish(1))
    assert tune._claimed(tmp_path) is None
