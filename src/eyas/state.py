"""Where a run stands: State = fold(events), the one way to know. Pure and incremental."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from eyas.errors import LedgerError
from eyas.events import (
    Alarm,
    AnyEvent,
    Corrected,
    Forgotten,
    Headers,
    Intent,
    Labelled,
    Learned,
    PromptAdded,
    PromptRemoved,
    Retried,
    SessionClosed,
    SessionOpened,
    Settled,
)
from eyas.ledger import Money
from eyas.standing import ANSWERED, MOST_LOST, Attempt, DatasetState, ProviderState, WorkState, better, stand
from eyas.types import STRICT, FailureKind, Label, StopReason, Verdict, Work

__all__ = ["ANSWERED", "Attempt", "DatasetState", "ProviderState", "State", "WorkState", "fold"]


@dataclass(slots=True)
class State:
    """The run, folded. `apply` one event after the other; nothing else changes it.

    `began` is when the first session was opened, `opened` when the last one was.
    """

    model: str = ""
    family: str = ""
    money: Money = field(default_factory=Money)
    waste_limit: int | None = None
    datasets: dict[str, DatasetState] = field(default_factory=dict[str, DatasetState])
    works: dict[Work, WorkState] = field(default_factory=dict[Work, WorkState])
    attempts: dict[int, Attempt] = field(default_factory=dict[int, Attempt])
    pending_cost: set[int] = field(default_factory=set[int])
    providers: dict[str, ProviderState] = field(default_factory=dict[str, ProviderState])
    labels: dict[int, Label] = field(default_factory=dict[int, Label])
    sessions: int = 0
    closed: StopReason | None = None
    habits: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    began: float = 0.0
    opened: float = 0.0
    alarms: list[str] = field(default_factory=list[str])
    last_attempt: int = 0

    def apply(self, event: AnyEvent) -> None:
        """Take one event in.

        Raises:
            LedgerError: the event contradicts what came before it.
        """
        _APPLY[type(event)](self, event)

    def attempt(self, number: int) -> Attempt:
        """The attempt of that id; raises LedgerError if there is none."""
        if number not in self.attempts:
            raise LedgerError(f"attempt {number} has no intent in the journal")
        return self.attempts[number]

    def work(self, work: Work) -> WorkState:
        """The state of a work, a fresh one if it was never asked."""
        return self.works.get(work) or self.works.setdefault(work, WorkState())

    def left_open(self) -> list[Attempt]:
        """Attempts without an outcome, oldest first: in flight, or cut by a kill."""
        return [self.attempts[number] for number in sorted(self.pending_cost) if self.attempts[number].open]

    def unknown(self) -> list[Attempt]:
        """Attempts whose cost is not known, oldest first."""
        return [self.attempts[number] for number in sorted(self.pending_cost) if self.attempts[number].unknown]


def fold(events: Iterable[AnyEvent], state: State | None = None) -> State:
    """State after those events, on top of `state` if given."""
    state = state if state is not None else State()
    for event in events:
        state.apply(event)
    return state


def _opened(state: State, event: SessionOpened) -> None:
    state.sessions += 1
    state.began, state.opened = state.began or event.at, event.at
    state.closed = None
    state.model, state.family = event.model, event.family
    state.money = state.money.with_cap(event.cap)
    state.waste_limit = event.waste_limit
    for name, limit in event.quotas.items():
        dataset = state.datasets.setdefault(name, DatasetState())
        dataset.quota = dataset.quota.with_limit(limit)
        dataset.samples = event.samples.get(name, 1)
        dataset.thinking = event.thinking.get(name, dataset.thinking)


def _closed(state: State, event: SessionClosed) -> None:
    state.closed = event.reason


def _prompt(state: State, event: PromptAdded) -> None:
    dataset = state.datasets.setdefault(event.dataset, DatasetState())
    dataset.prompts[event.prompt_id] = event.tokens
    dataset.gone.pop(event.prompt_id, None)
    dataset.forgotten.discard(event.prompt_id)


def _unprompt(state: State, event: PromptRemoved) -> None:
    dataset = state.datasets[event.dataset]
    works = (Work(event.dataset, event.prompt_id, 0, sample) for sample in range(dataset.samples))
    known = [state.works[work] for work in works if work in state.works]
    for each in known:
        if each.owed and each.answer is not None:
            _stand_by(state, dataset, each)  # it was to be asked again, and cannot be
    dataset.gone[event.prompt_id] = sum(not each.owed for each in known)
    dataset.prompts.pop(event.prompt_id, None)


def _forgotten(state: State, event: Forgotten) -> None:
    doomed = set(event.prompts)
    for name, prompt_id in doomed:
        dataset = state.datasets.setdefault(name, DatasetState())
        dataset.prompts.pop(prompt_id, None)
        dataset.gone.pop(prompt_id, None)
        dataset.forgotten.add(prompt_id)
    for work in [work for work in state.works if (work.dataset, work.prompt_id) in doomed]:
        known = state.works.pop(work)
        stand(state.datasets[work.dataset], known, Verdict.AGAIN)
        if known.answer is not None:
            _drop(state, known.answer)


def _retried(state: State, event: Retried) -> None:
    known = state.work(event.work)
    known.tries = known.lost = 0
    if not known.owed:
        stand(state.datasets[event.work.dataset], known, Verdict.AGAIN)


def _intent(state: State, event: Intent) -> None:
    if event.attempt in state.attempts:
        raise LedgerError(f"attempt {event.attempt} was begun twice")
    state.money = state.money.force(event.reserved)
    state.attempts[event.attempt] = Attempt(
        event.attempt, event.work, event.number, event.tag, event.reserved, event.mark
    )
    state.pending_cost.add(event.attempt)
    state.last_attempt = max(state.last_attempt, event.attempt)
    work = state.work(event.work)
    work.numbers = max(work.numbers, event.number)


def _headers(state: State, event: Headers) -> None:
    state.attempt(event.attempt).generation_id = event.generation_id


def _settled(state: State, event: Settled) -> None:
    attempt = state.attempt(event.attempt)
    if attempt.settled is not None:
        raise LedgerError(f"attempt {event.attempt} was settled twice")
    attempt.settled = event
    attempt.counts = event.counts
    attempt.provider = event.provider
    attempt.cost = event.cost
    attempt.dropped = event.verdict in ANSWERED and not _takes(state, attempt, event)
    if event.cost is None:
        state.money = state.money.hold(attempt.reserved)
    else:
        state.money = state.money.settle(attempt.reserved, event.cost, wasted=not attempt.answered)
        state.pending_cost.discard(event.attempt)
    _end_work(state, attempt, event)
    _count_provider(state, attempt, event)


def _takes(state: State, attempt: Attempt, event: Settled) -> bool:
    """Whether an answer that comes now is its work's from now on."""
    dataset = state.datasets.get(attempt.work.dataset)
    if dataset is not None and attempt.work.prompt_id in dataset.forgotten:
        return False
    known = state.work(attempt.work)
    if known.answer is None:
        return True
    former = state.attempt(known.answer).settled
    usable = state.labels.get(known.answer, Label.COUNTED) in STRICT
    return known.owed and former is not None and better(event, former, usable=usable)


