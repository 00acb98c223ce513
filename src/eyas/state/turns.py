"""Conversations: which turn may be asked, which waits, and which cannot come any more (pure)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from eyas.standing import DatasetState
from eyas.state.model import State
from eyas.types import Finish, Verdict, Work

_WHOLE = (Finish.STOP, Finish.TOOL_CALLS)
"""The ends of an answer whose stop token the model sampled: only such a one is a turn that a user can answer."""


def before(work: Work) -> Work:
    """The turn before a later turn."""
    return msgspec.structs.replace(work, turn=work.turn - 1)


def after(work: Work) -> Work:
    """The turn after a turn."""
    return msgspec.structs.replace(work, turn=work.turn + 1)


def begun(work: Work) -> Work:
    """The turn that its conversation begins with, which stands for the conversation."""
    return msgspec.structs.replace(work, turn=0) if work.turn else work


def over(state: State, work: Work) -> bool:
    """Whether nothing more of its conversation comes after a work as it stands now."""
    known = state.works.get(work)
    if known is None or known.owed:
        return False
    last = work.turn >= state.datasets[work.dataset].turns.get(work.prompt_id, 0)
    return last or broken_off(state, work)


def unknown(state: State, work: Work) -> bool:
    """Whether it waits for an outcome that is not known: it may be asked again then."""
    known = state.works.get(work)
    return known is not None and known.verdict is Verdict.UNKNOWN


def doubtful(state: State, conversation: Work) -> bool:
    """Whether one of a conversation's turns waits so."""
    last = state.datasets[conversation.dataset].turns.get(conversation.prompt_id, 0)
    turns = (msgspec.structs.replace(conversation, turn=turn) for turn in range(last + 1))
    return any(unknown(state, work) for work in turns)


def followed(state: State, work: Work) -> bool:
    """Whether the user's next turn can come after it: it is done, and its answer is whole (not cut at max_tokens)."""
    known = state.works.get(work)
    if known is None or known.verdict is not Verdict.DONE or known.answer is None:
        return False
    settled = state.attempts[known.answer].settled
    return settled is not None and settled.finish in _WHOLE


def broken_off(state: State, work: Work) -> bool:
    """Whether it ended so that no turn can come after it."""
    known = state.works.get(work)
    return known is not None and not known.owed and not followed(state, work)


def askable(state: State, work: Work) -> bool:
    """Whether its turn has come: a first turn at once, a later one after a whole answer to the one before it."""
    return work.turn == 0 or followed(state, before(work))


def wanted(dataset: str, known: DatasetState, prompt_id: str) -> Iterator[Work]:
    """Every work of a prompt that a dataset has, in order: all turns of each sample."""
    for sample in range(known.samples):
        for turn in range(1 + known.turns.get(prompt_id, 0)):
            yield Work(dataset, prompt_id, turn, sample)


def stranded(state: State) -> Iterator[Work]:
    """Later turns that are not asked as things stand: the conversation broke off before them.

    It breaks off at a turn that ended without a whole answer: partial, cut at max_tokens, refused, failed, or unknown for
    now. Should that turn be done after all, they are owed again.
    """
    if not any(dataset.turns for dataset in state.datasets.values()):
        return
    for work, known in state.works.items():
        dataset = state.datasets[work.dataset]
        last = dataset.turns.get(work.prompt_id, 0)
        if work.turn >= last or known.owed or followed(state, work) or work.sample >= dataset.samples:
            continue
        for turn in range(work.turn + 1, last + 1):
            later = Work(work.dataset, work.prompt_id, turn, work.sample)
            if later in state.works and not state.works[later].owed:
                break  # it ended, and says for itself what can follow it
            yield later


def count_stranded(state: State) -> Counter[str]:
    """How many works of each dataset are stranded."""
    return Counter(work.dataset for work in stranded(state))
