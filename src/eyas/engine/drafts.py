"""What drafts of an answer add up to, where the answer itself never came to its end."""

from __future__ import annotations

from collections.abc import Sequence

from eyas.types import Billed, Completion, DraftText, Failure, FailureKind, Outcome, Pieces


def merged(drafts: Sequence[DraftText]) -> DraftText:
    """Drafts that follow each other, as one; there is at least one."""
    last = drafts[-1]
    return DraftText(
        reasoning="".join(draft.reasoning for draft in drafts),
        content="".join(draft.content for draft in drafts),
        tool_calls=last.tool_calls,
        pieces=Pieces(
            tuple(length for draft in drafts for length in draft.pieces.reasoning),
            tuple(length for draft in drafts for length in draft.pieces.content),
            last.pieces.arguments,
        ),
        provider=last.provider,
    )


def outcome(drafts: Sequence[DraftText], why: str, generation_id: str) -> Outcome:
    """What came of an answer of which only drafts are left: a cut one, or none."""
    if not drafts:
        return Failure(FailureKind.LOST, Billed.UNKNOWN, why, generation_id=generation_id)
    whole = merged(drafts)
    return Completion(
        reasoning=whole.reasoning,
        content=whole.content,
        tool_calls=whole.tool_calls,
        provider=whole.provider,
        generation_id=generation_id,
        pieces=whole.pieces,
        cut=Failure(FailureKind.CUT, Billed.UNKNOWN, why, generation_id=generation_id),
    )
