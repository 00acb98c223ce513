"""Which reading of an answer its counts support, and so what label it has (pure)."""

from __future__ import annotations

from functools import cache

import msgspec

from eyas.families import Loaded
from eyas.tokens.evidence import edges
from eyas.tokens.habits import HELD_BACK, Cut, End, Habits
from eyas.tokens.logprobs import read_logprobs
from eyas.tokens.reading import Answer, closed, ended, read_pieces, read_whole, without_last_space
from eyas.tokens.repair import repairs, unclosed
from eyas.types import Completion, Label

_NEAR_TOKENS = 2
_NEAR_SHARE = 0.005


class Judged(msgspec.Struct, frozen=True):
    """An answer with its label; `ends`, `arguments` and `letters` (beyond ASCII) say which of its tokens are not sure."""

    answer: Answer
    label: Label
    reason: str = ""
    ends: frozenset[End] = frozenset()
    arguments: bool = False
    letters: bool = False


def judge(completion: Completion, family: Loaded, habit: Habits, thinking: bool) -> Judged:
    """The reading of an answer that its counts support best.

    A cut answer has no count of its own, for the provider may have run on. Its pieces alone still prove its ids where
    the provider's pieces are tokens without exception: a token never spans two pieces there, so a piece that is one
    vocabulary entry is that token. Letters beyond ASCII are left out of that, and masked: a server holds tokens back until
    a character is whole, so two tokens can come as one piece. On any other stream the last word may be half a token.
    """
    text = without_last_space(completion) if habit.artefact_space else completion
    artefact = text is not completion
    parts = family.parts(text, thinking)
    counted = completion.usage.completion_tokens if completion.usage else None
    listed = read_logprobs(parts, completion.token_bytes, family.vocab) if completion.token_bytes else None
    if listed and counted == habit.expected(listed.total, stop=ended(completion)):
        return Judged(listed, Label.LOGPROBS)
    pieced = read_pieces(parts, text.pieces, family.vocab) if habit.at_tokens else None
    if (
        pieced
        and counted == habit.expected(pieced.total, stop=ended(completion))
        and not _shifted(pieced, completion, habit, family)
    ):
        return _agreed(pieced, completion, habit, artefact=artefact)
    if pieced and _proven_alone(pieced, completion, habit):
        return _alone(pieced, completion, habit)
    whole = read_whole(parts, family.vocab.encode)
    if counted is None:
        return Judged(pieced or whole, Label.UNCOUNTED, "the API gave no count")
    off = counted - habit.expected(whole.total, stop=ended(completion))
    if completion.cut is not None and (off > 0 or pieced is None):
        reason = "cut; the provider ran on and counted more" if off > 0 else "cut, perhaps inside a token"
        return Judged(pieced or whole, Label.UNCOUNTED, reason)
    if off == 0 and pieced is None:
        return _agreed(whole, completion, habit, artefact=artefact)
    return _repaired(text, family, habit, thinking) or _near(whole, off, counted)


def _shifted(pieced: Answer, completion: Completion, habit: Habits, family: Loaded) -> bool:
    """Whether a server that strips may have moved whitespace into the next piece, so that sums agree by accident."""
    if pieced.proven or habit.cut is not Cut.BURST or not _unsure(completion, habit):
        return False
    return read_whole(pieced.parts, family.vocab.encode).ids != pieced.ids


def _near(whole: Answer, off: int, counted: int) -> Judged:
    reason = f"the API counted {off:+d} tokens against the text" if off else "the count agrees but for the pieces"
    near = abs(off) <= max(_NEAR_TOKENS, _NEAR_SHARE * counted)
    return Judged(whole, Label.NEAR if near else Label.MISMATCH, reason)


