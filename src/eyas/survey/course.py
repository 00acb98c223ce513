"""How runs went, binned while their events are read: exact figures at the end of each bin, however long it took (pure)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from eyas.ledger import usd
from eyas.report.document import Course

MOST = 400
"""Bins; when there are more, neighbours become one."""
FIRST = 0.25
"""Seconds of a bin as long as there are few."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where all runs stand at a moment, money in nano-dollars. `cap` is None if one of them has none."""

    settled: int = 0
    reserved: int = 0
    unknown: int = 0
    cap: int | None = None
    flying: int = 0
    answered: int = 0


@dataclass(frozen=True, slots=True)
class Happened:
    """What was counted since the moment before."""

    tokens: int = 0
    errors: int = 0
    rejects: int = 0

    def __add__(self, other: Happened) -> Happened:
        return Happened(self.tokens + other.tokens, self.errors + other.errors, self.rejects + other.rejects)


@dataclass(frozen=True, slots=True)
class Moment:
    """A bin: its end, how long it is (0: a session begins), where all stood at its end, the most that flew, what happened."""

    at: float
    seconds: float
    standing: Standing
    most_flying: int
    happened: Happened

    def joined(self, later: Moment) -> Moment:
        """Both as one."""
        return Moment(
            later.at,
            self.seconds + later.seconds,
            later.standing,
            max(self.most_flying, later.most_flying),
            self.happened + later.happened,
        )


class Bins:
    """Bins of one width, which doubles when there are too many: `most`, and two more a session. Fed in the order of time."""

    def __init__(self, most: int = MOST, width: float = FIRST) -> None:
        self._most, self._width = most, width
        self._done: list[Moment] = []
        self._sessions = 0
        self._begun: float = 0.0
        self._at: float = 0.0
        self._standing, self._flew, self._happened, self._fed = Standing(), 0, Happened(), False

    def begin(self, at: float, standing: Standing) -> None:
        """A process takes up a run while none ran: no bin reaches from before it to after it."""
        if self._fed:
            self._close(self._at)
        self._sessions += 1
        at = max(at, self._at)
        self._at = at
        self._done.append(Moment(at, 0.0, standing, standing.flying, Happened()))
        self._open(at, standing)

    def add(self, at: float, standing: Standing, happened: Happened | None = None) -> None:
        """Something happened, after which all stand so. A time before the last one counts as the last one."""
        if not self._sessions:
            self.begin(at, standing)
        at = max(at, self._at)
        while at >= self._begun + self._width:
            if (at - self._begun) / self._width > self._most + 2 * self._sessions - len(self._done):
                self._widen()
            else:
                end = self._begun + self._width
                self._close(end)
                self._open(end, self._standing)
        self._at, self._standing, self._fed = at, standing, True
        self._flew = max(self._flew, standing.flying)
        if happened is not None:
            self._happened += happened

    def moments(self) -> list[Moment]:
        """The bins so far; what came after the last whole one joins it where it is short."""
        if not self._fed:
            return list(self._done)
        last, before = self._cut(self._at), self._done[-1]
        if before.seconds and last.seconds < self._width / 2:
            return [*self._done[:-1], before.joined(last)]
        return [*self._done, last]

    def _open(self, at: float, standing: Standing) -> None:
        self._begun, self._standing, self._fed = at, standing, False
        self._flew, self._happened = standing.flying, Happened()

    def _cut(self, at: float) -> Moment:
        return Moment(at, at - self._begun, self._standing, self._flew, self._happened)

    def _close(self, at: float) -> None:
        self._done.append(self._cut(at))

    def _widen(self) -> None:
        self._width *= 2
        self._done = list(_halved(self._done, self._width))
        before = self._done[-1]
        if 0 < before.seconds <= self._width / 2 and before.at == self._begun:
            # The one before is half as long as bins are now: what is open goes on with it.
            self._done.pop()
            self._begun -= before.seconds
            self._flew = max(self._flew, before.most_flying)
            self._happened = before.happened + self._happened


def _halved(moments: list[Moment], width: float) -> Iterator[Moment]:
    """Neighbours within a session as one, as far as they are no longer than the width."""
    held: Moment | None = None
    for moment in moments:
        if held is None:
            held = moment
        elif held.seconds and moment.seconds and held.seconds + moment.seconds <= width * (1 + 1e-9):
            held = held.joined(moment)
        else:
            yield held
            held = moment
    if held is not None:
        yield held


def course(moments: list[Moment], sessions: list[tuple[float, float]]) -> Course:
    """The figures of the bins."""
    return Course(
        at=[each.at for each in moments],
        settled_usd=[usd(each.standing.settled) for each in moments],
        reserved_usd=[usd(each.standing.reserved) for each in moments],
        unknown_usd=[usd(each.standing.unknown) for each in moments],
        cap_usd=[None if each.standing.cap is None else usd(each.standing.cap) for each in moments],
        tokens_per_second=[_rate(each.happened.tokens, each.seconds) for each in moments],
        in_flight=[each.most_flying for each in moments],
        errors_per_minute=[_rate(each.happened.errors, each.seconds / 60) for each in moments],
        rejects_per_minute=[_rate(each.happened.rejects, each.seconds / 60) for each in moments],
        answered=[each.standing.answered for each in moments],
        sessions=sessions,
    )


def _rate(count: int, units: float) -> float:
    return round(count / units, 3) if units else 0.0
