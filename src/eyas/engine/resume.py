"""What a killed process left open: every attempt without an outcome gets one, from what the journal kept of it."""

from __future__ import annotations

from collections.abc import Iterator

from eyas.engine.retry import Case, Policy, decide
from eyas.engine.settle import count_tokens, settled_event
from eyas.events import Settled
from eyas.families import Loaded
from eyas.journal import Store
from eyas.state import Attempt, State
from eyas.types import Billed, Completion, DraftText, Failure, FailureKind, Outcome, Pieces, Prices, ToolCall

KILLED = "the process was killed while this was in flight"
_NO_PRICE = Prices(0, 0)


def left_open(
    state: State, store: Store, tokens: Loaded, policy: Policy, thinking: dict[str, bool]
) -> Iterator[tuple[Attempt, Outcome, Settled]]:
    """(attempt, outcome, event without its time) for every attempt that a killed process left.

    Text that was kept becomes a partial answer; its cost is looked up later. An attempt killed before its headers has no
    generation id: it keeps its whole reservation as unknown, and its work is asked again under one of its own.
    """
    for attempt in state.left_open():
        outcome = _outcome(attempt, store.drafts(attempt.id))
        kept = 0
        if isinstance(outcome, Completion):
            kept = count_tokens(tokens, outcome, thinking.get(attempt.work.dataset, True))
        # The kill was ours: it never counts against the work.
        case = Case(tries=0, lost=0, prices=_NO_PRICE, tokens=kept, wasted=0)
        yield attempt, outcome, settled_event(attempt.id, outcome, decide(outcome, case, policy), 0.0)


def _outcome(attempt: Attempt, drafts: list[DraftText]) -> Outcome:
    cut = Failure(FailureKind.CUT, Billed.UNKNOWN, KILLED, generation_id=attempt.generation_id)
    if not drafts:
        return Failure(FailureKind.LOST, Billed.UNKNOWN, KILLED, generation_id=attempt.generation_id)
    calls: tuple[ToolCall, ...] = drafts[-1].tool_calls
    return Completion(
        reasoning="".join(draft.reasoning for draft in drafts),
        content="".join(draft.content for draft in drafts),
        tool_calls=calls,
        provider=drafts[-1].provider,
        generation_id=attempt.generation_id,
        pieces=Pieces(
            tuple(length for draft in drafts for length in draft.pieces.reasoning),
            tuple(length for draft in drafts for length in draft.pieces.content),
            drafts[-1].pieces.arguments,
        ),
        cut=cut,
    )
