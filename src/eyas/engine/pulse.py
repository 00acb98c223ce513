"""The pulse of a session: taken at each tick, and left in the run directory once a second for who watches from elsewhere."""

from __future__ import annotations

import contextlib
import os
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from eyas.engine.outlook import outlook
from eyas.engine.run import Engine
from eyas.report.end import By
from eyas.report.live.pulse import FILE, Flying, Lane, Pulse, encode

PREDICT = 2.0
"""Seconds between two predictions of the end at least; one that takes long is made less often, see SHARE."""
SHARE = 0.002
"""Of the loop's time that predictions may take."""
WRITE = 1.0
"""Seconds between two writes of the file, and between two samples of the tokens that came."""
MINUTE = 60
"""Samples that a rate is told of."""
LEAST = 2.0
"""Seconds of samples below which there is no rate."""


class Durable(Protocol):
    """What a journal tells of its writes, in seconds."""

    @property
    def lag(self) -> float:
        """Age of the oldest write that is not on the disk yet."""
        ...

    @property
    def commit_seconds(self) -> float:
        """How long the last commit took."""
        ...


class Sample(NamedTuple):
    """Output tokens that had come until a moment (monotonic seconds), by endpoint."""

    at: float
    tokens: Mapping[str, int]


class Rates(NamedTuple):
    """Output tokens a second, of all and by endpoint."""

    all: float | None
    each: Mapping[str, float]


UNKNOWN = Rates(None, {})
"""Rates of too short a time."""


def rates(samples: deque[Sample]) -> Rates:
    """Tokens a second between the first and the last sample; none for too short a time. Never negative."""
    seconds = samples[-1].at - samples[0].at if samples else 0.0
    if seconds < LEAST:
        return UNKNOWN
    first, last = samples[0].tokens, samples[-1].tokens
    each = {tag: max(0.0, (tokens - first.get(tag, 0)) / seconds) for tag, tokens in last.items()}
    return Rates(sum(each.values()), each)


@dataclass(slots=True)
class Beat:
    """Takes the pulse of one session at each tick of its engine; `then` hears of the tick after that."""

    engine: Engine
    folder: Path
    journal: Durable
    then: Callable[[Engine], None] | None = None
    _samples: deque[Sample] = field(default_factory=lambda: deque[Sample](maxlen=MINUTE + 1))
    _rates: Rates = UNKNOWN
    _wrote: float = float("-inf")
    _predict: float = float("-inf")
    _end: tuple[float, By] | None = None

    def tick(self, engine: Engine) -> None:
        """Take the pulse, and leave it for others when a second has passed."""
        now = engine.books.world.clock()
        due = now >= self._wrote + WRITE
        if due:
            self._samples.append(Sample(now, _came(engine)))
            self._rates = rates(self._samples)
            self._wrote = now
        if now >= self._predict:
            self._look_ahead(now)
        engine.pulse = self._taken(now)
        if due:
            self._leave(engine.pulse)
        if self.then is not None:
            self.then(engine)

    def end(self) -> None:
        """The session is over: nothing is left for others, who see the end in the journal."""
        with contextlib.suppress(OSError):
            (self.folder / FILE).unlink(missing_ok=True)

    def _look_ahead(self, now: float) -> None:
        world = self.engine.books.world
        found = outlook(self.engine)
        took = world.clock() - now
        self._predict = now + max(PREDICT, took / SHARE)
        self._end = None if found is None else (world.wall() + found.seconds, found.by)

    def _taken(self, now: float) -> Pulse:
        engine, pace = self.engine, self.engine.books.pace
        ends_at, by = (None, None) if self._end is None or engine.books.stopping else self._end
        return Pulse(
            pid=os.getpid(),
            at=engine.books.world.wall(),
            in_flight=len(engine.flights),
            limit=min(pace.most, int(pace.account.limit)),
            lanes={
                tag: Lane(
                    in_flight=window.in_flight,
                    limit=min(pace.most, int(window.limit)),
                    tokens_per_second=round(self._rates.each.get(tag, 0.0), 1),
                    paused=round(max(0.0, window.paused_until - now), 1),
                    aside=window.aside,
                )
                for tag, window in pace.endpoints.items()
            },
            flying=_flying(engine),
            tokens_per_second=self._rates.all,
            lag=round(self.journal.lag, 4),
            commit=round(self.journal.commit_seconds, 4),
            ends_at=ends_at,
            by=by,
            stopping=engine.books.stopping or "",
        )

    def _leave(self, pulse: Pulse) -> None:
        """Write the file whole; who reads it sees the former one or this one."""
        path, fresh = self.folder / FILE, self.folder / f".{FILE}"
        # It is a view: a disk that cannot take it ends the run by its journal, and in order.
        with contextlib.suppress(OSError):
            handle = os.open(fresh, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
            try:
                os.write(handle, encode(pulse))
            finally:
                os.close(handle)
            fresh.replace(path)


def _came(engine: Engine) -> Counter[str]:
    """Output tokens kept and in flight, by endpoint."""
    came = Counter({tag: each.output_tokens for tag, each in engine.books.state.providers.items()})
    for flight in engine.flights.values():
        came[flight.route.tag] += flight.tokens
    return came


def _flying(engine: Engine) -> dict[str, Flying]:
    answers: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    for flight in engine.flights.values():
        name = flight.candidate.work.dataset
        answers[name] += 1
        tokens[name] += flight.tokens
    return {name: Flying(count, tokens[name]) for name, count in answers.items()}
