"""Answers read in other processes: at tens of thousands of pieces a second one core does not carry all streams.

The engine alone admits, counts and journals. A reader process is handed requests, and gives back headers, what came, and
outcomes (reader.py). One that dies costs the ends of the answers that it read: what came before is kept as they were cut.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

import msgspec

from eyas.config import RunConfig
from eyas.engine import drafts
from eyas.engine.attempt import Flight, Here, Reader
from eyas.engine.messages import (
    Batches,
    Began,
    Came,
    End,
    FromReader,
    Landed,
    Outbox,
    Part,
    Ready,
    Send,
    Settings,
    ToReader,
    from_reader,
)
from eyas.engine.settle import Books
from eyas.errors import EyasError
from eyas.events import Alarm
from eyas.machine import cores
from eyas.transport import Request
from eyas.types import DraftText, Outcome

STREAMS = 700
"""Streams of 40 tokens a second, a token a piece, that one core reads with room to spare (bench/stream.py)."""
ENDING = 10.0
"""Seconds that it may take to give what came of an answer that is ended."""
KEY_VARIABLE = "OPENROUTER_API_KEY"
DIED = "its reader process ended"


def how_many(config: RunConfig) -> int:
    """Reader processes of a run on this machine; 1 means that the engine's own process reads.

    Auto keeps a core for the engine and for others.
    """
    wish, most = config.limits.processes, cores() - 1
    if wish != "auto":
        return wish
    return max(1, min(most, math.ceil(config.limits.in_flight / STREAMS))) if most > 1 else 1


@dataclass(slots=True)
class Progress:
    """How far an answer has come, by what its reader process told. `drafts` are all parts, `taken` of them were asked for."""

    tokens: int = 0
    drafts: list[DraftText] = field(default_factory=list[DraftText])
    taken: int = 0

    @property
    def started(self) -> bool:
        """Whether any text came."""
        return bool(self.drafts)

    def draft(self) -> DraftText | None:
        """What came since the last draft; None if nothing did."""
        fresh = self.drafts[self.taken :]
        self.taken = len(self.drafts)
        return drafts.merged(fresh) if fresh else None


@dataclass(slots=True)
class Charge:
    """An answer that a process reads for us; `over` gets its outcome."""

    flight: Flight
    progress: Progress
    over: asyncio.Future[Outcome]

    def lost(self, why: str) -> None:
        """Its reader will tell no more: keep what it told."""
        if not self.over.done():
            self.over.set_result(drafts.outcome(self.progress.drafts, why, self.flight.generation_id))


class Process(asyncio.SubprocessProtocol):
    """One reader process."""

    _outbox: Outbox[ToReader]

    def __init__(self, on_death: Callable[[Process], None]) -> None:
        self.charges: dict[int, Charge] = {}
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.alive = True
        self._on_death = on_death
        self._batches = Batches()
        self._transport: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It runs."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        pipe = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))
        self._outbox = Outbox(asyncio.get_running_loop(), pipe)

    def tell(self, message: ToReader) -> None:
        """Give it a message."""
        self._outbox.tell(message)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """It told something."""
        del fd
        for batch in self._batches.feed(data):
            for message in from_reader(batch):
                self._take(message)

    def _take(self, message: FromReader) -> None:
        match message:
            case Ready():
                self.ready.set_result(None)
            case Began(attempt, head):
                self.charges[attempt].flight.take_head(head)
            case Came(pieces):
                for attempt, count in pieces.items():
                    self.charges[attempt].progress.tokens = count
            case Part(attempt, text):
                self.charges[attempt].progress.drafts.append(text)
            case Landed(attempt, pieces, outcome):
                charge = self.charges.pop(attempt)
                charge.progress.tokens = pieces
                if not charge.over.done():
                    charge.over.set_result(outcome.value)

    def process_exited(self) -> None:
        """It ended, which it never does of itself while we live."""
        if not self.alive:
            return
        self.alive = False
        if not self.ready.done():
            self.ready.set_exception(EyasError("a reader process could not start: set [limits] processes = 1"))
        self._on_death(self)
        for charge in self.charges.values():
            charge.lost(DIED)
        self.charges.clear()

    def close(self) -> None:
        """End it."""
        self.alive = False
        if self._transport is not None:
            with contextlib.suppress(ProcessLookupError):
                self._transport.kill()
            self._transport.close()


@dataclass(slots=True)
class Elsewhere:
    """Hands each request to the process that reads the fewest; when all are dead, this process reads (`here`)."""

    processes: Sequence[Process]
    here: Reader
    _by_attempt: dict[int, tuple[Process, Charge]] = field(default_factory=dict[int, tuple[Process, Charge]])

    async def read(self, flight: Flight, request: Request) -> Outcome:
        """See `Reader`."""
        process = min((p for p in self.processes if p.alive), key=lambda p: len(p.charges), default=None)
        if process is None:
            return await self.here.read(flight, request)
        charge = Charge(flight, Progress(), asyncio.get_running_loop().create_future())
        flight.sent, flight.progress = True, charge.progress
        self._by_attempt[flight.attempt] = process, charge
        process.charges[flight.attempt] = charge
        process.tell(
            Send(flight.attempt, request.method, request.url, dict(request.headers), request.body, flight.fetch)
        )
        outcome = await charge.over
        del self._by_attempt[flight.attempt]
        return outcome

    async def finish(self, flight: Flight, why: str) -> Outcome:
        """See `Reader`."""
        if flight.attempt not in self._by_attempt:
            return await self.here.finish(flight, why)
        process, charge = self._by_attempt.pop(flight.attempt)
        if flight.attempt in process.charges:
            charge.over = asyncio.get_running_loop().create_future()
            process.tell(End(flight.attempt, why))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ENDING):
                    return await charge.over
        return drafts.outcome(charge.progress.drafts, why, flight.generation_id)


def here(books: Books) -> Here:
    """This process reads the answers of a session."""
    setting, world = books.setting, books.world
    return Here(world.transport, setting.backend, setting.deadlines, world.clock)


@contextlib.asynccontextmanager
async def reader_of(books: Books, count: int) -> AsyncGenerator[Reader]:
    """Who reads the answers of a session: `count` processes, or for 1 this process.

    Raises:
        EyasError: a reader process could not start.
    """
    if count == 1:
        yield here(books)
        return

    def died(process: Process) -> None:
        left = sum(other.alive for other in processes)
        rest = f"the other {left} go on" if left else "this process reads the rest"
        detail = f"a reader process ended; {len(process.charges)} answers that it read were cut; {rest}"
        books.emit(Alarm(at=books.world.wall(), detail=detail))
        books.last_error = detail

    setting = books.setting
    settings = Settings(
        setting.deadlines, setting.config.limits.draft_seconds, setting.backend.wire, setting.backend.bills
    )
    processes = list[Process]()
    try:
        for _ in range(count):
            processes.append(await _start(settings, died, {KEY_VARIABLE, setting.config.target.key_variable}))
        await asyncio.gather(*(process.ready for process in processes))
        yield Elsewhere(processes, here(books))
    finally:
        for process in processes:
            process.close()


async def _start(settings: Settings, died: Callable[[Process], None], secret: set[str]) -> Process:
    _, process = await asyncio.get_running_loop().subprocess_exec(
        lambda: Process(died),
        sys.executable,
        "-m",
        "eyas.engine.reader",
        msgspec.json.encode(settings).decode(),
        stderr=None,
        env={name: value for name, value in os.environ.items() if name not in secret},
        start_new_session=True,  # ^C is for the engine: it says what is to end
    )
    return process
