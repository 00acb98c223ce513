"""The course of a run: bins of any events are exact at each moment, and never many."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from eyas.events import AnyEvent, Corrected, Intent, PromptAdded, SessionClosed, SessionOpened, Settled
from eyas.ledger import usd
from eyas.state import State
from eyas.survey.course import Bins, Happened, Standing, course
from eyas.survey.history import History, active, seconds_until
from eyas.types import FailureKind, Prices, StopReason, Verdict, Work

CAP = 10**12
KINDS = (None, FailureKind.RATE_LIMIT, FailureKind.UPSTREAM)


class Script:
    """Events of a run as it may go, drawn step by step."""

    def __init__(self) -> None:
        self.events: list[AnyEvent] = [
            SessionOpened(1000.0, "m", CAP, {"D": None}),
            *(PromptAdded(1000.0, "D", f"{i:016x}", 5) for i in range(6)),
        ]
        self.at, self.attempts = 1000.0, 0
        self.open: list[int] = []
        self.unknown: list[int] = []

    def step(self, wait: float, what: int, number: int) -> None:
        """One thing happens after `wait` seconds."""
        self.at += wait
        if what == 0:
            self.attempts += 1
            self.open.append(self.attempts)
            work = Work("D", f"{number % 6:016x}")
            self.events.append(Intent(self.at, self.attempts, work, 1, f"p{number % 2}", Prices(1, 1), 100 + number))
        elif what in (1, 2) and self.open:
            attempt = self.open.pop(number % len(self.open))
            self.events.append(self._settled(attempt, what, number))
        elif what == 3 and self.unknown:
            self.events.append(Corrected(self.at, self.unknown.pop(), number))
        elif what == 4:
            if number % 2:
                self.events.append(SessionClosed(self.at, StopReason.INTERRUPTED))
            self.at += 50.0 * number
            self.events.append(SessionOpened(self.at, "m", CAP + number, {"D": None}))

    def _settled(self, attempt: int, what: int, number: int) -> Settled:
        if what == 2:
            self.unknown.append(attempt)
            return Settled(self.at, attempt, Verdict.UNKNOWN, None, kind=FailureKind.LOST)
        kind = KINDS[number % 3]
        if kind is None:
            return Settled(self.at, attempt, Verdict.DONE, number, tokens=number)
        return Settled(self.at, attempt, Verdict.AGAIN, 0, kind=kind)


steps = st.lists(st.tuples(st.floats(0, 400, allow_nan=False), st.integers(0, 4), st.integers(0, 99)), max_size=80)


def played(given_steps: list[tuple[float, int, int]]) -> list[AnyEvent]:
    """The events of such steps."""
    script = Script()
    for step in given_steps:
        script.step(*step)
    return script.events


def history(events: list[AnyEvent]) -> History:
    """A history of one run that took these events in."""
    found = History([Path("run")])
    for seq, event in enumerate(events, 1):
        found.take(0, seq, event)
    return found


def figures(state: State) -> tuple[int, int, int, int | None]:
    """What a moment tells of the money."""
    return state.money.settled, state.money.reserved, state.money.unknown, state.money.cap


@given(steps)
def test_each_moment_stands_where_the_state_stood(drawn: list[tuple[float, int, int]]) -> None:
    """Settled, reserved, unknown and cap of every moment are those of State folded up to then."""
    events = played(drawn)
    state, before = State(), list[tuple[float, tuple[int, int, int, int | None]]]()
    for event in events:
        state.apply(event)
        before.append((event.at, figures(state)))
    for moment in history(events).moments:
        there = moment.standing
        found = (there.settled, there.reserved, there.unknown, there.cap)
        until = [each for at, each in before if at <= moment.at]
        earlier = [each for at, each in before if at < moment.at]
        # What happens at the very end of a bin is in the next one; a moment that opens a session is within its events.
        assert found in (until[-1], *earlier[-1:], *(each for at, each in before if at == moment.at))


@given(steps)
def test_the_last_moment_is_the_state(drawn: list[tuple[float, int, int]]) -> None:
    """The course ends where `eyas status` stands, and sums to all that happened."""
    events = played(drawn)
    found = history(events)
    last = found.moments[-1].standing
    state = found.states[0]
    assert (last.settled, last.reserved, last.unknown, last.cap) == figures(state)
    assert last.answered == sum(known.answer is not None for known in state.works.values())
    total = sum((moment.happened for moment in found.moments), Happened())
    kinds = [e.kind for e in events if isinstance(e, Settled) and e.kind is not None]
    assert total.rejects == kinds.count(FailureKind.RATE_LIMIT)
    assert total.errors == len(kinds) - total.rejects


@given(steps)
def test_moments_rise_and_no_rate_reaches_over_a_pause(drawn: list[tuple[float, int, int]]) -> None:
    """Times never run back, and bins of a session fill just its time."""
    found = history(played(drawn))
    moments = found.moments
    assert all(one.at <= two.at for one, two in itertools.pairwise(moments))
    for begin, end in found.sessions:
        inside = [m for m in moments if m.seconds and begin < m.at <= end + 1e-6]
        assert sum(m.seconds for m in inside) <= end - begin + 1e-6


@given(st.lists(st.floats(0, 90_000), max_size=60), st.integers(8, 40))
def test_there_are_never_many_moments(waits: list[float], most: int) -> None:
    """However long a run takes, and however often it is taken up, the course stays small."""
    bins, at, sessions = Bins(most=most, width=0.001), 0.0, 1
    bins.begin(at, Standing())
    for number, wait in enumerate(waits):
        at += wait
        if number % 7 == 6:
            bins.begin(at, Standing())
            sessions += 1
        else:
            bins.add(at, Standing(settled=number), Happened(tokens=1))
    moments = bins.moments()
    assert len(moments) <= most + 2 * sessions + 1
    assert sum(moment.happened.tokens for moment in moments) == sum(n % 7 != 6 for n in range(len(waits)))


def test_what_a_kill_left_flying_flies_no_more() -> None:
    """After a resume only requests of the new process count as in flight; their money stays reserved."""
    script = Script()
    for _ in range(3):
        script.step(1.0, 0, 0)
    script.step(1.0, 4, 0)  # killed, and taken up at once
    script.step(1.0, 0, 5)
    found = history(script.events)
    table = course(found.moments, found.sessions)
    assert max(table.in_flight) == 3
    assert table.in_flight[-1] == 1
    assert table.reserved_usd[-1] == usd(100 * 3 + 105)


def test_several_runs_stand_together() -> None:
    """Money, caps and flights of runs at the same time are added; a run without a cap leaves none."""
    found = History([Path("a"), Path("b")])
    for seq, place in enumerate((0, 1), 1):
        found.take(place, 1, SessionOpened(float(seq), "m", 100, {"D": None}))
        found.take(place, 2, PromptAdded(float(seq), "D", "0" * 16, 1))
        found.take(place, 3, Intent(seq + 0.5, 1, Work("D", "0" * 16), 1, "p", Prices(1, 1), 7))
    last = found.moments[-1].standing
    assert (last.reserved, last.cap, last.flying) == (14, 200, 2)
    found.take(1, 4, SessionOpened(9.0, "m", None, {"D": None}))
    assert found.moments[-1].standing.cap is None


def test_time_counts_while_a_process_runs() -> None:
    """Sessions that overlap are one stretch; pauses between them count nothing."""
    stretches = active([(0.0, 10.0), (5.0, 12.0), (100.0, 110.0)])
    assert stretches == [(0.0, 12.0), (100.0, 110.0)]
    assert [seconds_until(stretches, at) for at in (4.0, 50.0, 103.0, 999.0)] == [4.0, 12.0, 15.0, 22.0]


def test_a_run_without_events_has_no_course() -> None:
    """All lists are empty, and of one length."""
    table: Any = course(History([]).moments, [])
    assert all(getattr(table, name) == [] for name in table.__struct_fields__)
