"""Conversations written as one text, as the glaive function-calling sets do.

    SYSTEM: You are a helpful assistant with access to the following functions. Use them if required -
    {"name": "get_time", "description": …, "parameters": {…}}
    USER: What time is it in Oslo?
    ASSISTANT: <functioncall> {"name": "get_time", "arguments": '{"city": "Oslo"}'} <|endoftext|>
    FUNCTION RESPONSE: {"time": "12:00"}
    ASSISTANT: It is noon. <|endoftext|>

Form: the data cards of glaiveai/glaive-function-calling (v1, column `sample`) and -v2 (columns `system` and `chat`).
"""

from __future__ import annotations

import json
import re
from typing import Any, cast

from eyas.prompts.read import decode

_SPEAKER = re.compile(r"(?:\A|\n)[ \t]*(SYSTEM|USER|ASSISTANT|FUNCTION RESPONSE):")
_START = re.compile(r"\s*(?:SYSTEM|USER):")
_ASKS = re.compile(r"(?:\A|\n)[ \t]*USER:")
_CALL = "<functioncall>"
_END = "<|endoftext|>"
_QUOTED = re.compile(r"""\{\s*"name":\s*"([^"]+)",\s*"arguments":\s*'(.*)'\s*\}""", re.DOTALL)
_ROLES = {"SYSTEM": "system", "USER": "user", "ASSISTANT": "assistant", "FUNCTION RESPONSE": "tool"}
_GAP = re.compile(r"[\s,]*")
_RAW = json.JSONDecoder()


def is_script(text: str) -> bool:
    """Whether a text is a conversation of this form: it starts with the system's or the user's mark, and the user asks."""
    return bool(_START.match(text) and _ASKS.search(text))


def script(text: str) -> tuple[list[dict[str, Any]], list[Any]]:
    """The messages of such a text, with `tool_calls` where the assistant calls, and the functions declared in it."""
    marks = list(_SPEAKER.finditer(text))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    messages: list[dict[str, Any]] = []
    tools: list[Any] = []
    for mark, end in zip(marks, ends, strict=True):
        said, role = text[mark.end() : end].replace(_END, "").strip(), _ROLES[mark[1]]
        if role == "system":
            said, declared = declarations(said)
            tools += declared
        messages.append(_called(said) if role == "assistant" else {"role": role, "content": said})
    return messages, tools


def declarations(text: str) -> tuple[str, list[Any]]:
    """Parts a system text, its mark included, from the functions declared at its end; without any it stays whole."""
    text = text.strip().removeprefix("SYSTEM:").strip()
    start = text.find("{")
    found: list[Any] = []
    at = start
    try:
        while 0 <= at < len(text):
            _, end = _RAW.raw_decode(text, at)
            found.append(decode(text[at:end]))
            at = _GAP.match(text, end).end()  # pyright: ignore[reportOptionalMemberAccess]  # it matches the empty text
    except (ValueError, RecursionError):
        return text, []
    if not found or not all(isinstance(one, dict) and "name" in one for one in found):
        return text, []
    return text[:start].rstrip(" \n\t-:"), found


def _called(said: str) -> dict[str, Any]:
    text, mark, call = said.partition(_CALL)
    function = _function(call.strip()) if mark else None
    if function is None:
        return {"role": "assistant", "content": said}
    return {"role": "assistant", "content": text.strip(), "tool_calls": [{"function": function}]}


def _function(call: str) -> dict[str, Any] | None:
    """A call whose arguments are JSON text in single quotes, in which nothing is escaped, or plain JSON."""
    if quoted := _QUOTED.fullmatch(call):
        return {"name": quoted[1], "arguments": quoted[2]}
    try:
        value = decode(call)
    except ValueError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) and "name" in value else None