def _proven_alone(answer: Answer, completion: Completion, habit: Habits) -> bool:
    """Whether the pieces of an answer prove its ids though its count does not agree.

    A cut answer has no count of its own, as long as it is not below its pieces. Of a whole one the count may be above by
    tokens that were held back for letters beyond ASCII, at most three for each piece of such letters.
    """
    if not habit.proves or not answer.pieces or answer.odd or completion.tool_calls:
        return False
    if completion.usage is None:
        return True
    whole = completion.cut is None
    off = completion.usage.completion_tokens - habit.expected(answer.total, stop=whole and ended(completion))
    return off >= 0 and (not whole or off <= HELD_BACK * answer.letters)


def _alone(answer: Answer, completion: Completion, habit: Habits) -> Judged:
    """An answer that its pieces alone prove, but for letters beyond ASCII and ends that are not sure."""
    ends = _unsure(completion, habit)
    letters = not (completion.reasoning.isascii() and completion.content.isascii())
    if ends or letters:
        reason = "not counted; its pieces are tokens, but for letters beyond ASCII and ends that may be stripped"
        return Judged(answer, Label.STRIPPED, reason, ends=ends, letters=letters)
    return Judged(answer, Label.STREAMED, "not counted; its pieces are tokens")


def _unsure(completion: Completion, habit: Habits) -> frozenset[End]:
    """Ends of the texts where whitespace may have been taken off."""
    return habit.unsure & frozenset(edges(completion))


def _agreed(answer: Answer, completion: Completion, habit: Habits, *, artefact: bool) -> Judged:
    """The label of an answer whose count agrees.

    A count, and a piece that is one entry, are blind to whitespace that merges into its neighbour. So an end of a text
    where the provider strips, or where that is not known, is masked, and the label says so.
    """
    proven = answer.proven and not completion.tool_calls
    ends = set(_unsure(completion, habit))
    doubts = ["the provider may strip whitespace"] if ends else []
    if artefact:
        doubts.append("the server adds a space to the reasoning")
        ends.add(End.REASONING_END)
    if not proven and not _split_agrees(answer, completion, habit):
        doubts.append("the reasoning count differs")
        ends |= set(edges(completion))
    arguments = bool(completion.tool_calls) and habit.keeps_arguments is not True
    if doubts or arguments:
        reason = "; ".join([*doubts, *(["the provider may rewrite arguments"] if arguments else [])])
        return Judged(answer, Label.STRIPPED, reason, ends=frozenset(ends), arguments=arguments)
    return Judged(answer, Label.STREAMED if proven else Label.COUNTED)


def _split_agrees(answer: Answer, completion: Completion, habit: Habits) -> bool:
    """Whether reasoning_tokens is what this provider says for such a reasoning; True where it keeps no known rule."""
    said = completion.usage.reasoning_tokens if completion.usage else None
    expected = habit.reasoning_expected(answer.reasoning, closed=closed(answer.parts))
    return said is None or expected is None or not completion.reasoning or said == expected


def _repaired(text: Completion, family: Loaded, habit: Habits, thinking: bool) -> Judged | None:
    """The answer under the one repair that makes all its counts agree; None if there is none, or more than one."""
    encode = cache(family.vocab.encode)
    found: dict[str, Judged] = {}
    for repair in repairs(text, habit):
        if repair.name in found:
            continue
        parts = family.parts(repair.completion, thinking)
        if repair.unclosed:
            parts = unclosed(parts)
        pieced = read_pieces(parts, repair.completion.pieces, family.vocab) if habit.at_tokens else None
        answer = pieced or read_whole(parts, encode)
        counted = text.usage.completion_tokens if text.usage else None
        agrees = counted == habit.expected(answer.total, stop=ended(text)) and _split_agrees(answer, text, habit)
        if agrees:
            ends = repair.ends | _unsure(text, habit)
            arguments = repair.arguments or (bool(text.tool_calls) and habit.keeps_arguments is not True)
            found[repair.name] = Judged(answer, Label.REPAIRED, repair.name, ends, arguments)
    return next(iter(found.values())) if len(found) == 1 else None
