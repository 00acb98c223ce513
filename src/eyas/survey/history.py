"""Runs as their journals tell them: every event once, all runs by time; read on from where it was left."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from eyas.events import AnyEvent, Forgotten, Intent, SessionClosed, SessionOpened, Settled
from eyas.journal import Store
from eyas.journal.checkpoint import unwatched
from eyas.state import State
from eyas.survey.course import Bins, Happened, Moment, Standing
from eyas.types import FailureKind

REJECTS = frozenset({FailureKind.RATE_LIMIT, FailureKind.IN_FLIGHT_BUDGET})
"""Refused for now (429, 503 and the like), not failed."""


@dataclass(slots=True)
class _Run:
    """One run, folded as far as it was read."""

    folder: Path
    state: State = field(default_factory=State)
    seq: int = 0
    at: float = 0.0
    flying: set[int] = field(default_factory=set[int])
    answered: int = 0
    sessions: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    running: bool = False

    def events(self, place: int) -> Iterator[tuple[float, int, int, AnyEvent]]:
        """What was written since it was read last: its time, which never runs back, the place of the run, number, event."""
        with closing(Store(self.folder)) as store:
            at = self.at
            for seq, event in store.events(self.seq):
                at = max(at, event.at)
                yield at, place, seq, event

    def take(self, seq: int, event: AnyEvent) -> Happened | None:
        """Fold an event; what of it is counted, None if nothing is."""
        self.seq, self.at = seq, max(self.at, event.at)
        before = self._has_answer(event)
        self.state.apply(event)
        happened: Happened | None = None
        if isinstance(event, Intent):
            self.flying.add(event.attempt)
        elif isinstance(event, Settled):
            happened = self._settle(event, answered_before=before)
        elif isinstance(event, Forgotten):
            self.answered = sum(known.answer is not None for known in self.state.works.values())
        elif isinstance(event, SessionOpened):
            self.flying.clear()  # what a killed process left behind flies no more
            self.running = True
            self.sessions.append((self.at, self.at))
        elif isinstance(event, SessionClosed):
            self.running = False
        if self.sessions:
            self.sessions[-1] = (self.sessions[-1][0], self.at)
        return happened

    def _has_answer(self, event: AnyEvent) -> bool:
        """Whether the work that an attempt ends for has an answer already."""
        if not isinstance(event, Settled) or event.attempt not in self.state.attempts:
            return False
        known = self.state.works.get(self.state.attempts[event.attempt].work)
        return known is not None and known.answer is not None

    def _settle(self, event: Settled, *, answered_before: bool) -> Happened:
        self.flying.discard(event.attempt)
        answered = self.state.attempts[event.attempt].answered
        self.answered += answered and not answered_before
        rejected = event.kind in REJECTS
        failed = event.kind is not None and not rejected and not answered
        return Happened(event.tokens if answered else 0, int(failed), int(rejected))


class History:
    """What the journals of some runs tell, read once and then on from there."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._runs = [_Run(folder) for folder in folders]
        self._bins = Bins()

    def read(self) -> None:
        """Take in what was written since; of runs that go on, what is durable by now.

        Raises:
            UsageError: no run directory.
            StorageError: a journal cannot be read.
            LedgerError: a journal contradicts itself.
        """
        streams = [run.events(place) for place, run in enumerate(self._runs)]
        with unwatched():
            for _, place, seq, event in heapq.merge(*streams):
                self.take(place, seq, event)

    def take(self, place: int, seq: int, event: AnyEvent) -> None:
        """Take in the event of that number of the run of that place; what follows has happened later."""
        run = self._runs[place]
        idle = not any(each.running for each in self._runs if each is not run)
        money = run.state.money
        happened = run.take(seq, event)
        if isinstance(event, SessionOpened) and idle:
            self._bins.begin(run.at, self._standing())
        elif happened is not None or run.state.money is not money or isinstance(event, Intent):
            self._bins.add(run.at, self._standing(), happened)

    @property
    def states(self) -> list[State]:
        """Where the runs stand, in the order of their folders."""
        return [run.state for run in self._runs]

    @property
    def moments(self) -> list[Moment]:
        """How they went."""
        return self._bins.moments()

    @property
    def sessions(self) -> list[tuple[float, float]]:
        """When each process began and ended (for one that runs or was killed: its last event), by beginning."""
        return sorted(session for run in self._runs for session in run.sessions)

    def _standing(self) -> Standing:
        moneys = [run.state.money for run in self._runs if run.sessions]
        caps = [money.cap for money in moneys]
        return Standing(
            settled=sum(money.settled for money in moneys),
            # What is set apart for others to spend is reserved too: it is neither settled nor unknown, and below the cap.
            reserved=sum(money.committed - money.settled - money.unknown for money in moneys),
            unknown=sum(money.unknown for money in moneys),
            cap=None if None in caps else sum(cap for cap in caps if cap is not None),
            flying=sum(len(run.flying) for run in self._runs),
            answered=sum(run.answered for run in self._runs),
        )


def active(sessions: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The stretches of time in which a process ran: sessions that overlap as one, by beginning."""
    found: list[tuple[float, float]] = []
    for begin, end in sorted(sessions):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


def seconds_until(stretches: Sequence[tuple[float, float]], at: float) -> float:
    """Seconds of those stretches that lie before a moment."""
    return sum(max(0.0, min(end, at) - begin) for begin, end in stretches)
