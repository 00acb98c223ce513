"""What sessions, prompts and the user's wishes do to the state."""

from __future__ import annotations

from eyas.errors import LedgerError
from eyas.events import (
    Capped,
    Forgotten,
    PromptAdded,
    PromptRemoved,
    Retried,
    Returned,
    SessionClosed,
    SessionOpened,
    TurnAdded,
    TurnRefused,
)
from eyas.standing import DatasetState, stand
from eyas.state.model import State, drop, stand_by
from eyas.state.turns import before, broken_off, wanted
from eyas.types import FailureKind, Verdict


def opened(state: State, event: SessionOpened) -> None:
    """A session began."""
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


def capped(state: State, event: Capped) -> None:
    """The cap is another one from now on."""
    state.money = state.money.with_cap(event.cap)


def returned(state: State, event: Returned) -> None:
    """The cap is so much lower; conversations that were not begun are none of this journal's any more."""
    if state.money.cap is not None:
        state.money = state.money.with_cap(state.money.cap - event.nano)


def closed(state: State, event: SessionClosed) -> None:
    """A session ended in order."""
    state.closed = event.reason


def added(state: State, event: PromptAdded) -> None:
    """A prompt joined, or has other turns now."""
    _touch(state, event.dataset, event.prompt_id)
    dataset = state.datasets.setdefault(event.dataset, DatasetState())
    dataset.prompts[event.prompt_id] = event.tokens
    dataset.turns.pop(event.prompt_id, None)
    if event.turns:
        dataset.turns[event.prompt_id] = event.turns
    dataset.gone.pop(event.prompt_id, None)
    dataset.forgotten.discard(event.prompt_id)


def removed(state: State, event: PromptRemoved) -> None:
    """A prompt left: of its works those count on that had ended."""
    _touch(state, event.dataset, event.prompt_id)
    dataset = state.datasets[event.dataset]
    works = wanted(event.dataset, dataset, event.prompt_id)
    known = [state.work(work) for work in works if work in state.works]
    for each in known:
        if each.owed and each.answer is not None:
            stand_by(state, dataset, each)  # it was to be asked again, and cannot be
    dataset.gone[event.prompt_id] = sum(not each.owed for each in known)
    dataset.prompts.pop(event.prompt_id, None)
    dataset.turns.pop(event.prompt_id, None)


def forgotten(state: State, event: Forgotten) -> None:
    """Prompts are no works any more; what they cost stays."""
    doomed = set(event.prompts)
    for name, prompt_id in doomed:
        _touch(state, name, prompt_id)
        dataset = state.datasets.setdefault(name, DatasetState())
        for table in (dataset.prompts, dataset.turns, dataset.gone):
            table.pop(prompt_id, None)
        dataset.forgotten.add(prompt_id)
    for work in [work for work in state.works if (work.dataset, work.prompt_id) in doomed]:
        known = state.work(work)
        del state.works[work]
        stand(state.datasets[work.dataset], known, Verdict.AGAIN)
        if known.answer is not None:
            drop(state, known.answer)


def retried(state: State, event: Retried) -> None:
    """A work is owed again; a later turn only if its conversation still comes to it."""
    if event.work.turn and broken_off(state, before(event.work)):
        return
    known = state.work(event.work)
    known.tries = known.lost = 0
    known.detail = ""
    if not known.owed:
        stand(state.datasets[event.work.dataset], known, Verdict.AGAIN)


def turn_added(state: State, event: TurnAdded) -> None:
    """A later turn can be asked."""
    known = state.work(event.work)
    known.prompt_tokens, known.detail = event.tokens, ""


def turn_refused(state: State, event: TurnRefused) -> None:
    """A later turn cannot be asked; an answer that it has from before stands."""
    known, dataset = state.work(event.work), state.datasets[event.work.dataset]
    if not known.owed and event.worker:
        return  # a worker that was given up had answered it, as came to light meanwhile
    if not known.owed:
        raise LedgerError(f"{event.work.key} was refused after it had ended")
    known.prompt_tokens, known.detail = 0, event.detail
    if known.answer is not None:
        stand_by(state, dataset, known)
    else:
        stand(dataset, known, Verdict.REFUSED, FailureKind.REFUSED)


def _touch(state: State, dataset: str, prompt_id: str) -> None:
    if state.touched is not None:
        state.touched.prompts.add((dataset, prompt_id))