def _end_work(state: State, attempt: Attempt, event: Settled) -> None:
    dataset = state.datasets.setdefault(attempt.work.dataset, DatasetState())
    dataset.cost += event.cost or 0
    if attempt.work.prompt_id in dataset.forgotten:
        return
    work = state.work(attempt.work)
    work.tries += event.counted_try
    work.lost += event.kind is FailureKind.LOST
    if work.answer is not None and not work.owed:
        return  # a late outcome of an older attempt never takes an answer away
    if attempt.answered:
        if work.answer is not None:
            _drop(state, work.answer)
        work.answer = attempt.id
        _stand_by(state, dataset, work)
    elif work.answer is not None and event.verdict is not Verdict.AGAIN:
        _stand_by(state, dataset, work)  # asking again brought nothing better
    else:
        stand(dataset, work, event.verdict, event.kind)


def _stand_by(state: State, dataset: DatasetState, work: WorkState) -> None:
    """The work stands by the answer that it has."""
    settled = state.attempt(work.answer or 0).settled
    if settled is not None:
        stand(dataset, work, settled.verdict, settled.kind, settled.tokens)


def _drop(state: State, number: int) -> None:
    """An answer counts no more: what it cost is waste from now on."""
    attempt = state.attempt(number)
    attempt.dropped = True
    if attempt.cost is not None:
        state.money = state.money.correct(attempt.cost, 0).correct(0, attempt.cost, wasted=True)


def _count_provider(state: State, attempt: Attempt, event: Settled) -> None:
    provider = state.providers.setdefault(attempt.tag, ProviderState())
    provider.name = event.provider or provider.name
    provider.cost += event.cost or 0
    if attempt.answered:
        provider.answers += 1
        provider.seconds += event.seconds
        provider.output_tokens += event.tokens
    if event.kind is not None:
        provider.failures[event.kind] = provider.failures.get(event.kind, 0) + 1


def _corrected(state: State, event: Corrected) -> None:
    attempt = state.attempt(event.attempt)
    wasted = not attempt.answered
    before = attempt.cost
    if attempt.open:
        raise LedgerError(f"attempt {event.attempt} was corrected before it was settled")
    if before is None:
        state.money = state.money.resolve(attempt.reserved, event.cost, wasted=wasted)
        state.pending_cost.discard(event.attempt)
    else:
        state.money = state.money.correct(before, event.cost, wasted=wasted)
    attempt.cost = event.cost
    attempt.counts = event.counts or attempt.counts
    attempt.written_off = event.written_off
    attempt.provider = attempt.provider or event.provider
    change = event.cost - (before or 0)
    state.datasets[attempt.work.dataset].cost += change
    provider = state.providers[attempt.tag]
    provider.cost += change
    provider.name = provider.name or event.provider
    _owe_again(state, attempt.work, written_off=event.written_off)


def _owe_again(state: State, work: Work, *, written_off: bool) -> None:
    """A work that ended as unknown is owed again once all its outcomes are known, if it may be tried and wasted on more."""
    known = state.works.get(work)
    if known is None or known.verdict is not Verdict.UNKNOWN or any(a.work == work for a in state.unknown()):
        return
    over = state.waste_limit is not None and state.money.wasted > state.waste_limit
    wasted = any(attempt.cost for attempt in state.attempts.values() if attempt.work == work)
    failed = (known.lost >= MOST_LOST and not written_off) or (over and wasted)
    stand(state.datasets[work.dataset], known, Verdict.FAILED if failed else Verdict.AGAIN, known.kind)


def _labelled(state: State, event: Labelled) -> None:
    state.labels[event.attempt] = event.label


_APPLY: dict[type[AnyEvent], Callable[[State, Any], None]] = {
    SessionOpened: _opened,
    SessionClosed: _closed,
    PromptAdded: _prompt,
    PromptRemoved: _unprompt,
    Forgotten: _forgotten,
    Retried: _retried,
    Intent: _intent,
    Headers: _headers,
    Settled: _settled,
    Corrected: _corrected,
    Labelled: _labelled,
    Learned: lambda state, event: state.habits.update(event.habits),
    Alarm: lambda state, event: state.alarms.append(event.detail),
}
