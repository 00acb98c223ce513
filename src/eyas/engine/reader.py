"""A reader process: sends the requests that the engine hands it, reads and decodes their answers, and tells what came.

It decides nothing and writes nothing. When the engine is gone it ends, and with it its connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from functools import partial

import msgspec

from eyas.backends.answers import answer, failure_of
from eyas.engine.messages import (
    Batches,
    Began,
    Broken,
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
    Whole,
    to_reader,
)
from eyas.engine.reading import Reading, finish, read
from eyas.machine import freeze_heap, run_loop
from eyas.transport import HttpTransport, Request, Transport
from eyas.types import Completion, Outcome

TICK = 0.25
"""Seconds between two reports of what came."""


class Station:
    """The answers that this process reads."""

    def __init__(self, settings: Settings, transport: Transport, outbox: Outbox[FromReader]) -> None:
        self._loop = asyncio.get_running_loop()
        self._settings = settings
        self._transport = transport
        self._outbox = outbox
        self._readings: dict[int, Reading] = {}
        self._tasks: dict[int, asyncio.Task[Outcome]] = {}
        self._why: dict[int, str] = {}
        self._told: dict[int, int] = {}
        self._due: dict[int, float] = {}
        self._tick()

    def take(self, message: ToReader) -> None:
        """One message of the engine."""
        match message:
            case Send():
                self._send(message)
            case End(attempt, why):
                task = self._tasks.get(attempt)
                if task is not None:
                    self._why[attempt] = why
                    task.cancel()

    def _send(self, send: Send) -> None:
        attempt = send.attempt
        reading = Reading(
            answer(self._settings.wire), send.fetch, on_head=lambda head: self._outbox.tell(Began(attempt, head))
        )
        request = Request(send.method, send.url, send.headers, send.body)
        work = read(reading, self._transport, request, self._settings.deadlines, failure_of(self._settings.bills))
        self._readings[attempt] = reading
        task = self._tasks[attempt] = self._loop.create_task(work)
        task.add_done_callback(partial(self._landed, attempt))

    def _landed(self, attempt: int, task: asyncio.Task[Outcome]) -> None:
        """It is over; one that was ended by us, before its first step too, has what came."""
        reading = self._readings.pop(attempt)
        del self._tasks[attempt]
        self._told.pop(attempt, None)
        self._due.pop(attempt, None)
        why = self._why.pop(attempt, "the engine is gone")
        outcome = finish(reading, why) if task.cancelled() else task.result()
        told = Whole(outcome) if isinstance(outcome, Completion) else Broken(outcome)
        self._outbox.tell(Landed(attempt, reading.stream.tokens, told))

    def _tick(self) -> None:
        now = self._loop.time()
        came = {
            attempt: pieces
            for attempt, reading in self._readings.items()
            if (pieces := reading.stream.tokens) != self._told.get(attempt, 0)
        }
        if came:
            self._outbox.tell(Came(came))
            self._told |= came
        for attempt in came:
            if now >= self._due.get(attempt, 0.0):
                self._draft(attempt, now)
        self._loop.call_later(TICK, self._tick)

    def _draft(self, attempt: int, now: float) -> None:
        text = self._readings[attempt].stream.draft()
        if text is not None:
            self._due[attempt] = now + self._settings.draft_seconds
            self._outbox.tell(Part(attempt, text))


class _Pipe(asyncio.Protocol):
    """The engine's messages; at the pipe's end this process ends."""

    def __init__(self, station: Station, ended: asyncio.Event) -> None:
        self._station = station
        self._ended = ended
        self._batches = Batches()

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        for batch in self._batches.feed(data):
            for message in to_reader(batch):
                self._station.take(message)

    def connection_lost(self, exc: Exception | None) -> None:
        """The engine is gone."""
        del exc
        self._ended.set()


async def serve(settings: Settings) -> None:
    """Read what stdin asks for and tell stdout, until stdin ends."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    pipe, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, sys.stdout)
    async with HttpTransport() as transport:
        outbox = Outbox[FromReader](loop, pipe)
        station = Station(settings, transport, outbox)
        freeze_heap()
        outbox.tell(Ready())
        await loop.connect_read_pipe(lambda: _Pipe(station, ended), sys.stdin)
        await ended.wait()
        pipe.abort()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        run_loop(serve(msgspec.json.decode(sys.argv[1], type=Settings)))
