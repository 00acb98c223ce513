"""The pulse of a session: taken at each tick, and left in the run directory once a second for who watches from elsewhere."""

from __future__ import annotations

import contextlib
import functools
import os
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from eyas.engine.outlook import outlook
from eyas.engine.run import Engine
from eyas.engine.settle import World
from eyas.report.end import By, End
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
class Ahead:
    """Predicts the end of a session now and then; `found` is when it will be (wall seconds) and what ends it, once known."""

    found: tuple[float, By] | None = None
    _due: float = float("-inf")

    def look(self, world: World, predict: Callable[[], End | None]) -> None:
        """Predict anew, if it is time."""
        now = world.clock()
        if now < self._due:
            return
        end = predict()
        self._due = now + max(PREDICT, (world.clock() - now) / SHARE)
        self.found = None if end is None else (world.wall() + end.seconds, end.by)


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
    _ahead: Ahead = field(default_factory=Ahead)

    def tick(self, engine: Engine) -> None:
        """Take the pulse, and leave it for others when a second has passed."""
        now = engine.books.world.clock()
        due = now >= self._wrote + WRITE
        if due:
            self._samples.append(Sample(now, _came(engine)))
            self._rates = rates(self._samples)
            self._wrote = now
        self._ahead.look(engine.books.world, functools.partial(outlook, engine))
        engine.pulse = self._taken(now)
        if due:
            leave(self.folder, engine.pulse)
        if self.then is not None:
            self.then(engine)

    def end(self) -> None:
        """The session is over: nothing is left for others, who see the end in the journal."""
        clear(self.folder)

    def _taken(self, now: float) -> Pulse:
        engine, pace = self.engine, self.engine.books.pace
        ends_at, by = (None, None) if self._ahead.found is None or engine.books.stopping else self._ahead.found
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
            flying=_flying(engine, now),
            tokens_per_second=self._rates.all,
            lag=round(self.journal.lag, 4),
            commit=round(self.journal.commit_seconds, 4),
            ends_at=ends_at,
            by=by,
            stopping=engine.books.stopping or "",
        )


def leave(folder: Path, pulse: Pulse) -> None:
    """Write the file whole; who reads it sees the former one or this one."""
    path, fresh = folder / FILE, folder / f".{FILE}"
    # It is a view: a disk that cannot take it ends the run by its journal, and in order.
    with contextlib.suppress(OSError):
        handle = os.open(fresh, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        try:
            os.write(handle, encode(pulse))
        finally:
            os.close(handle)
        fresh.replace(path)


def clear(folder: Path) -> None:
    """Nothing is left for others."""
    with contextlib.suppress(OSError):
        (folder / FILE).unlink(missing_ok=True)


def _came(engine: Engine) -> Counter[str]:
    """Output tokens kept and in flight, by endpoint."""
    came = Counter({tag: each.output_tokens for tag, each in engine.books.state.providers.items()})
    for flight in engine.flights.values():
        came[flight.route.tag] += flight.tokens
    return came


def _flying(engine: Engine, now: float) -> dict[str, Flying]:
    answers: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    for flight in engine.flights.values():
        name = flight.candidate.work.dataset
        answers[name] += 1
        tokens[name] += flight.tokens
        seconds[name] += int(now - flight.began)
    return {name: Flying(count, tokens[name], seconds[name]) for name, count in answers.items()}
