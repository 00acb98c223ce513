"""The tool calls of past answers, in all forms that data sets write, as the OpenAI API takes them."""

from __future__ import annotations

import ast
import json
import re
from typing import Any, cast

import msgspec

from eyas.prompts.parts import BadShape, cell, dumped
from eyas.prompts.read import MAX_DEPTH, decode
from eyas.prompts.talk import CALLS, Turn

_HERMES_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_HERMES_RESULTS = re.compile(r"\s*(?:<tool_response>.*?</tool_response>\s*)+", re.DOTALL)
_HERMES_RESULT = re.compile(r"<tool_response>(.*?)</tool_response>", re.DOTALL)
_PLAIN = re.compile(r"""(?:[^\\]|\\[\\'"nrtuxU])*""")
_LITERAL = (ValueError, TypeError, SyntaxError, MemoryError, RecursionError)


class Call(msgspec.Struct, frozen=True):
    """A call: its id, None if the source gives none; the function's name; its arguments as JSON text.

    `made`: the id is not the source's.
    """

    id: str | None
    name: str
    arguments: str
    made: bool = False


def calls(turn: Turn) -> list[Any]:
    """The calls of a turn as they stand in the source; not empty means that the turn calls a tool."""
    if turn.role != "assistant":
        return []
    found = cell(turn.item.get("tool_calls") or turn.item.get("function_call"))
    if not found and turn.speaker in CALLS:
        found = cell(turn.content)
        if not isinstance(found, list | dict):
            raise BadShape(f"a {turn.speaker} turn holds no call in JSON: write {{'name': …, 'arguments': …}}")
    if not found:
        return _hermes(turn.content)
    return cast("list[Any]", found) if isinstance(found, list) else [found]


def calls_tools(turn: Turn) -> bool:
    """Whether a turn belongs to a trace: a tool's result, or an answer that calls one."""
    if turn.role == "tool" or turn.speaker in CALLS:
        return True
    return turn.role == "assistant" and bool(
        turn.item.get("tool_calls") or turn.item.get("function_call") or _hermes(turn.content)
    )


def said_beside(turn: Turn) -> Any:
    """The content of a turn that calls tools, without the calls that stand in it."""
    if turn.speaker in CALLS:
        return ""
    return _HERMES_CALL.sub("", turn.content).strip() if _hermes(turn.content) else turn.content


def results(content: Any) -> list[Any]:
    """The results that one tool turn holds: several in Hermes' form, else the content itself."""
    if isinstance(content, str) and _HERMES_RESULTS.fullmatch(content):
        return [text.strip() for text in _HERMES_RESULT.findall(content)]
    return [content]


def call_of(given: Any) -> Call:
    """One call, from OpenAI's form or from name and arguments alone.

    Raises:
        BadShape: it names no function, or its arguments are neither text nor an object.
    """
    outer: dict[str, Any] = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    inner: Any = outer.get("function")
    function = cast("dict[str, Any]", inner) if isinstance(inner, dict) else outer
    name, number = function.get("name"), outer.get("id")
    if not isinstance(name, str) or not name:
        raise BadShape("a tool call names no function: write {'function': {'name': …, 'arguments': …}}")
    arguments: Any = function.get("arguments")
    if arguments is None:
        arguments = function.get("parameters")
    if isinstance(arguments, dict):
        arguments = dumped(arguments)
    if not isinstance(arguments, str | None):
        raise BadShape(f"the arguments of a call of '{name}' are no object: write an object or its JSON text")
    return Call(number if isinstance(number, str) and number else None, name, arguments or "{}")


def _hermes(content: Any) -> list[dict[str, Any]]:
    """Calls in Hermes' marks; none at all if one of them cannot be read, since the text may only speak of them."""
    if not isinstance(content, str) or "<tool_call>" not in content:
        return []
    found = [_named(text.strip()) for text in _HERMES_CALL.findall(content)]
    return [each for each in found if each] if all(found) else []


def _named(text: str) -> dict[str, Any] | None:
    """A call's name and its arguments as JSON text in their own order; it is JSON or, in early sets, a Python literal."""
    try:
        value = decode(text)
    except ValueError:
        value = _literal(text)
    call: dict[str, Any] = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    name, arguments = call.get("name"), call.get("arguments", {})
    if not isinstance(name, str) or not name or not isinstance(arguments, dict):
        return None
    try:
        plain = json.dumps(arguments, ensure_ascii=False, allow_nan=False)
        plain.encode()
    except (ValueError, TypeError):
        return None
    return {"name": name, "arguments": plain}


def _literal(text: str) -> Any:
    # Deep nesting could exhaust the parser's own stack, and an unknown escape would be a warning.
    if sum(text.count(mark) for mark in "[{(") > MAX_DEPTH or not _PLAIN.fullmatch(text):
        return None
    try:
        return ast.literal_eval(text)
    except _LITERAL:
        return None
