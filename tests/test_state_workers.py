"""What workers have: conversations until nothing more of them can come, and money until it is known what became of it."""

from __future__ import annotations

import pytest

from eyas.errors import LedgerError
from eyas.events import (
    AnyEvent,
    Corrected,
    Granted,
    Headers,
    Intent,
    PromptAdded,
    SessionOpened,
    Settled,
    WorkerJoined,
    WorkerLeft,
)
from eyas.report.summary import status
from eyas.standing import MOST_LOST
from eyas.state import Left, State, fold
from eyas.survey.together import together
from eyas.types import FailureKind, Prices, Verdict, Work

WORK = Work("A", "1")
BEGUN: tuple[AnyEvent, ...] = (
    SessionOpened(at=0.0, model="m", cap=1000, quotas={"A": None}),
    PromptAdded(at=0.0, dataset="A", prompt_id="1", tokens=10),
    WorkerJoined(at=1.0, who=1, node="node-1"),
    Granted(at=1.0, to=1, number=1, nano=900, works={"A": ("1",)}),
)


def attempt(number: int, verdict: Verdict, cost: int | None, kind: FailureKind | None = None) -> tuple[AnyEvent, ...]:
    """The worker asks the one work and hears of its end; 100 are reserved."""
    seq, prices = 2 * number, Prices(1, 2)
    return (
        Intent(1.0, attempt=number, work=WORK, number=number, tag="p", prices=prices, reserved=100, worker=1, seq=seq),
        Settled(2.0, attempt=number, verdict=verdict, cost=cost, kind=kind, worker=1, seq=seq + 1),
    )


def lost(number: int) -> tuple[AnyEvent, ...]:
    """An attempt of which nothing is known."""
    return attempt(number, Verdict.UNKNOWN, None, FailureKind.LOST)


def test_a_cost_that_ends_a_conversation_takes_it_from_its_worker() -> None:
    """Whoever finds it out: the coordinator's look-up of the last loss ends the work, as the worker's own does."""
    for finder in (0, 1):
        state = fold(BEGUN)
        for number in range(1, MOST_LOST + 1):
            for event in lost(number):
                state.apply(event)
            assert state.workers[1].works == {WORK}
            seq = 2 * MOST_LOST + 2 if number == MOST_LOST else 0
            who = finder if seq else 0
            state.apply(Corrected(at=3.0, attempt=number, cost=5, worker=who, seq=seq if who else 0))
        assert state.works[WORK].verdict is Verdict.FAILED
        assert state.workers[1].works == set()
        assert state.workers[1].cost == state.money.settled == 5 * MOST_LOST


def test_a_part_that_is_asked_again_is_its_workers_again() -> None:
    """A part ends a conversation; asking it to become whole brings it back to whoever asks."""
    state = fold((*BEGUN, *attempt(1, Verdict.PARTIAL, 20)))
    assert state.workers[1].works == set()
    again, end = attempt(2, Verdict.DONE, 30)
    state.apply(again)
    assert state.workers[1].works == {WORK}
    state.apply(end)
    assert state.workers[1].works == set()


def test_what_was_written_off_is_found_again() -> None:
    """Written off it is spent for nothing; the journal that turns up says what was spent, and the rest is free."""
    state = fold((*BEGUN, WorkerLeft(at=4.0, who=1, written_off=True)))
    assert (state.money.settled, state.money.wasted, state.workers[1].works) == (900, 900, set())
    for event in attempt(1, Verdict.DONE, 30):
        state.apply(event)
        assert state.money.committed == 900
    state.apply(WorkerLeft(at=5.0, who=1))
    assert (state.money.settled, state.money.wasted, state.money.leased) == (30, 0, 0)
    assert state.workers[1].left is Left.READ


@pytest.mark.parametrize(
    "event",
    [
        WorkerLeft(at=6.0, who=1),
        WorkerLeft(at=6.0, who=1, written_off=True),
        Granted(at=6.0, to=1, number=2, nano=1, works={}),
        Headers(at=6.0, attempt=1, generation_id="gen", worker=1, seq=9),
    ],
)
def test_after_its_end_nothing_comes_of_a_worker(event: AnyEvent) -> None:
    """What was read to its end is over, also where it was written off before."""
    ends = (WorkerLeft(at=4.0, who=1, written_off=True), WorkerLeft(at=5.0, who=1))
    for end in (ends[1:], ends):
        state: State = fold((*BEGUN, *attempt(1, Verdict.DONE, 30), *end))
        with pytest.raises(LedgerError, match="it has left"):
            state.apply(event)


def test_workers_of_several_runs_stay_apart() -> None:
    """A report of two runs has two first workers, each with what it did, and not one with the sums."""
    one, two = ({**status(fold((*BEGUN, *more)), running=False)} for more in ((), attempt(1, Verdict.DONE, 7)))
    found = together([one, two])["workers"]
    assert found == {"1.1": one["workers"]["1"], "2.1": two["workers"]["1"]}
    assert [each["usd"] for each in found.values()] == [0.0, 7e-9]
    assert together([two])["workers"] == two["workers"]
