"""The pulse of a run over many machines: what its workers say of themselves, put together by who leads them."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec

from eyas.engine.coordinator import Coordinator
from eyas.engine.outlook import foreseen
from eyas.engine.pulse import WRITE, Ahead, Durable, clear, leave
from eyas.report.end import Stream
from eyas.report.live.pulse import Flying, Lane, Pulse

T = TypeVar("T")
TAKE = 0.25
"""Seconds between two pulses at least: workers are spoken to far more often together than anybody can look."""


@dataclass(slots=True)
class FleetBeat:
    """Takes the pulse of one session as its coordinator hears of its workers; `then` hears of the passing of time after that."""

    folder: Path
    journal: Durable
    then: Callable[[Coordinator], None]
    _ahead: Ahead = field(default_factory=Ahead)
    _took: float = float("-inf")
    _wrote: float = float("-inf")

    def tick(self, coordinator: Coordinator) -> None:
        """Take the pulse, and leave it for others when a second has passed."""
        now = coordinator.books.world.clock()
        if now >= self._took + TAKE:
            self._took = now
            coordinator.pulse = self._taken(coordinator)
            if now >= self._wrote + WRITE:
                self._wrote = now
                leave(self.folder, coordinator.pulse)
        self.then(coordinator)

    def end(self) -> None:
        """The session is over: nothing is left for others, who see the end in the journal."""
        clear(self.folder)

    def _taken(self, coordinator: Coordinator) -> Pulse:
        books = coordinator.books
        at = books.world.wall()
        found = together({n: hand.report.pulse or Pulse(pid=0, at=at) for n, hand in coordinator.hands.items()}, at)
        self._ahead.look(books.world, functools.partial(foreseen, books, streams(found.flying)))
        ends_at, by = (None, None) if self._ahead.found is None or books.stopping else self._ahead.found
        return msgspec.structs.replace(
            found,
            pid=os.getpid(),
            lag=round(self.journal.lag, 4),
            commit=round(self.journal.commit_seconds, 4),
            ends_at=ends_at,
            by=by,
            stopping=books.stopping or "",
        )


def together(pulses: Mapping[int, Pulse], at: float) -> Pulse:
    """What workers (by their numbers) are at, as one pulse of that moment, of no process yet."""
    known = [each.tokens_per_second for each in pulses.values() if each.tokens_per_second is not None]
    return Pulse(
        pid=0,
        at=at,
        in_flight=sum(pulse.in_flight for pulse in pulses.values()),
        limit=sum(pulse.limit for pulse in pulses.values()),
        lanes=_merged((pulse.lanes for pulse in pulses.values()), _lane),
        workers={number: pulse.lane for number, pulse in sorted(pulses.items())},
        flying=_merged((pulse.flying for pulse in pulses.values()), _flying),
        tokens_per_second=sum(known) if known else None,
    )


def streams(flying: Mapping[str, Flying]) -> Iterator[Stream]:
    """What flies, as if all answers of a dataset were as far as their mean."""
    for name, each in flying.items():
        for _ in range(each.answers):
            yield Stream(name, each.tokens // each.answers, each.seconds / each.answers)


def _merged(parts: Iterable[Mapping[str, T]], one: Callable[[list[T]], T]) -> dict[str, T]:
    """What several say of the same names, as one."""
    found: dict[str, list[T]] = {}
    for part in parts:
        for name, each in part.items():
            found.setdefault(name, []).append(each)
    return {name: one(every) for name, every in found.items()}


def _lane(lanes: list[Lane]) -> Lane:
    """An endpoint is paused, or set aside, only where it is for each worker."""
    return Lane(
        sum(lane.in_flight for lane in lanes),
        sum(lane.limit for lane in lanes),
        round(sum(lane.tokens_per_second for lane in lanes), 1),
        min(lane.paused for lane in lanes),
        lanes[0].aside if all(lane.aside for lane in lanes) else "",
    )


def _flying(every: list[Flying]) -> Flying:
    return Flying(*(sum(amounts) for amounts in zip(*((e.answers, e.tokens, e.seconds) for e in every), strict=True)))
