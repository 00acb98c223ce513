"""From an answer to its token ids and loss mask, with a label that says how they are known (pure).

Labels, surest first; a count "agrees" when it is exact under the habits learned of the provider (`calibrate`):

    ENGINE     the engine returned the ids
    STREAMED   every streamed piece is one vocabulary entry, so the pieces' bytes are the ids
    COUNTED    rebuilt from text; prompt and completion counts agree, and the provider delivers text as sampled
    STRIPPED   the counts agree, but tokens at the ends of texts (or tool arguments) may differ: they have mask 0
    UNCOUNTED  nothing to check against
    NEAR       off by at most 2 tokens or 0.5 %: most likely a word that the sampler split non-canonically
    MISMATCH   the prompt or the answer is not what the API counted
    BROKEN     the text itself is damaged

LOGPROBS and REPAIRED come with a later version.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

import msgspec

from eyas.families import Channel, Loaded, Part
from eyas.tokens.calibrate import Cut, End, Evidence, Habits, habit_key, habits_for
from eyas.tokens.reading import (
    Answer,
    Prompt,
    defect,
    read_pieces,
    read_prompt,
    read_whole,
    spells_special,
    without_last_space,
)
from eyas.types import Completion, Finish, Label, Record, Sequence

SPELLED = "the prompt spells a special token"
"""Reason of a sequence whose prompt holds the spelling of a special token: engines read it as that token."""

_NEAR_TOKENS = 2
_NEAR_SHARE = 0.005
_ENDED = (Finish.STOP, Finish.TOOL_CALLS)
_KNOWN_OFFSETS = (0, -1)
_AT_TOKENS = (Cut.TOKEN, Cut.BURST)
_ENDS = {
    Channel.REASONING: (End.REASONING_START, End.REASONING_END),
    Channel.CONTENT: (End.CONTENT_START, End.CONTENT_END),
}


class _Judged(msgspec.Struct, frozen=True):
    """An answer with its label; `ends` and `arguments` say which of its tokens are not sure."""

    answer: Answer
    label: Label
    reason: str = ""
    ends: frozenset[End] = frozenset()
    arguments: bool = False


def evidence(record: Record, family: Loaded, thinking: bool) -> Evidence | None:
    """What an answer says about its provider's habits, or None if it says nothing (no count, cut, damaged).

    Texts are encoded whole only where their pieces do not already come to within 2 tokens of the API's count.
    """
    completion, usage = record.completion, record.completion.usage
    if usage is None or completion.cut is not None or completion.token_ids is not None:
        return None
    if defect(completion, family) or (completion.reasoning and not thinking):
        return None
    prompt = read_prompt(record, family, thinking=thinking, offsets=_KNOWN_OFFSETS)
    if prompt.off is None:
        return None
    whole, pieced = _totals(completion, family, thinking)
    trimmed = without_last_space(completion)
    spare = (whole, pieced) if trimmed is completion else _totals(trimmed, family, thinking)
    reading = pieced or whole
    reasoning = reading.count(Channel.REASONING) if reading else 0
    return Evidence(
        key=habit_key(completion.provider, thinking=thinking),
        prompt_off=prompt.off,
        counted=usage.completion_tokens,
        stop=completion.finish in _ENDED,
        whole=whole and whole.total,
        pieced=pieced and pieced.total,
        whole_trimmed=spare[0] and spare[0].total,
        pieced_trimmed=spare[1] and spare[1].total,
        pieces=pieced.pieces if pieced else 0,
        singles=pieced.singles if pieced else 0,
        edges=_edges(completion),
        tools=bool(completion.tool_calls),
        reasoning_off=usage.reasoning_tokens - reasoning if usage.reasoning_tokens and reasoning else None,
    )


def _edges(completion: Completion) -> dict[End, bool]:
    """Whether whitespace stands at each end of the texts."""
    edges: dict[End, bool] = {}
    if completion.reasoning:
        edges[End.REASONING_START] = completion.reasoning[0].isspace()
        edges[End.REASONING_END] = completion.reasoning[-1].isspace()
    if completion.content:
        edges[End.CONTENT_START] = completion.content[0].isspace()
        edges[End.CONTENT_END] = completion.content[-1].isspace()
    return edges


def _unsure(completion: Completion, habit: Habits) -> frozenset[End]:
    """Ends of the texts where whitespace may have been taken off."""
    return (habit.stripped | habit.open) & frozenset(_edges(completion))


def rebuild(record: Record, family: Loaded, habits: Mapping[str, Habits], thinking: bool) -> Sequence:
    """The training tokens of a record.

    Special ids come from the family's grammar, never from text. The mask is 0 on the prompt and 1 on what the model
    sampled, its stop token included; a STRIPPED answer has 0 also on the tokens that are not sure.

    Args:
        record: the answer and its prompt.
        family: the family of the model.
        habits: learned of the providers, see `learn`.
        thinking: the mode the record was asked in.
    """
    completion = record.completion
    if completion.token_ids is not None:
        return _engine(record, family, thinking)
    habit = habits_for(habits, completion.provider, thinking=thinking)
    prompt = read_prompt(record, family, thinking=thinking, offsets=(habit.prompt_offset,))
    judged = _judge(completion, family, habit, thinking)
    if reason := defect(completion, family):
        judged = _Judged(judged.answer, Label.BROKEN, reason)
    elif completion.reasoning and not thinking:
        judged = _Judged(judged.answer, Label.MISSERVED, "it reasons, though thinking was off")
    elif prompt.reason:
        judged = _Judged(judged.answer, Label.MISMATCH, prompt.reason)
    elif not judged.reason and spells_special(record, family.vocab):
        judged = msgspec.structs.replace(judged, reason=SPELLED)
    return _sequence(record, prompt, judged)


def label(record: Record, family: Loaded, habits: Mapping[str, Habits], thinking: bool) -> Label:
    """The label of a record: provisional while habits are still being learned, final at export."""
    return rebuild(record, family, habits, thinking).label


def _totals(completion: Completion, family: Loaded, thinking: bool) -> tuple[Answer | None, Answer | None]:
    """The answer read whole and by pieces; whole only where the pieces leave a question."""
    parts = family.parts(completion, thinking)
    pieced = read_pieces(parts, completion.pieces, family.vocab)
    counted = completion.usage.completion_tokens if completion.usage else 0
    if pieced and pieced.proven and abs(counted - pieced.total) <= _NEAR_TOKENS:
        return None, pieced
    return read_whole(parts, family.vocab), pieced


def _judge(completion: Completion, family: Loaded, habit: Habits, thinking: bool) -> _Judged:
    """Which reading of an answer its count supports.

    A cut answer has no count of its own, for the provider may have run on. Its pieces alone still prove its ids where
    the provider is known to cut at tokens: a token never spans two pieces there, so a piece that is one vocabulary
    entry is that token. Letters beyond ASCII are left out of that: a server holds tokens back until a character is
    whole, so two tokens can come as one piece. On any other stream the last word may be cut inside a token.
    """
    text = without_last_space(completion) if habit.artefact_space else completion
    parts = family.parts(text, thinking)
    stop = completion.finish in _ENDED
    counted = completion.usage.completion_tokens if completion.usage else None
    pieced = read_pieces(parts, text.pieces, family.vocab) if habit.cut in _AT_TOKENS else None
    if pieced:
        off = 0 if counted is None else counted - habit.expected(pieced.total, stop=stop)
        if counted is not None and off == 0:
            return _agreed(pieced, completion, habit, artefact=text is not completion)
        if _proven_alone(pieced, completion, habit) and off >= 0 and (counted is None or completion.cut is not None):
            return _Judged(pieced, Label.STREAMED, "pieces of a stream that is cut at tokens; not counted")
    whole = read_whole(parts, family.vocab)
    if counted is None:
        return _Judged(pieced or whole, Label.UNCOUNTED, "the API gave no count")
    off = counted - habit.expected(whole.total, stop=stop)
    if completion.cut is not None and (off > 0 or pieced is None):
        reason = "cut; the provider ran on and counted more" if off > 0 else "cut, perhaps inside a token"
        return _Judged(pieced or whole, Label.UNCOUNTED, reason)
    if off == 0 and pieced is None:
        return _agreed(whole, completion, habit, artefact=text is not completion)
    reason = f"the API counted {off:+d} tokens against the text" if off else "the count agrees but for the pieces"
    near = abs(off) <= max(_NEAR_TOKENS, _NEAR_SHARE * counted)
    return _Judged(whole, Label.NEAR if near else Label.MISMATCH, reason)


def _proven_alone(answer: Answer, completion: Completion, habit: Habits) -> bool:
    """Whether the pieces prove the ids without a count."""
    plain = completion.reasoning.isascii() and completion.content.isascii() and not completion.tool_calls
    return habit.cut is Cut.TOKEN and answer.proven and plain and not _unsure(completion, habit)


def _agreed(answer: Answer, completion: Completion, habit: Habits, *, artefact: bool) -> _Judged:
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
        ends |= set(_edges(completion))
    arguments = bool(completion.tool_calls) and habit.keeps_arguments is not True
    if doubts or arguments:
        reason = "; ".join([*doubts, *(["the provider may rewrite arguments"] if arguments else [])])
        return _Judged(answer, Label.STRIPPED, reason, ends=frozenset(ends), arguments=arguments)
    return _Judged(answer, Label.STREAMED if proven else Label.COUNTED)


def _split_agrees(answer: Answer, completion: Completion, habit: Habits) -> bool:
    """Whether reasoning_tokens is what this provider says for such a reasoning; True where it keeps no known rule."""
    said = completion.usage.reasoning_tokens if completion.usage else None
    extra = {"R": 0, "R+1": 1}.get(habit.reasoning_count)
    if said is None or extra is None or not completion.reasoning:
        return True
    return said == answer.count(Channel.REASONING) + extra


def _engine(record: Record, family: Loaded, thinking: bool) -> Sequence:
    """The sequence of an answer whose ids the engine returned; its text must be in them."""
    completion = record.completion
    if completion.prompt_ids is not None:
        prompt = Prompt(list(completion.prompt_ids), 0)
    else:
        prompt = read_prompt(record, family, thinking=thinking, offsets=_KNOWN_OFFSETS)
    ids = list(completion.token_ids or ())
    found = Label.ENGINE
    reason = prompt.reason
    try:
        text = family.vocab.decode(ids)
    except KeyError:
        reason = "the engine's ids are not this tokenizer's"
    else:
        texts = (completion.reasoning, completion.content)
        if not all(part in text for part in texts if "\ufffd" not in part):
            reason = "the engine's ids do not hold the answer's text"
    if reason:
        found = Label.MISMATCH
    return _sequence(record, prompt, _Judged(Answer((Part("", Channel.CONTENT),), [ids]), found, reason))


def _sequence(record: Record, prompt: Prompt, judged: _Judged) -> Sequence:
    mask = [0] * len(prompt.ids)
    for part, ids in zip(judged.answer.parts, judged.answer.ids, strict=True):
        sure = [1] * len(ids)
        ends = _ENDS.get(part.channel) if part.channel else None
        if ids and ends:
            start, end = ends
            sure[0] = 0 if start in judged.ends else sure[0]
            sure[-1] = 0 if end in judged.ends else sure[-1]
        if judged.arguments and part.channel is Channel.ARGUMENTS:
            sure = [0] * len(ids)
        mask += sure
    return Sequence(
        prompt_ids=tuple(prompt.ids),
        completion_ids=tuple(chain.from_iterable(judged.answer.ids)),
        loss_mask=tuple(mask),
        label=judged.label,
        record_id=record.work.key,
        reason=judged.reason,
    )
