"""One attempt in flight, as the engine sees it, and the seam to whoever reads its answer: this process, or another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from eyas.backends.answers import answer
from eyas.engine.admit import Candidate
from eyas.engine.reading import Head, Monotonic, Reading, finish, read
from eyas.engine.target import Backend
from eyas.plan import Route
from eyas.transport import Deadlines, Request, Transport
from eyas.types import DraftText, Outcome


class Progress(Protocol):
    """How far an answer has come."""

    @property
    def tokens(self) -> int:
        """Pieces of text that came."""
        ...

    @property
    def started(self) -> bool:
        """Whether any text came."""
        ...

    def draft(self) -> DraftText | None:
        """What came since the last draft; None if nothing did."""
        ...


class Nothing:
    """Nothing came yet."""

    tokens = 0
    started = False

    def draft(self) -> None:
        """Nothing."""
        return


@dataclass(slots=True)
class Flight:
    """An attempt in flight.

    Attributes:
        began: when, on the run's clock.
        most: its max_tokens; `tokens`: how many it has, as the last tick guessed.
        mark: what makes its body unlike any other's; `repeated`: it is that of an earlier attempt.
        fetch: only an answer out of the API's cache is wanted.
        sent: its request was handed to the reader; `ended`: the stop-loss ended it.
        source: the generation that made its answer, where that comes out of the API's cache.
    """

    attempt: int
    candidate: Candidate
    route: Route
    reserved: int
    most: int
    began: float = 0.0
    progress: Progress = field(default_factory=Nothing)
    accepted: bool = False
    generation_id: str = ""
    mark: str = ""
    repeated: bool = False
    fetch: bool = False
    sent: bool = False
    tokens: int = 0
    ended: bool = False
    source: str = ""
    parts: int = 0
    next_draft: float = 0.0
    on_headers: Callable[[Flight], None] = field(default=lambda _: None)

    @property
    def pieces(self) -> int:
        """Pieces of text that came."""
        return self.progress.tokens

    def take_head(self, head: Head) -> None:
        """Its headers came."""
        self.accepted, self.generation_id, self.source = head.accepted, head.generation_id, head.source
        self.on_headers(self)


class Reader(Protocol):
    """Sends requests and reads their answers."""

    async def read(self, flight: Flight, request: Request) -> Outcome:
        """Send the request and read its answer to the end, whatever that end is; `flight` is kept up to date.

        Raises nothing but on cancellation.
        """
        ...

    async def finish(self, flight: Flight, why: str) -> Outcome:
        """What had come of an answer whose `read` was cancelled."""
        ...


@dataclass(slots=True)
class Here:
    """Reads in this process."""

    transport: Transport
    backend: Backend
    deadlines: Deadlines
    clock: Monotonic
    _readings: dict[int, Reading] = field(default_factory=dict[int, Reading])

    async def read(self, flight: Flight, request: Request) -> Outcome:
        """See `Reader`."""
        reading = Reading(answer(self.backend.wire), flight.fetch, self.clock, flight.take_head)
        flight.sent, flight.progress = True, self.progress(reading)
        self._readings[flight.attempt] = reading
        outcome = await read(reading, self.transport, request, self.deadlines, self.backend.failure)
        del self._readings[flight.attempt]
        return outcome

    async def finish(self, flight: Flight, why: str) -> Outcome:
        """See `Reader`."""
        return finish(self._readings.pop(flight.attempt), why)

    def progress(self, reading: Reading) -> Progress:
        """How far an answer has come: its stream knows."""
        return reading.stream


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
