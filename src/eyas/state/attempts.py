"""What attempts do to the state: begun, settled, corrected. The one place where their money moves."""

from __future__ import annotations

from eyas.errors import LedgerError
from eyas.events import Corrected, Headers, Intent, Labelled, Settled
from eyas.ledger import cost_of
from eyas.standing import ANSWERED, MOST_LOST, Attempt, DatasetState, Left, ProviderState, better, stand
from eyas.state.model import State, drop, stand_by
from eyas.state.turns import after, followed
from eyas.types import STRICT, FailureKind, Label, Verdict, Work


def begun(state: State, event: Intent) -> None:
    """A request is about to leave."""
    if event.attempt in state.attempts:
        raise LedgerError(f"attempt {event.attempt} was begun twice")
    state.money = state.money.force(event.reserved)
    state.attempts[event.attempt] = Attempt(
        event.attempt, event.work, event.number, event.tag, event.reserved, event.mark
    )
    if state.touched is not None:
        state.touched.attempts.add(event.attempt)
    state.providers.setdefault(event.tag, ProviderState()).prices = event.prices
    state.pending_cost.add(event.attempt)
    state.last_attempt = max(state.last_attempt, event.attempt)
    work = state.work(event.work)
    work.numbers = max(work.numbers, event.number)


def headers(state: State, event: Headers) -> None:
    """Its generation has an id."""
    state.attempt(event.attempt).generation_id = event.generation_id


def settled(state: State, event: Settled) -> None:
    """It ended."""
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
    standing = state.attempt(known.answer)
    wanted = known.owed or (
        attempt.mark != "" and attempt.mark == standing.mark
    )  # the same body: the same answer, whole
    usable = state.labels.get(known.answer, Label.COUNTED) in STRICT
    return wanted and standing.settled is not None and better(event, standing.settled, usable=usable)


def _end_work(state: State, attempt: Attempt, event: Settled) -> None:
    dataset = state.datasets.setdefault(attempt.work.dataset, DatasetState())
    dataset.cost += event.cost or 0
    if attempt.work.prompt_id in dataset.forgotten or (not attempt.answered and _late(state, event)):
        return
    work = state.work(attempt.work)
    work.tries += event.counted_try
    work.lost += event.kind is FailureKind.LOST
    if work.answer is not None and not work.owed and not attempt.answered:
        return  # a late outcome of an older attempt never takes an answer away
    if attempt.answered:
        if work.answer is not None:
            drop(state, work.answer)
        work.answer = attempt.id
        stand_by(state, dataset, work)
    elif work.answer is not None and event.verdict is not Verdict.AGAIN:
        stand_by(state, dataset, work)  # asking again brought nothing better
    else:
        stand(dataset, work, event.verdict, event.kind)
    if attempt.work.prompt_id in dataset.turns and not work.owed:
        _break_off(state, dataset, attempt.work)


def _late(state: State, event: Settled) -> bool:
    """Whether it comes of a worker that was given up: where its works stand, others say by now."""
    return event.worker != 0 and state.workers[event.worker].left is Left.WRITTEN_OFF


def _break_off(state: State, dataset: DatasetState, work: Work) -> None:
    """Later turns that were to be asked again, and now cannot be, stand by the answers that they have."""
    while not followed(state, work):
        work = after(work)
        later = state.works.get(work)
        if later is None or later.answer is None or not later.owed:
            return
        stand_by(state, dataset, state.work(work))


def _count_provider(state: State, attempt: Attempt, event: Settled) -> None:
    provider = state.providers.setdefault(attempt.tag, ProviderState())
    provider.name = event.provider or provider.name
    provider.cost += event.cost or 0
    if attempt.answered:
        provider.answers += 1
        provider.seconds += event.seconds
        provider.output_tokens += event.tokens
        provider.unjudged += event.cost or 0
    elif event.cost:
        provider.judged += 1
    if event.kind is not None:
        provider.failures[event.kind] = provider.failures.get(event.kind, 0) + 1


def labelled(state: State, event: Labelled) -> None:
    """It got a provisional label, perhaps instead of another one; its provider is judged by that."""
    before = state.labels.get(event.attempt)
    state.labels[event.attempt] = event.label
    _judge(state, event, before)
    if state.touched is not None:
        state.touched.labels.add(event.attempt)


def _judge(state: State, event: Labelled, before: Label | None) -> None:
    attempt = state.attempts.get(event.attempt)
    if attempt is None or attempt.settled is None:
        return
    _count_label(state, attempt.provider, event.label, 1)
    if before is not None:
        _count_label(state, attempt.provider, before, -1)
    provider = state.providers[attempt.tag]
    if before is None:
        provider.judged += 1
        provider.unjudged -= attempt.cost or 0
    strict = (event.label in STRICT) - (before in STRICT)
    if strict and provider.prices is not None:
        prompt = state.prompt_tokens(attempt.work)
        provider.listed += strict * cost_of(provider.prices, prompt, attempt.settled.tokens)


def _count_label(state: State, provider: str, label: Label, change: int) -> None:
    counts = state.labelled.setdefault(provider, {})
    counts[label] = counts.get(label, 0) + change


def corrected(state: State, event: Corrected) -> None:
    """What it cost became known, or was written off."""
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
    label = state.labels.get(event.attempt)
    if label is not None and event.provider and not attempt.provider:
        _count_label(state, "", label, -1)
        _count_label(state, event.provider, label, 1)
    attempt.provider = attempt.provider or event.provider
    change = event.cost - (before or 0)
    state.datasets[attempt.work.dataset].cost += change
    provider = state.providers[attempt.tag]
    provider.cost += change
    provider.name = provider.name or event.provider
    if attempt.settled is not None and attempt.settled.verdict in ANSWERED:
        provider.unjudged += change if event.attempt not in state.labels else 0
    elif before is None and change:
        provider.judged += 1
    _owe_again(state, attempt.work, written_off=event.written_off)


def _owe_again(state: State, work: Work, *, written_off: bool) -> None:
    """A work that ended as unknown is owed again once all its outcomes are known, if it may be tried and wasted on more."""
    known = state.works.get(work)
    if known is None or known.verdict is not Verdict.UNKNOWN or any(a.work == work for a in state.unknown()):
        return
    over = state.waste_limit is not None and state.money.wasted > state.waste_limit
    wasted = any(attempt.cost for attempt in state.attempts_at(work))
    failed = (known.lost >= MOST_LOST and not written_off) or (over and wasted)
    stand(state.datasets[work.dataset], state.work(work), Verdict.FAILED if failed else Verdict.AGAIN, known.kind)
