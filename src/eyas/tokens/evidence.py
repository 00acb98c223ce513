"""What one answer says about how its provider counts, cuts and strips (pure)."""

from __future__ import annotations

from eyas.families import Loaded
from eyas.tokens.habits import PLAIN, End, Evidence, Size, habit_key
from eyas.tokens.prompt import read_prompt
from eyas.tokens.reading import Answer, closed, defect, ended, read_pieces, read_whole, without_last_space
from eyas.types import Completion, Record

_SMALL = 2


def evidence(record: Record, family: Loaded, thinking: bool) -> Evidence | None:
    """What an answer says about its provider's habits, or None if it says nothing (no count, cut, damaged).

    Texts are encoded whole only where their pieces do not already come to within 2 tokens of the API's count.
    """
    completion, usage = record.completion, record.completion.usage
    if usage is None or completion.cut is not None or completion.token_ids is not None:
        return None
    if defect(completion, family) or (completion.reasoning and not thinking):
        return None
    shifts = family.shifts(thinking)
    prompt = read_prompt(record, family, thinking, {shift.prompt for shift in (PLAIN, *shifts)})
    if prompt.off is None:
        return None
    whole, pieced = _readings(completion, family, thinking)
    trimmed = without_last_space(completion)
    spare = (whole, pieced) if trimmed is completion else _readings(trimmed, family, thinking)
    reasoned = bool(completion.reasoning) and closed(family.parts(completion, thinking))
    return Evidence(
        key=habit_key(completion.provider, thinking=thinking),
        prompt_off=prompt.off,
        counted=usage.completion_tokens,
        stop=ended(completion),
        whole=_size(whole),
        pieced=_size(pieced),
        whole_trimmed=_size(spare[0]),
        pieced_trimmed=_size(spare[1]),
        pieces=pieced.pieces if pieced else 0,
        singles=pieced.singles if pieced else 0,
        edges=edges(completion),
        tools=bool(completion.tool_calls),
        spaced=completion.reasoning.endswith(" ") if reasoned else None,
        reasoning_said=(usage.reasoning_tokens or None) if reasoned else None,
        shifts=shifts,
        form=prompt.form if prompt.choice and not prompt.reason else None,
        odd=pieced.odd if pieced else 0,
        letters=pieced.letters if pieced else 0,
    )


def edges(completion: Completion) -> dict[End, bool]:
    """Whether whitespace stands at each end of the texts that are not empty."""
    found: dict[End, bool] = {}
    if completion.reasoning:
        found[End.REASONING_START] = completion.reasoning[0].isspace()
        found[End.REASONING_END] = completion.reasoning[-1].isspace()
    if completion.content:
        found[End.CONTENT_START] = completion.content[0].isspace()
        found[End.CONTENT_END] = completion.content[-1].isspace()
    return found


def _size(answer: Answer | None) -> Size | None:
    return answer and Size(answer.total, answer.reasoning)


def _readings(completion: Completion, family: Loaded, thinking: bool) -> tuple[Answer | None, Answer | None]:
    """The answer read whole and by pieces; whole only where the pieces leave a question."""
    parts = family.parts(completion, thinking)
    pieced = read_pieces(parts, completion.pieces, family.vocab)
    counted = completion.usage.completion_tokens if completion.usage else 0
    if pieced and pieced.proven and abs(counted - pieced.total) <= _SMALL:
        return None, pieced
    return read_whole(parts, family.vocab.encode), pieced
