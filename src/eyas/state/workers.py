"""What workers do to the state: they join, are granted money and conversations, give some back, and leave."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from eyas.errors import LedgerError
from eyas.events import AnyEvent, GivenBack, Granted, Settled, WorkerJoined, WorkerLeft
from eyas.ledger import Lease
from eyas.standing import Left, WorkerState
from eyas.state.model import APPLY, State
from eyas.state.turns import begun, over
from eyas.types import Work


def joined(state: State, event: WorkerJoined) -> None:
    """A worker takes part."""
    if event.who in state.workers:
        raise LedgerError(f"worker {event.who} joined twice")
    state.workers[event.who] = WorkerState(event.node, at=event.at)


def granted(state: State, event: Granted) -> None:
    """It may spend more, and has more to ask."""
    worker = present(state, event.to)
    if event.number != worker.grants + 1:
        raise LedgerError(f"grant {event.number} to worker {event.to} comes after grant {worker.grants}")
    worker.grants = event.number
    lease = worker.lease.grant(event.nano)
    state.money, worker.lease = state.money.released(worker.lease, lease), lease
    worker.works |= set(works_of(event.works))


def given_back(state: State, event: GivenBack) -> None:
    """It has less."""
    worker = present(state, event.by)
    if event.number != worker.backs + 1:
        raise LedgerError(f"worker {event.by} gave back {event.number} after {worker.backs}")
    worker.backs = event.number
    lease = worker.lease.give_back(event.nano)
    state.money, worker.lease = state.money.released(worker.lease, lease), lease
    worker.works -= set(works_of(event.works))


def left(state: State, event: WorkerLeft) -> None:
    """It is gone: what it has not used is free again, or is taken as spent where nobody can say what became of it."""
    worker = present(state, event.who)
    worker.works.clear()
    worker.attempts = worker.attempts if event.written_off else []
    if event.written_off:
        state.money = state.money.write_off(worker.lease)
        worker.lease = replace(worker.lease, lost=worker.lease.left)
    else:
        state.money = state.money.released(worker.lease, Lease())
    worker.left = Left.WRITTEN_OFF if event.written_off else Left.READ


def take(state: State, event: AnyEvent) -> None:
    """Take in what happened at a worker: what it cost is drawn from the worker's lease.

    Raises:
        LedgerError: the event was taken in before, or nothing more may come of that worker.
    """
    worker = state.workers.get(event.worker)
    if worker is None or event.seq <= worker.seq or worker.left is Left.READ:
        raise LedgerError(f"event {event.seq} of worker {event.worker} is not one that can come now")
    before, lease = state.money.committed, worker.lease
    APPLY[type(event)](state, event)
    worker.heard(event)
    if isinstance(event, Settled) and over(state, work := state.attempts[event.attempt].work):
        worker.works.discard(begun(work))
    change = state.money.committed - before
    if worker.left is Left.NOT:
        worker.lease = lease.use(change)
        state.money = state.money.released(lease, worker.lease)
    elif change > 0:
        state.money, worker.lease = state.money.found(lease, change)


def present(state: State, number: int) -> WorkerState:
    """A worker that has not left.

    Raises:
        LedgerError: there is none of that number.
    """
    worker = state.workers.get(number)
    if worker is None or worker.left is not Left.NOT:
        raise LedgerError(f"there is no worker {number}, or it has left")
    return worker


def away(state: State) -> set[Work]:
    """The conversations that workers have (each by its work of turn 0); nobody else may ask them."""
    return {work for worker in state.workers.values() for work in worker.works}


def named(works: Iterable[Work]) -> dict[str, tuple[str, ...]]:
    """Conversations as events name them: by dataset, PROMPTID16, with /sSAMPLE where it is not the first sample."""
    found: dict[str, list[str]] = {}
    for work in works:
        found.setdefault(work.dataset, []).append(f"{work.prompt_id}/s{work.sample}" if work.sample else work.prompt_id)
    return {dataset: tuple(names) for dataset, names in found.items()}


def works_of(names: Mapping[str, tuple[str, ...]]) -> Iterator[Work]:
    """The conversations of such names, each by its work of turn 0."""
    for dataset, every in names.items():
        for name in every:
            prompt_id, _, sample = name.partition("/s")
            yield Work(dataset, prompt_id, 0, int(sample or 0))
