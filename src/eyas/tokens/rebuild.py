"""From an answer to its token ids and loss mask, with a label that says how they are known (pure).

Labels, surest first; a count "agrees" when it is exact under the habits learned of the provider (`calibrate`):

    ENGINE     the engine returned the ids
    LOGPROBS   a complete list of logprobs names the bytes of every token
    STREAMED   every streamed piece is one vocabulary entry, so the pieces' bytes are the ids
    COUNTED    rebuilt from text; prompt and completion counts agree, and the provider delivers text as sampled
    STRIPPED   the counts agree, but tokens at the ends of texts (or tool arguments) may differ: they have mask 0
    REPAIRED   the counts agree after exactly one named repair; what it touches has mask 0
    UNCOUNTED  nothing to check against
    NEAR       off by at most 2 tokens or 0.5 %: most likely a word that the sampler split non-canonically
    MISMATCH   the prompt or the answer is not what the API counted
    BROKEN     the text itself is damaged
    MISSERVED  the answer is not in the mode that was asked for
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

import msgspec

from eyas.families import Channel, Loaded, Part
from eyas.tokens.engine import ENGINE_TEXT
from eyas.tokens.habits import PLAIN, End, Habits, habits_for
from eyas.tokens.imported import bounded, other_prompt
from eyas.tokens.judge import Judged, judge
from eyas.tokens.prompt import Prompt, read_prompt, spells_special
from eyas.tokens.reading import Answer, defect
from eyas.tokens.whitespace import changed_end, changed_start, touched
from eyas.types import Label, Record, Sequence
from eyas.vocab import Vocab

SPELLED = "the prompt spells a special token"
"""Reason of a sequence whose prompt holds the spelling of a special token: engines read it as that token."""

DISTRUSTED = "most answers of this provider disagree with its own counts: another template, tokenizer or model"
HIDDEN = "every prompt of this provider does so: a hidden system prompt"

_ENDS = {
    Channel.REASONING: (End.REASONING_START, End.REASONING_END),
    Channel.CONTENT: (End.CONTENT_START, End.CONTENT_END),
}


def rebuild(record: Record, family: Loaded, habits: Mapping[str, Habits], thinking: bool) -> Sequence:
    """The training tokens of a record.

    Special ids come from the family's grammar, never from text. The mask is 0 on the prompt and 1 on what the model
    sampled, its stop token included; STRIPPED and REPAIRED answers have 0 also on the tokens that are not sure.

    Args:
        record: the answer and its prompt.
        family: the family of the model.
        habits: learned of the providers, see `learn`.
        thinking: the mode the record was asked in.
    """
    completion = record.completion
    if completion.token_ids is not None:
        return bounded(_engine(record, family, thinking), completion)
    habit = habits_for(habits, completion.provider, thinking=thinking)
    prompt = read_prompt(record, family, thinking, (habit.counting.prompt,), habit.prompt_form)
    judged = judge(completion, family, habit, thinking)
    if reason := defect(completion, family):
        judged = Judged(judged.answer, Label.BROKEN, reason)
    elif completion.reasoning and not thinking:
        judged = Judged(judged.answer, Label.MISSERVED, "it reasons, though thinking was off")
    elif prompt.reason:
        judged = Judged(judged.answer, Label.MISMATCH, f"{prompt.reason}; {HIDDEN}" if habit.hidden else prompt.reason)
    elif not habit.trusted:
        judged = Judged(judged.answer, Label.MISMATCH, DISTRUSTED)
    elif not judged.reason and spells_special(record, family.vocab):
        judged = msgspec.structs.replace(judged, reason=SPELLED)
    return bounded(_sequence(record, prompt, judged, family.vocab), completion)


def label(record: Record, family: Loaded, habits: Mapping[str, Habits], thinking: bool) -> Label:
    """The label of a record: provisional while habits are still being learned, final at export."""
    return rebuild(record, family, habits, thinking).label


def _engine(record: Record, family: Loaded, thinking: bool) -> Sequence:
    """The sequence of an answer whose ids the engine returned; its text must be in them."""
    completion = record.completion
    if completion.prompt_ids is not None:
        prompt = Prompt(list(completion.prompt_ids), 0, other_prompt(record, family, thinking))
    else:
        offsets = {shift.prompt for shift in (PLAIN, *family.shifts(thinking))}
        prompt = read_prompt(record, family, thinking, offsets)
    ids = list(completion.token_ids or ())
    found = Label.ENGINE
    reason = prompt.reason
    try:
        text = family.vocab.decode(ids)
    except KeyError:
        reason = "the engine's ids are not this tokenizer's"
    else:
        texts = (completion.reasoning, completion.content)
        if not all(part in text for part in texts if "\ufffd" not in part) or ENGINE_TEXT in completion.extra:
            reason = "the engine's ids do not hold the answer's text"
    if reason:
        found = Label.MISMATCH
    return _sequence(record, prompt, Judged(Answer((Part("", Channel.CONTENT),), [ids]), found, reason), family.vocab)


def _sequence(record: Record, prompt: Prompt, judged: Judged, vocab: Vocab) -> Sequence:
    mask = [0] * len(prompt.ids)
    for part, ids in zip(judged.answer.parts, judged.answer.ids, strict=True):
        if judged.arguments and part.channel is Channel.ARGUMENTS:
            mask += [0] * len(ids)
        else:
            mask += _mask(part, ids, judged, vocab)
    return Sequence(
        prompt_ids=tuple(prompt.ids),
        completion_ids=tuple(chain.from_iterable(judged.answer.ids)),
        loss_mask=tuple(mask),
        label=judged.label,
        record_id=record.work.key,
        reason=judged.reason,
    )


def _mask(part: Part, ids: list[int], judged: Judged, vocab: Vocab) -> list[int]:
    """The mask of one part: 0 where an end, or a letter, that is not sure may have been other tokens."""
    sure = [1] * len(ids)
    if judged.letters and part.token is None:
        sure = [int(vocab.token_bytes(number).isascii()) for number in ids]
    ends = _ENDS.get(part.channel) if part.channel and judged.ends else None
    if not ids or ends is None:
        return sure
    # Whitespace that a repair put back may have been merged into the token beside it.
    least = 2 if judged.label is Label.REPAIRED else 1
    start, end = ends
    if start in judged.ends:
        count = max(least, touched(ids, changed_start(part.text, vocab), vocab))
        sure[:count] = [0] * len(sure[:count])
    if end in judged.ends:
        count = max(least, touched(ids[::-1], changed_end(part.text, vocab), vocab))
        sure[-count:] = [0] * len(sure[-count:])
    return sure
