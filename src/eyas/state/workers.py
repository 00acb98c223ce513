"""What workers do to the state: they join, are granted money and conversations, give some back, and leave."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from eyas.errors import LedgerError
from eyas.events import AnyEvent, Corrected, GivenBack, Granted, Intent, Settled, TurnRefused, WorkerJoined, WorkerLeft
from eyas.ledger import Lease
from eyas.standing import Attempt, Left, WorkerState
from eyas.state.attempts import corrected as cost_known
from eyas.state.model import APPLY, State
from eyas.state.turns import begun, over, unknown
from eyas.types import Work


def joined(state: State, event: WorkerJoined) -> None:
    """A worker takes part."""
    if event.who in state.workers:
        raise LedgerError(f"worker {event.who} joined twice")
    state.workers[event.who] = WorkerState(event.node, at=event.at)


def granted(state: State, event: Granted) -> None:
    """It may spend more, and has more to ask."""
    worker = known(state, event.to)
    if event.number != worker.grants + 1:
        raise LedgerError(f"grant {event.number} to worker {event.to} comes after grant {worker.grants}")
    worker.grants = event.number
    lease = worker.lease.grant(event.nano)
    state.money, worker.lease = state.money.released(worker.lease, lease), lease
    worker.works |= set(works_of(event.works))


def given_back(state: State, event: GivenBack) -> None:
    """It has less."""
    worker = known(state, event.by)
    if event.number != worker.backs + 1:
        raise LedgerError(f"worker {event.by} gave back {event.number} after {worker.backs}")
    worker.backs = event.number
    lease = worker.lease.give_back(event.nano)
    state.money, worker.lease = state.money.released(worker.lease, lease), lease
    worker.works -= set(works_of(event.works))


def left(state: State, event: WorkerLeft) -> None:
    """It is gone: what it has not used is free again, or is taken as spent where nobody can say what became of it.

    A journal that turns up after that, and is read to its end, says what was not spent after all.
    """
    worker = known(state, event.who, late=not event.written_off)
    worker.works.clear()
    worker.attempts = worker.attempts if event.written_off else []
    if event.written_off:
        state.money = state.money.write_off(worker.lease)
        worker.lease = replace(worker.lease, lost=worker.lease.left)
    elif worker.left is Left.WRITTEN_OFF:
        state.money, worker.lease = state.money.found(worker.lease, worker.lease.lost)
    else:
        state.money = state.money.released(worker.lease, Lease())
    worker.left = Left.WRITTEN_OFF if event.written_off else Left.READ


def take(state: State, event: AnyEvent) -> None:
    """Take in what happened at a worker: what it cost is drawn from the worker's lease.

    Raises:
        LedgerError: the event was taken in before, or nothing more may come of that worker.
    """
    worker = known(state, event.worker, late=True)
    if event.seq <= worker.seq:
        raise LedgerError(f"event {event.seq} of worker {event.worker} was taken in before")
    before, ends, paid = state.money.committed, _may_end(state, event), _paid(state, event)
    APPLY[type(event)](state, event)
    worker.heard(event)
    worker.cost += _paid(state, event) - paid
    if isinstance(event, Intent) and worker.left is Left.NOT:
        worker.works.add(begun(event.work))  # it may have ended with a part, which is asked for again
    _follow(state, worker, ends, state.money.committed - before)


def corrected(state: State, event: Corrected) -> None:
    """A cost became known: of an attempt of a worker whose journal was not read to the end, its lease has what that frees.

    The worker may find it out as well, and spend it.
    """
    before, ends, paid = state.money.committed, _may_end(state, event), _paid(state, event)
    cost_known(state, event)
    if not event.worker:
        for worker in state.workers.values():
            if worker.left is not Left.READ and _has(worker.attempts, event.attempt):
                worker.cost += _paid(state, event) - paid
                _follow(state, worker, ends, state.money.committed - before)


def _follow(state: State, worker: WorkerState, ends: Work | None, change: int) -> None:
    """What a worker's requests hold and cost became so much more: out of its lease, or of what was written off.

    A conversation is no more with it once nothing more of that can come.
    """
    if worker.left is not Left.NOT:
        state.money, worker.lease = state.money.found(worker.lease, change)
        return
    lease = worker.lease.use(change)
    state.money, worker.lease = state.money.released(worker.lease, lease), lease
    if ends is not None and over(state, ends) and not unknown(state, ends):
        worker.works.discard(begun(ends))


def _may_end(state: State, event: AnyEvent) -> Work | None:
    """The work that an event may end; what an attempt cost ends one only if that was not known."""
    if isinstance(event, Settled):
        return state.attempt(event.attempt).work
    if isinstance(event, Corrected):
        work = state.attempt(event.attempt).work
        return work if unknown(state, work) else None
    return event.work if isinstance(event, TurnRefused) else None


def _paid(state: State, event: AnyEvent) -> int:
    """What the attempt of an event cost that may say so, as far as that is known."""
    return state.attempt(event.attempt).cost or 0 if isinstance(event, Settled | Corrected) else 0


def _has(ascending: list[int], number: int) -> bool:
    place = bisect_left(ascending, number)
    return place < len(ascending) and ascending[place] == number


def known(state: State, number: int, *, late: bool = False) -> WorkerState:
    """A worker that has not left; with `late`, one that was written off may be heard of as well.

    Raises:
        LedgerError: there is none of that number.
    """
    worker = state.workers.get(number)
    if worker is None or worker.left is Left.READ or (worker.left is Left.WRITTEN_OFF and not late):
        raise LedgerError(f"there is no worker {number}, or it has left")
    return worker


def mine(state: State) -> list[Attempt]:
    """Attempts without an outcome that no worker can tell of any more, oldest first."""
    theirs = (worker.attempts for worker in state.workers.values() if worker.left is not Left.READ)
    told = {number for numbers in theirs for number in numbers}
    return [attempt for attempt in state.left_open() if attempt.id not in told]


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
