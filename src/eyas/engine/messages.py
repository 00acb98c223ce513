"""What the engine and its reader processes say to each other: msgpack behind a length, over a pair of pipes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Generic, TypeVar

import msgspec

from eyas.backends.base import Wire
from eyas.engine.reading import Head
from eyas.transport import Deadlines
from eyas.types import Completion, DraftText, Failure

LENGTH = 4
"""Bytes before each batch of messages that say how long it is, big end first."""


class Settings(msgspec.Struct, frozen=True):
    """How to read, and in which form answers come, said when the process is started. `draft_seconds`: how often what came is told."""

    deadlines: Deadlines
    draft_seconds: float
    wire: Wire = Wire.CHAT
    bills: bool = True


class Send(msgspec.Struct, frozen=True, tag=True):
    """Send this request, and read its answer. `headers` hold the key: they go nowhere but to the API."""

    attempt: int
    method: str
    url: str
    headers: dict[str, str]
    body: bytes
    fetch: bool


class End(msgspec.Struct, frozen=True, tag=True):
    """End that answer and keep what came."""

    attempt: int
    why: str


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The reader process has started."""


class Began(msgspec.Struct, frozen=True, tag=True):
    """Headers came."""

    attempt: int
    head: Head


class Came(msgspec.Struct, frozen=True, tag=True):
    """Pieces that have come, by attempt: of those only that gained some since the last time."""

    pieces: dict[int, int]


class Part(msgspec.Struct, frozen=True, tag=True):
    """What an answer gained since its last part."""

    attempt: int
    text: DraftText


class Whole(msgspec.Struct, frozen=True, tag=True):
    """An answer came, whole or cut."""

    value: Completion


class Broken(msgspec.Struct, frozen=True, tag=True):
    """None came."""

    value: Failure


class Landed(msgspec.Struct, frozen=True, tag=True):
    """It is over; `pieces` are those that came in all."""

    attempt: int
    pieces: int
    outcome: Whole | Broken


ToReader = Send | End
FromReader = Ready | Began | Came | Part | Landed

M = TypeVar("M", Send | End, Ready | Began | Came | Part | Landed)
_encoder = msgspec.msgpack.Encoder()
to_reader = msgspec.msgpack.Decoder(list[ToReader]).decode
"""A batch for a reader process."""
from_reader = msgspec.msgpack.Decoder(list[FromReader]).decode
"""A batch from one."""


class Batches:
    """Cuts what comes out of a pipe into batches."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The batches that became whole with these bytes."""
        self._held += data
        start = 0
        while len(self._held) - start >= LENGTH:
            end = start + LENGTH + int.from_bytes(self._held[start : start + LENGTH], "big")
            if len(self._held) < end:
                break
            yield bytes(self._held[start + LENGTH : end])
            start = end
        del self._held[:start]


class Outbox(Generic[M]):
    """Gathers messages and writes them once a turn of the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, pipe: asyncio.WriteTransport) -> None:
        self._loop = loop
        self._pipe = pipe
        self._batch: list[M] = []

    def tell(self, message: M) -> None:
        """Write it soon."""
        self._batch.append(message)
        if len(self._batch) == 1:
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        batch, self._batch = self._batch, []
        data = _encoder.encode(batch)
        if not self._pipe.is_closing():
            self._pipe.write(len(data).to_bytes(LENGTH, "big") + data)
