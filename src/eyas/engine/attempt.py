"""One attempt: send, read, and say what came of it. No decision is taken here, and nothing is retried."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from eyas.backends.stream import Stream
from eyas.engine.admit import Candidate
from eyas.engine.fetch import NOT_KEPT
from eyas.engine.recover import source_of
from eyas.errors import BrokenError, NotSentError
from eyas.plan import Route
from eyas.transport import Deadlines, Request, Response, Transport
from eyas.types import Billed, Failure, FailureKind, Outcome

LINGER = 2.0
"""Seconds that a finished stream may take to end, so that its connection can be used again."""

Monotonic = Callable[[], float]


@dataclass(slots=True)
class Flight:
    """An attempt in flight.

    Attributes:
        mark: what makes its body unlike any other's; `repeated`: it is that of an earlier attempt.
        fetch: only an answer out of the API's cache is wanted.
        ended: the stop-loss ended it.
        source: the generation that made its answer, where that comes out of the API's cache.
    """

    attempt: int
    candidate: Candidate
    route: Route
    reserved: int
    stream: Stream
    clock: Monotonic = time.monotonic
    sent: float = 0.0
    first_token: float | None = None
    accepted: bool = False
    generation_id: str = ""
    mark: str = ""
    repeated: bool = False
    fetch: bool = False
    ended: bool = False
    source: str = ""
    parts: int = 0
    next_draft: float = 0.0
    on_headers: Callable[[Flight], None] = field(default=lambda _: None)

    @property
    def pieces(self) -> int:
        """Pieces of text that came."""
        return self.stream.tokens


@dataclass(slots=True)
class Meter:
    """Tokens a streamed piece of one route, learned from its settled answers: 1 where pieces are tokens."""

    pieces: int = 0
    tokens: int = 0

    def learn(self, pieces: int, tokens: int) -> None:
        """An answer of so many pieces had so many tokens."""
        self.pieces += pieces
        self.tokens += tokens

    def guess(self, pieces: int) -> int:
        """Tokens of so many pieces; never fewer than pieces."""
        return round(pieces * max(1.0, self.tokens / self.pieces)) if self.pieces else pieces


async def fly(
    flight: Flight, transport: Transport, request: Request, deadlines: Deadlines, failed: FailedReader
) -> Outcome:
    """Send the request and read its answer to the end, whatever that end is. Never raises but on cancellation."""
    flight.sent = flight.clock()
    broken: str | None = None
    try:
        async with transport.open(request, deadlines) as response:
            flight.source = source_of(response.headers)
            flight.generation_id = flight.source or response.headers.get("x-generation-id", "")
            flight.accepted = response.status == 200
            flight.on_headers(flight)
            if not flight.accepted:
                return await _failure(response, flight, failed)
            if flight.fetch and not flight.source:
                return finish(flight, NOT_KEPT)
            await _read(response, flight)
    except NotSentError as error:
        return Failure(FailureKind.CONNECT, Billed.NO, str(error))
    except BrokenError as error:
        broken = str(error)
    return finish(flight, broken)


def finish(flight: Flight, broken: str | None) -> Outcome:
    """What came of an attempt whose response ended, or was ended by us."""
    flight.stream.end()
    outcome = flight.stream.outcome(broken)
    generation_id = flight.source or outcome.generation_id or flight.generation_id
    if isinstance(outcome, Failure):
        return msgspec.structs.replace(outcome, generation_id=generation_id)
    return msgspec.structs.replace(
        outcome,
        usage=None if flight.source else outcome.usage,  # a cached answer counts nothing: its generation knows
        generation_id=generation_id,
        first_token=flight.first_token,
        seconds=round(flight.clock() - flight.sent, 4),
    )


async def _read(response: Response, flight: Flight) -> None:
    stream = flight.stream

    def take(data: bytes) -> None:
        was_done = stream.done
        stream.feed(data)
        if flight.first_token is None and stream.started:
            flight.first_token = round(flight.clock() - flight.sent, 4)
        if stream.done and not was_done:
            response.enough(LINGER)

    await response.read(take)


FailedReader = Callable[[int, "dict[str, str]", bytes], Failure]


async def _failure(response: Response, flight: Flight, failed: FailedReader) -> Failure:
    body = bytearray()
    with contextlib.suppress(BrokenError):
        await response.read(body.extend)
    failure = failed(response.status, dict(response.headers), bytes(body))
    return msgspec.structs.replace(failure, generation_id=failure.generation_id or flight.generation_id)
