"""Whether an answer made elsewhere can be one of this model's, and what is kept of it (pure)."""

from __future__ import annotations

from typing import Any

import msgspec

from eyas.answers import Answer, Form
from eyas.families import Loaded
from eyas.tokens.engine import read_ids, same_text
from eyas.tokens.imported import IMPORTED
from eyas.types import Billed, Completion, Failure, FailureKind, Finish, Usage

NO_PROMPT = (
    "what it answers is no prompt of dataset {}: name the dataset it was made for, ask with the prompts and the system turn of "
    "RUN.toml, or import the turns before it too"
)
TOO_SHORT = "it does not say that it ended, and has {} tokens, fewer than [budget] keep_from = {}: give its finish_reason, or ask it again"
_OTHER_TOKENIZER = "{}, so its ids are of another tokenizer than the run's: import it into a run of its own model"
_BROKEN_OFF = "imported: the row does not say that it ended"


def objection(answer: Answer, family: Loaded) -> tuple[str, Answer]:
    """Why an answer cannot be this model's, or an empty string; and the answer, its `text` moved if that is the prompt's."""
    if answer.ids is None:
        if not (answer.content or answer.reasoning or answer.tool_calls):
            return "the answer is empty: remove the row, or ask it again", answer
        return "", answer
    vocab = family.vocab
    try:
        said = vocab.decode(answer.ids)
        row = vocab.decode(answer.prompt_ids or ()) + said
    except KeyError as error:
        return _OTHER_TOKENIZER.format(f"the vocabulary has no id {error.args[0]}"), answer
    if answer.text and not (same_text(answer.text, answer.ids, vocab) or said.startswith(answer.text)):
        bare = answer.prompt is None and answer.prompt_ids is None and not answer.prompt_text
        if bare and answer.form is Form.SGLANG:  # a request's own field of that name
            return "", msgspec.structs.replace(answer, text="", prompt_text=answer.text)
        return _OTHER_TOKENIZER.format("its text is not what its ids decode to"), answer
    if answer.row_text and answer.row_text != row:
        return _OTHER_TOKENIZER.format("its text is not what its ids decode to"), answer
    for text in (answer.reasoning.strip(), answer.content.strip()):
        if text not in said and "\ufffd" not in text:
            return _OTHER_TOKENIZER.format("its text is not in what its ids decode to"), answer
    return "", answer


def completion_of(answer: Answer, family: Loaded, thinking: bool, provider: str) -> Completion:
    """What is kept of an answer: its ids and what they say, or its text; where it came from stands in `extra`."""
    ended = _finish(answer, family)
    cut = None if ended is not None else Failure(FailureKind.CUT, Billed.NO, _BROKEN_OFF)
    base = Completion(
        finish=ended,
        cut=cut,
        provider=provider,
        model=answer.model,
        usage=answer.usage,
        extra={IMPORTED: _origin(answer)},
    )
    if answer.ids is None:
        reasoning, content = answer.reasoning, answer.content
        if not reasoning:
            reasoning, content = _thoughts(content, family)
        return msgspec.structs.replace(base, reasoning=reasoning, content=content, tool_calls=answer.tool_calls)
    counted = Usage(len(answer.prompt_ids), len(answer.ids), cost=0) if answer.prompt_ids else None
    whole = msgspec.structs.replace(
        base,
        content=family.vocab.decode(answer.ids),
        token_ids=answer.ids,
        prompt_ids=answer.prompt_ids,
        usage=answer.usage or counted,
    )
    # Where nobody counted the prompt, nothing may say that it was counted.
    return msgspec.structs.replace(read_ids(whole, family, thinking), usage=whole.usage)


def same(one: Completion, other: Completion) -> bool:
    """Whether two answers say the same: by their ids where both have them, else by their texts."""
    if one.token_ids is not None and other.token_ids is not None:
        return one.token_ids == other.token_ids
    return (one.reasoning, one.content) == (other.reasoning, other.content)


def beginning(answer: Answer) -> str:
    """What an answer replies to, to recognise it by. Never the answer: what is forgotten could stay written down by it."""
    return str(answer.prompt.messages[-1].get("content") or "") if answer.prompt else answer.prompt_text


def _finish(answer: Answer, family: Loaded) -> Finish | None:
    """Why it ended. Ids that end in a stop token say so; a row of eyas without it was shortened by --max-length."""
    if answer.ids is None:
        return answer.finish
    stopped = answer.ids[-1] in family.stops
    if answer.finish is None:
        return Finish.STOP if stopped else None
    shortened = answer.label is not None and answer.finish in (Finish.STOP, Finish.TOOL_CALLS) and not stopped
    return None if shortened else answer.finish


def _origin(answer: Answer) -> dict[str, Any]:
    found: dict[str, Any] = {"file": answer.file, "line": answer.line, "format": answer.form.value}
    if answer.label is not None:
        found |= {"label": answer.label.value, "unsure": [list(each) for each in answer.unsure]}
    return found


def _thoughts(text: str, family: Loaded) -> tuple[str, str]:
    """(reasoning, content) of a text with `<think>…</think>` in it, as the family reads its ids."""
    vocab = family.vocab
    before, mark, rest = text.partition("</think>")
    closing = vocab.specials.get("</think>")
    if not mark or closing is None:
        return "", text
    ids = [*vocab.encode(before.lstrip().removeprefix("<think>")), closing, *vocab.encode(rest)]
    said = family.said(ids, thinking=True)
    return said.reasoning, said.content
