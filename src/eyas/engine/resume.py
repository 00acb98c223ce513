"""What a killed process left open: every attempt without an outcome gets one, from what the journal kept of it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from eyas.engine import drafts
from eyas.engine.retry import Case, Policy, decide
from eyas.engine.settle import Books, count_tokens, settled_event
from eyas.events import Settled
from eyas.families import Loaded
from eyas.journal import Store
from eyas.records import Run
from eyas.state import Attempt, State
from eyas.state.workers import mine
from eyas.types import Completion, Outcome, Prices, Record

KILLED = "the process was killed while this was in flight"
_FREE, _SOME = Prices(0, 0), Prices(1, 1)
"""Which price it was says only a usage, and what is left of an answer has none."""


def left_open(
    state: State, store: Store, tokens: Loaded, policy: Policy, thinking: dict[str, bool]
) -> Iterator[tuple[Attempt, Outcome, Settled]]:
    """(attempt, outcome, event without its time) for every attempt that a killed process left.

    Text that was kept becomes a partial answer; its cost is looked up later. An attempt killed before its headers has no
    generation id: it keeps its whole reservation as unknown, and its work is asked again under one of its own. What a worker
    asked whose journal was not read to the end is left: only that journal can say what became of it.
    """
    for attempt in mine(state):
        outcome = drafts.outcome(store.drafts(attempt.id), KILLED, attempt.generation_id)
        kept = 0
        if isinstance(outcome, Completion):
            kept = count_tokens(tokens, outcome, thinking.get(attempt.work.dataset, True))
        # The kill was ours: it never counts against the work.
        case = Case(tries=0, lost=0, prices=_SOME if attempt.reserved else _FREE, tokens=kept, wasted=0)
        yield attempt, outcome, settled_event(attempt.id, outcome, decide(outcome, case, policy), 0.0)


def settle_left_open(books: Books, known: Run) -> list[Record]:
    """Settle what a killed process left; gives the answers that it had in flight."""
    config, kept = books.setting.config, list[Record]()
    thinking = {each.name: config.thinking(each.name) for each in config.datasets}
    for attempt, outcome, event in left_open(
        books.state, known.store, books.setting.tokens, books.setting.policy, thinking
    ):
        answer = outcome if isinstance(outcome, Completion) else None
        books.emit(msgspec.structs.replace(event, at=books.world.wall()), answer)
        if answer is not None and attempt.answered:
            kept.append(Record(attempt.work, known.asked(attempt), answer, attempt.tag, None, attempt.id))
    return kept
