"""A conversation with its past answers, tool calls and results, as the API takes it: what `turns = "last"` asks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from eyas.prompts.calls import Call, call_of, calls, results, said_beside
from eyas.prompts.parts import BadShape, blank, result_of, text_of
from eyas.prompts.talk import Turn, first_of
from eyas.types import Message

_REASONING = ("reasoning_content", "reasoning", "thinking")
_THOUGHT = re.compile(
    r"<think>.*?</think>\s*|\A\s*<think>.*"
    r"|\A(?:(?!<think>).)*?</think>[ \t]*(?:\n\s*|\Z)"  # the opening mark stood in the prompt
    r"|<\|begin_of_thought\|>.*?(?:<\|end_of_thought\|>|\Z)\s*",
    re.DOTALL,
)
_SOLUTION = re.compile(r"<\|(?:begin|end)_of_solution\|>\s*")


def history(turns: Sequence[Turn]) -> tuple[Message, ...]:
    """The messages of the turns, in order.

    Thoughts in past answers are dropped (chat templates do the same), reasoning in a field of its own stays. Arguments
    become JSON text. Where the source gives a call no id it is `functions.NAME:N`, Kimi's own form, N counting the
    conversation's calls from 0; a result without an id answers the next open call, one of its name if there is one.

    Raises:
        BadShape: a turn is empty, or a tool's result answers no call.
        Skipped: a turn holds an image or a sound.
    """
    messages: list[Message] = []
    waiting: list[Call] = []
    count = 0
    for turn in turns:
        if turn.role == "tool":
            messages += [_result(turn, content, waiting) for content in results(turn.content)]
            continue
        waiting = [_numbered(call_of(call), count + at) for at, call in enumerate(calls(turn))]
        count += len(waiting)
        if turn.role == "assistant":
            messages.append(_answer(turn, waiting))
        else:
            messages.append({"role": turn.role, "content": text_of(turn.content, turn.role)})
    return tuple(messages)


def without_thoughts(text: str) -> str:
    """An answer's text without `<think>…</think>`, also where the opening mark is left out, and OpenThoughts' marks."""
    said, found = _THOUGHT.subn("", text)
    return _SOLUTION.sub("", said).strip() if found else text


def _numbered(call: Call, at: int) -> Call:
    return call if call.id else Call(f"functions.{call.name}:{at}", call.name, call.arguments, made=True)


def _answer(turn: Turn, called: Sequence[Call]) -> Message:
    content = said_beside(turn)
    said = "" if called and blank(content) else without_thoughts(text_of(content, "assistant"))
    if not said and not called:
        raise BadShape("an assistant turn holds thoughts only: give it an answer or remove the row")
    message: Message = {"role": "assistant", "content": said}
    thoughts = [text for name in _REASONING if isinstance(text := turn.item.get(name), str)]
    if reasoning := next((text for text in thoughts if not blank(text)), ""):
        message["reasoning_content"] = reasoning
    elif called and thoughts:
        message["reasoning_content"] = (
            ""  # an API that wants the field beside calls takes it empty, and refuses it missing
        )
    if called:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in called
        ]
    return message


def _result(turn: Turn, content: Any, waiting: list[Call]) -> Message:
    """The message of a result; its call is taken off those that wait."""
    given, name = first_of(turn.item, ("tool_call_id", "call_id")), turn.item.get("name")
    found = next((call for call in waiting if call.id == given), None)
    if found is None:
        free = [call for call in waiting if given is None or call.made]
        found = next(iter([call for call in free if call.name == name] or free), None)
    if found is None:
        raise BadShape(
            "a tool's result answers no call before it: add tool_calls to the answer before it, give both the same id, "
            'or read the set with turns = "first"'
        )
    waiting.remove(found)
    return {"role": "tool", "tool_call_id": found.id, "content": result_of(content)}
