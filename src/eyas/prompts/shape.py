"""Turns a row of any known shape into a Prompt, or says why not: nothing that is unclear becomes a question.

Of a conversation the system turns and the first user turn are asked now; the later user turns follow one by one. What its
assistant and its tools said is left out, since the target answers for itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any, cast

from eyas.errors import EyasError
from eyas.prompts.read import Row, decode
from eyas.types import Message, Prompt, Source

_ROLES = {
    "system": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "model": "assistant",
    "function_call": "assistant",
    "tool": "tool",
    "function": "tool",
}
_TYPES = {
    "dict": "object",
    "float": "number",
    "double": "number",
    "int": "integer",
    "bool": "boolean",
    "str": "string",
    "list": "array",
    "tuple": "array",
}
_SCHEMA_MAPS = ("properties", "patternProperties", "$defs", "definitions")
_SCHEMAS = ("items", "prefixItems", "additionalProperties", "anyOf", "oneOf", "allOf", "not")


class BadShape(EyasError):
    """A row that is no prompt; the message is a sentence that says why and what to do."""


def to_prompt(row: Row, dataset: str, system: str | None = None) -> Prompt:
    """Makes the prompt of a row.

    The first filled one of the columns messages, conversations, turns, prompt, question and instruction is used; then
    tools, functions or function; then system or system_prompt. Other columns are ignored.

    Args:
        row: the row as it was read.
        dataset: the name of its set.
        system: the system turn of rows that bring none of their own.

    Raises:
        BadShape: the row is none of the known shapes, or something that cannot be asked as text.
    """
    asked, turns = _split(_messages(row.data))
    tools = _tools(row.data)
    if len(asked) == 1 and (text := _system(row.data) or system):
        asked = ({"role": "system", "content": text}, *asked)
    return Prompt(
        id=prompt_id(asked, tools),
        dataset=dataset,
        messages=asked,
        tools=tools,
        turns=turns,
        system="\n\n".join(message["content"] for message in asked[:-1]) or None,
        source=Source(row.file, row.line),
    )


def prompt_id(messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> str:
    """The identity of a prompt: 16 hex digits of the SHA-256 of its messages and tools as canonical JSON."""
    canonical = json.dumps([messages, tools], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def _messages(data: dict[str, Any]) -> list[Message]:
    column = next((name for name in _SHAPES if data.get(name)), None)
    if column:
        return _SHAPES[column](data[column], column, data)
    if empty := [name for name in _SHAPES if name in data]:
        raise BadShape(f"the column '{empty[0]}' is empty: fill it or remove the row")
    raise BadShape(f"no column holds a prompt (there is {_names(data)}): name it one of {_names(_SHAPES)}")


def _conversation(value: Any, column: str, _: dict[str, Any]) -> list[Message]:
    if not isinstance(value, list):
        raise BadShape(f"the column '{column}' has no known shape: write [{{'role': 'user', 'content': …}}, …]")
    return [_message(item, column) for item in cast("list[Any]", value)]


def _turns(value: Any, column: str, data: dict[str, Any]) -> list[Message]:
    if isinstance(value, list) and all(isinstance(item, str) for item in cast("list[Any]", value)):
        return [{"role": "user", "content": item} for item in cast("list[str]", value)]
    return _conversation(value, column, data)


def _text(value: Any, column: str, data: dict[str, Any]) -> list[Message]:
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    return _conversation(value, column, data)


def _question(value: Any, column: str, data: dict[str, Any]) -> list[Message]:
    if isinstance(value, list) and all(isinstance(item, list) for item in cast("list[Any]", value)):
        return [message for turn in cast("list[Any]", value) for message in _conversation(turn, column, data)]
    return _text(value, column, data)


def _instruction(value: Any, column: str, data: dict[str, Any]) -> list[Message]:
    more = data.get("input") or ""
    if not isinstance(value, str) or not isinstance(more, str):
        raise BadShape(f"the columns '{column}' and 'input' are not both text: write strings")
    return [{"role": "user", "content": f"{value}\n\n{more}" if more.strip() else value}]


_SHAPES: dict[str, Callable[[Any, str, dict[str, Any]], list[Message]]] = {
    "messages": _conversation,
    "conversations": _conversation,
    "turns": _turns,
    "prompt": _text,
    "question": _question,
    "instruction": _instruction,
}


def _message(item: Any, column: str) -> Message:
    if not isinstance(item, dict):
        raise BadShape(f"the column '{column}' holds something that is no message: write {{'role': …, 'content': …}}")
    message = cast("dict[str, Any]", item)
    name = message.get("role", message.get("from"))
    role = _ROLES.get(name.lower()) if isinstance(name, str) else None
    if role is None:
        raise BadShape(f"the role {name!r:.60} is not known: rename it to system, user, assistant or tool")
    return {"role": role, "content": message.get("content", message.get("value"))}


def _split(messages: list[Message]) -> tuple[tuple[Message, ...], tuple[str, ...]]:
    """Gives what is asked now, and the texts of the user turns after it; an empty system turn is none."""
    messages = [message for message in messages if message["role"] != "system" or not _blank(message["content"])]
    first = next((at for at, message in enumerate(messages) if message["role"] == "user"), None)
    if first is None:
        raise BadShape("no user turn asks anything: add one or remove the row")
    for message in messages[:first]:
        if message["role"] != "system":
            raise BadShape(f"it starts with the {message['role']}: begin it with the user's turn or remove the row")
    asked = tuple({**message, "content": _content(message)} for message in messages[: first + 1])
    return asked, tuple(_content(message) for message in messages[first + 1 :] if message["role"] == "user")


def _blank(content: Any) -> bool:
    return not content or (isinstance(content, str) and not content.strip())


def _content(message: Message) -> str:
    content: Any = message["content"]
    if isinstance(content, list):
        content = "\n".join(_part(part) for part in cast("list[Any]", content))
    if not isinstance(content, str):
        raise BadShape(f"a {message['role']} turn's content is not text: write a string or a list of text parts")
    if _blank(content):
        raise BadShape(f"a {message['role']} turn is empty: fill it or remove the row")
    return content


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    known: dict[str, Any] = cast("dict[str, Any]", part) if isinstance(part, dict) else {}
    kind, text = known.get("type", "text"), known.get("text")
    if kind != "text":
        raise BadShape(f"a content part is of type {kind!r:.60}, and only text can be asked: leave such rows out")
    if not isinstance(text, str):
        raise BadShape("a text part holds no text: write {'type': 'text', 'text': …}")
    return text


def _system(data: dict[str, Any]) -> str | None:
    text = data.get("system") or data.get("system_prompt") or ""
    if not isinstance(text, str):
        raise BadShape("the system column is not text: write a string")
    return text if text.strip() else None


def _tools(data: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    value: Any = next((data[name] for name in ("tools", "functions", "function") if data.get(name)), None)
    if isinstance(value, str):
        try:
            value = decode(value) if value.strip() else None
        except ValueError as error:
            raise BadShape(f"the tools are text but not valid JSON ({error}): write a list of declarations") from error
    if value is None:
        return ()
    return tuple(_tool(item) for item in (cast("list[Any]", value) if isinstance(value, list) else [value]))


def _tool(item: Any) -> dict[str, Any]:
    tool: dict[str, Any] = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
    function: Any = tool.get("function")
    if function is None and "name" in tool:
        function = {key: value for key, value in tool.items() if key != "type"}
        tool = {"type": tool.get("type", "function")}
    if not isinstance(function, dict) or tool.get("type", "function") != "function":
        raise BadShape("a tool is not a function's declaration: write {'type': 'function', 'function': {…}}")
    declared = cast("dict[str, Any]", function)
    name, parameters = declared.get("name"), declared.get("parameters")
    if not isinstance(name, str) or not name:
        raise BadShape("a tool's function has no name: name it")
    if not isinstance(parameters, dict | None):
        raise BadShape(f"the parameters of the tool '{name}' are not a JSON schema: write an object")
    if parameters is not None:
        declared = {**declared, "parameters": _schema(parameters)}
    return {**tool, "type": "function", "function": declared}


def _schema(schema: Any) -> Any:
    """Puts JSON Schema's type names for Python's and Java's, in schemas only: a default or an enum stays as it is."""
    if isinstance(schema, list):
        return [_schema(one) for one in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    fixed: dict[str, Any] = {}
    for key, value in cast("dict[str, Any]", schema).items():
        if key == "type" and value == "any":
            continue  # JSON Schema says "any" by leaving the type out
        if key == "type":
            fixed[key] = _type(value)
        elif key in _SCHEMA_MAPS and isinstance(value, dict):
            fixed[key] = {name: _schema(one) for name, one in cast("dict[str, Any]", value).items()}
        else:
            fixed[key] = _schema(value) if key in _SCHEMAS else value
    return fixed


def _type(value: Any) -> Any:
    if isinstance(value, list):
        return [_type(one) for one in cast("list[Any]", value)]
    return _TYPES.get(value, value) if isinstance(value, str) else value


def _names(columns: dict[str, Any]) -> str:
    return ", ".join(repr(name) for name in list(columns)[:8]) or "none at all"
