"""Conversations that end in an assistant's turn, as SpecForge regenerates them and as eyas's `messages` has them (pure).

SpecForge's rows: `conversations`, reasoning in `reasoning_content` if it was told to save it:
https://github.com/sgl-project/SpecForge/blob/main/scripts/regenerate_train_data.py. TorchSpec's generator writes `thinking`:
https://github.com/lightseekorg/TorchSpec/blob/main/tools/generate_data.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eyas.answers.answer import Answer, BadAnswer, Form
from eyas.answers.fields import asked_in, fields_of, finish_of, text_of
from eyas.answers.trained import label_of
from eyas.prompts import BadShape, Row
from eyas.prompts.calls import call_of, calls
from eyas.prompts.parts import blank, cell
from eyas.prompts.parts import text_of as said_of
from eyas.prompts.shape import DEFAULT
from eyas.prompts.talk import Turn, talk_of
from eyas.types import ToolCall

COLUMNS = ("messages", "conversations", "conversation")
_REASONING = ("reasoning_content", "reasoning", "thinking")


def talk(row: Row) -> Iterator[Answer]:
    """The last turn of a conversation as an answer to all before it; its text only.

    Raises:
        BadAnswer: it cannot be read, or the assistant does not have the last word.
    """
    name = next(name for name in COLUMNS if row.data.get(name))
    try:
        turns = talk_of(row.data[name], name, DEFAULT.columns).turns
        last = turns[-1]
        called = [] if last.role != "assistant" else _calls(turns)
        content = "" if called and blank(last.content) else said_of(last.content, "assistant")
    except BadShape as error:
        raise BadAnswer(f"the conversation cannot be read: {error}") from None
    if last.role != "assistant" or len(turns) < 2:
        raise BadAnswer("the conversation does not end in an assistant's turn, so it holds no answer: remove the row")
    meta = fields_of(row.data.get("metadata"))
    label = label_of(meta.get("label"))
    asked = [turn.item or {"role": turn.role, "content": turn.content} for turn in turns[:-1]]
    prompt, _, _ = asked_in(row, {**row.data, "messages": asked, "tools": cell(row.data.get("tools"))})
    yield Answer(
        row.file,
        row.line,
        Form.TEXT,
        prompt=prompt,
        reasoning=next((text for name in _REASONING if (text := text_of(last.item.get(name)))), ""),
        content=content,
        tool_calls=tuple(called),
        finish=finish_of(meta.get("finish") or meta.get("finish_reason") or row.data.get("finish_reason")),
        model=text_of(meta.get("model") or row.data.get("model")),
        name=text_of(row.data.get("id")) if label is not None else "",
        label=label,
    )


def _calls(turns: Sequence[Turn]) -> list[ToolCall]:
    before = sum(len(calls(turn)) for turn in turns[:-1])
    found = [call_of(each) for each in calls(turns[-1])]
    return [
        ToolCall(call.id or f"functions.{call.name}:{number}", call.name, call.arguments)
        for number, call in enumerate(found, before)
    ]
