"""One request sent and its answer read to the end. No decision is taken here, and nothing is retried.

This is what a reader process does; it knows nothing of works, money or the journal.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from eyas.backends.base import Answer
from eyas.errors import BrokenError, NotSentError
from eyas.transport import Deadlines, Request, Response, Transport
from eyas.types import Billed, Failure, FailureKind, Outcome

LINGER = 2.0
"""Seconds that a finished stream may take to end, so that its connection can be used again."""

CACHED = "HIT"
"""What the API says of an answer that comes out of its response cache."""

NOT_KEPT = "it is not in the API's cache"

Monotonic = Callable[[], float]
FailedReader = Callable[[int, "dict[str, str]", bytes], Failure]


class Head(msgspec.Struct, frozen=True):
    """What the response's headers say.

    Attributes:
        accepted: the status is 200.
        source: the generation that made the answer, where it comes out of the API's cache.
        generation_id: that one, or the answer's own; empty where none was named.
    """

    accepted: bool = False
    generation_id: str = ""
    source: str = ""


def _nothing(_: Head) -> None:
    """Nobody listens."""


@dataclass(slots=True)
class Reading:
    """One answer as it is read. `fetch`: only one out of the API's cache is wanted; `on_head` hears of the headers."""

    stream: Answer
    fetch: bool = False
    clock: Monotonic = time.monotonic
    on_head: Callable[[Head], None] = field(default=_nothing)
    sent: float = 0.0
    first_token: float | None = None
    head: Head = field(default_factory=Head)


async def read(
    reading: Reading, transport: Transport, request: Request, deadlines: Deadlines, failed: FailedReader
) -> Outcome:
    """Send the request and read its answer to the end, whatever that end is. Never raises but on cancellation."""
    reading.sent = reading.clock()
    broken: str | None = None
    try:
        async with transport.open(request, deadlines) as response:
            source = source_of(response.headers)
            reading.head = Head(response.status == 200, source or response.headers.get("x-generation-id", ""), source)
            reading.on_head(reading.head)
            if not reading.head.accepted:
                return await _failure(response, reading, failed)
            if reading.fetch and not source:
                return finish(reading, NOT_KEPT)
            await _body(response, reading)
    except NotSentError as error:
        return Failure(FailureKind.CONNECT, Billed.NO, str(error))
    except BrokenError as error:
        broken = str(error)
    return finish(reading, broken)


def finish(reading: Reading, broken: str | None) -> Outcome:
    """What came of a request whose response ended, or was ended by us."""
    reading.stream.end()
    outcome, head = reading.stream.outcome(broken), reading.head
    generation_id = head.source or outcome.generation_id or head.generation_id
    if isinstance(outcome, Failure):
        return msgspec.structs.replace(outcome, generation_id=generation_id)
    return msgspec.structs.replace(
        outcome,
        usage=None if head.source else outcome.usage,  # a cached answer counts nothing: its generation knows
        generation_id=generation_id,
        first_token=reading.first_token,
        seconds=round(reading.clock() - reading.sent, 4),
    )


async def _body(response: Response, reading: Reading) -> None:
    stream = reading.stream

    def take(data: bytes) -> None:
        was_done = stream.done
        stream.feed(data)
        if reading.first_token is None and stream.started:
            reading.first_token = round(reading.clock() - reading.sent, 4)
        if stream.done and not was_done:
            response.enough(LINGER)

    await response.read(take)


async def _failure(response: Response, reading: Reading, failed: FailedReader) -> Failure:
    body = bytearray()
    with contextlib.suppress(BrokenError):
        await response.read(body.extend)
    failure = failed(response.status, dict(response.headers), bytes(body))
    return msgspec.structs.replace(failure, generation_id=failure.generation_id or reading.head.generation_id)


def source_of(headers: Mapping[str, str]) -> str:
    """The generation that made a cached answer; empty where the answer is a fresh one. Header names are lower case."""
    hit = headers.get("x-openrouter-cache-status", "").upper() == CACHED
    return headers.get("x-openrouter-cache-source-id", "") if hit else ""
