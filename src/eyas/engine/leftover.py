"""Workers that are gone: what their journals hold is read to the end, under their lock, before anything of them is free again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import msgspec

from eyas.config import RunConfig
from eyas.engine.absorb import absorb
from eyas.engine.resume import left_open
from eyas.engine.retry import Policy
from eyas.engine.settle import Books
from eyas.errors import LockedError
from eyas.events import AnyEvent, WorkerLeft
from eyas.families import Loaded
from eyas.journal import NAME, Journal, Payload
from eyas.lock import lock
from eyas.records import Run
from eyas.state import Left, State
from eyas.types import Completion

MOST_BYTES = 8_000_000
WAITS = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds between two tries to take the lock of a worker that may be about to end."""


@dataclass(frozen=True, slots=True)
class Intake:
    """The run that takes in what workers left: its state and journal, and what is needed to judge what came of a request."""

    config: RunConfig
    state: State
    emit: Callable[[AnyEvent, Payload], Awaitable[None]]
    flush: Callable[[], Awaitable[None]]
    wall: Callable[[], float]
    tokens: Loaded
    policy: Policy

    @classmethod
    def of(cls, books: Books) -> Intake:
        """That of a session."""
        setting, world = books.setting, books.world
        return cls(setting.config, books.state, books.emit, world.log.flush, world.wall, setting.tokens, setting.policy)

    def folder(self, worker: int) -> Path:
        """The run directory of a worker."""
        return self.config.dir / "workers" / str(worker)


async def take_back(intake: Intake) -> list[int]:
    """Read what every worker left that has not gone in order; gives those that cannot be read now.

    Their money and their conversations stay with them: only their journals can say what became of these. One that was written
    off has neither any more; but what it was paid for is taken in if its journal turns up.
    """
    away: list[int] = []
    for number, worker in intake.state.workers.items():
        if worker.left is not Left.READ and not await read_to_the_end(intake, number) and worker.left is Left.NOT:
            away.append(number)
    return away


async def read_to_the_end(intake: Intake, worker: int) -> bool:
    """Take in all that a worker's journal holds, settle what it left open, and let it go; False if it cannot be read.

    Who holds the lock of its directory is no worker any more: it cannot write what nobody would read.
    """
    folder, known = intake.folder(worker), intake.state.workers[worker]
    if not (folder / NAME).exists():
        if known.grants:
            return False
        await intake.emit(WorkerLeft(at=intake.wall(), who=worker), None)  # it never had anything
        return True
    for wait in (*WAITS, None):
        with contextlib.suppress(LockedError), lock(folder):
            await _settle(intake, folder)
            await _take_in(intake, worker, folder)
            await intake.emit(WorkerLeft(at=intake.wall(), who=worker), None)
            return True
        if wait is not None:
            await asyncio.sleep(wait)
    return False


async def _take_in(intake: Intake, worker: int, folder: Path) -> None:
    with closing(Run(folder)) as run:
        heard = intake.state.workers[worker].seq
        while rows := tuple(run.store.rows(heard, MOST_BYTES)):
            absorb(intake.state, worker, rows, intake.emit)
            await intake.flush()
            heard = rows[-1].seq


async def _settle(intake: Intake, folder: Path) -> None:
    """Give every attempt an outcome that the worker left without one, in its own journal."""
    thinking = {each.name: intake.config.thinking(each.name) for each in intake.config.datasets}
    with closing(Journal(folder)) as journal, closing(Run(folder)) as run:
        for _, outcome, event in left_open(run.state, run.store, intake.tokens, intake.policy, thinking):
            timed = msgspec.structs.replace(event, at=intake.wall())
            run.state.apply(timed)
            await journal.write(timed, outcome if isinstance(outcome, Completion) else None)
