"""An answer that an engine gave as ids: its texts read out of them, and its own text held against them (pure)."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from eyas.families import Loaded
from eyas.types import Completion, Finish
from eyas.vocab import Vocab

ENGINE_TEXT = "engine_text"
"""Where an answer keeps the engine's text, if that is not what its ids decode to."""

CALLS_UNREAD = "calls_unread"


def read_ids(answer: Completion, family: Loaded, thinking: bool) -> Completion:
    """An answer with reasoning, content and calls by its ids; `content` held the engine's whole text before.

    A stop token that the engine counted and did not list is put at the end: it was sampled.

    Args:
        answer: as it came, with `token_ids`.
        family: the family of the model.
        thinking: the mode it was asked in.
    """
    if answer.token_ids is None:
        return answer
    ids = answer.token_ids
    counted = answer.usage.completion_tokens if answer.usage else None
    if answer.finish is Finish.STOP and ids[-1] not in family.stops and counted == len(ids) + 1:
        ids = (*ids, family.stop)
    extra = dict(answer.extra)
    try:
        said = family.said(ids, thinking)
        agrees = same_text(answer.content, ids, family.vocab)
    except KeyError:  # ids that the vocabulary does not have: the label, or a trial, will say so
        return msgspec.structs.replace(answer, token_ids=ids, extra={**extra, ENGINE_TEXT: answer.content})
    if not agrees:
        extra[ENGINE_TEXT] = answer.content
    if not said.calls_read:
        extra[CALLS_UNREAD] = True
    finish = Finish.TOOL_CALLS if said.tool_calls and answer.finish is Finish.STOP else answer.finish
    return msgspec.structs.replace(
        answer,
        reasoning=said.reasoning,
        content=said.content,
        tool_calls=said.tool_calls,
        finish=finish,
        token_ids=ids,
        extra=extra,
    )


def same_text(text: str, ids: Sequence[int], vocab: Vocab) -> bool:
    """Whether an engine's text is what ids decode to, leaving out specials, which engines show or hide, and cut characters."""
    return _bare(text, vocab) == _bare(vocab.decode(ids), vocab)


def _bare(text: str, vocab: Vocab) -> str:
    names = [name for name in vocab.specials if name[0] in text and name in text]
    pattern = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return (re.sub(pattern, "", text) if pattern else text).replace("\ufffd", "")
