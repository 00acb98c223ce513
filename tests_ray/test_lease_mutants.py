"""Wrong leases, each wrong in a way that such leases are: the state machine sees every one, and so proves something."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from eyas import state as states
from eyas.engine.absorb import Emit
from eyas.errors import CapReached, LedgerError
from eyas.events import AnyEvent, Corrected, Event, Granted, Intent, TurnRefused, WorkerLeft
from eyas.journal import Row
from eyas.ledger import Lease, Money
from eyas.standing import Left
from eyas.state import State, attempts, workers
from eyas.types import Work
from tests_ray import leadkit
from tests_ray.leadkit import Lead
from tests_ray.leasekit import Peer
from tests_ray.test_lease_machine import Leases

CAUGHT = (AssertionError, LedgerError, CapReached, KeyError, IndexError, BaseExceptionGroup)
APPLY = states._APPLY

Patch = pytest.MonkeyPatch
STEPS = settings(max_examples=4000, stateful_step_count=50, deadline=None, database=None, derandomize=True,
                 phases=(Phase.generate,), report_multiple_bugs=False)  # fmt: skip
"""The first example that fails is enough; the rarest mutant needs about 300, and which ones are drawn changes with the code."""


def without_the_cursor(patch: Patch) -> None:
    """Rows that come again are taken in again."""
    right, take = leadkit.absorb, APPLY[Event]

    def everything(state: State, worker: int, rows: Iterable[Row], emit: Emit) -> list[AnyEvent]:
        found: list[AnyEvent] = []
        for row in rows:
            state.workers[worker].seq = min(state.workers[worker].seq, row.seq - 1)
            found += right(state, worker, [row], emit)
        return found

    def again(state: State, event: Any) -> None:
        state.workers[event.worker].seq = min(state.workers[event.worker].seq, event.seq - 1)
        take(state, event)

    patch.setattr(leadkit, "absorb", everything)
    patch.setitem(APPLY, Event, again)


def freed_when_written_off(patch: Patch) -> None:
    """What a worker had that was given up may be granted to others."""
    patch.setattr(Money, "write_off", lambda money, lease: money.released(lease, Lease()))


def freed_after_it_was_written_off(patch: Patch) -> None:
    """What a worker that was given up is told to have cost less is free for others; it may spend that itself."""
    right = Money.found
    patch.setattr(
        Money, "found", lambda money, lease, change: right(money, lease, change) if change > 0 else (money, lease)
    )


def more_given_back_than_there_is(patch: Patch) -> None:
    """What a worker says that it gives back is believed."""
    patch.setattr(Lease, "give_back", lambda lease, amount: replace(lease, granted=lease.granted - amount))


def left_whatever_was_used(patch: Patch) -> None:
    """A lease is as large as what was granted, also after it was spent."""
    patch.setattr(Lease, "left", property(lambda lease: lease.granted))


def words_after_the_end(patch: Patch) -> None:
    """A worker whose journal was read to the end, and whose lease is free, may go on."""
    right = APPLY[Event]

    def take(state: State, event: Any) -> None:
        worker = state.workers[event.worker]
        left, worker.left = worker.left, Left.NOT if worker.left is Left.READ else worker.left
        try:
            right(state, event)
        finally:
            worker.left = left

    patch.setitem(APPLY, Event, take)


def granted_beside_the_books(patch: Patch) -> None:
    """A grant is noted with the worker, and not taken from what is free."""
    right = APPLY[Granted]

    def granted(state: State, event: Granted) -> None:
        money = state.money
        right(state, event)
        state.money = money

    patch.setitem(APPLY, Granted, granted)


def freed_unread(patch: Patch) -> None:
    """The lease of a lost worker is free at once, whatever its journal holds."""

    def let_go(lead: Lead, peer: Peer, _bill: object) -> None:
        if lead.state.workers[peer.number].left is not Left.READ:
            lead.sure(WorkerLeft(at=4.0, who=peer.number))

    patch.setattr(Lead, "to_the_end", let_go)


def looked_up_for_others(patch: Patch) -> None:
    """What the coordinator finds to have cost less is free for others, also where the worker may spend it."""
    patch.setitem(APPLY, Corrected, attempts.corrected)


def settled_for_others(patch: Patch) -> None:
    """A coordinator that was killed settles what flies at its workers, as one machine alone does with its own."""
    patch.setattr(leadkit, "mine", State.left_open)


def given_up_while_unknown(patch: Patch) -> None:
    """A conversation that waits for an unknown outcome is its worker's no more, though it asks again."""
    patch.setattr(workers, "unknown", lambda _state, _work: False)


def kept_after_a_refusal(patch: Patch) -> None:
    """A conversation that ends with a turn that cannot be asked stays with its worker."""
    right: Callable[[State, AnyEvent], Work | None] = workers._may_end
    patch.setattr(
        workers, "_may_end", lambda state, event: None if isinstance(event, TurnRefused) else right(state, event)
    )


def a_part_fetched_unseen(patch: Patch) -> None:
    """A conversation that ended with a part is not its worker's again when that is asked to become whole."""
    right = APPLY[Event]

    def take(state: State, event: Any) -> None:
        works = state.workers[event.worker].works
        had = set(works)
        right(state, event)
        if isinstance(event, Intent):
            works &= had

    patch.setitem(APPLY, Event, take)


def late_words_stand(patch: Patch) -> None:
    """What a worker that was given up failed at is asked again, though another one has it."""
    patch.setattr(attempts, "_late", lambda _state, _event: False)


MUTANTS = (
    without_the_cursor,
    freed_when_written_off,
    freed_after_it_was_written_off,
    more_given_back_than_there_is,
    left_whatever_was_used,
    words_after_the_end,
    granted_beside_the_books,
    freed_unread,
    looked_up_for_others,
    settled_for_others,
    given_up_while_unknown,
    kept_after_a_refusal,
    a_part_fetched_unseen,
    late_words_stand,
)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_lease_is_seen(mutant: Callable[[Patch], None]) -> None:
    """The state machine fails under each wrong lease."""
    with pytest.MonkeyPatch.context() as patch:
        mutant(patch)
        with pytest.raises(CAUGHT):
            run_state_machine_as_test(Leases, settings=STEPS)


def test_the_right_leases_pass() -> None:
    """The same examples hold for leases as they are."""
    run_state_machine_as_test(Leases, settings=settings(STEPS, max_examples=60))
