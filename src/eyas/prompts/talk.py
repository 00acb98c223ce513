"""A conversation in any of the forms that data sets write, as turns whose speakers are known."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from eyas.prompts.columns import Columns
from eyas.prompts.glaive import is_script, script
from eyas.prompts.parts import BadShape, cell

ROLES = {
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("user", "human", "prompter"), "user"),
    **dict.fromkeys(("assistant", "gpt", "chatgpt", "bing", "bard", "model", "ai", "bot", "chatbot"), "assistant"),
    **dict.fromkeys(("function_call", "tool_call", "tool_calls"), "assistant"),
    **dict.fromkeys(("tool", "function", "observation", "ipython"), "tool"),
    **dict.fromkeys(("tool_response", "tool_result", "function_response", "function_result"), "tool"),
}
"""The names that sets give to the speakers. A name that is not here is refused: it might be a target or might not."""

CALLS = ("function_call", "tool_call", "tool_calls")
"""Speakers whose content is the assistant's call."""

ASKED = ("turns", "user_turns", "user_messages", "questions", "prompts", "queries")
"""Columns whose lists of strings are the user's turns alone; in other columns the user and the assistant alternate."""


class Turn(msgspec.Struct, frozen=True):
    """A turn: its role as the API names it, its content as it stands, its name for the speaker, and all its fields."""

    role: str
    content: Any
    speaker: str = ""
    item: dict[str, Any] = {}


class Talk(msgspec.Struct, frozen=True):
    """A conversation, and the functions declared in its text; `script` if it was written as one text."""

    turns: list[Turn]
    tools: list[Any] = []
    script: bool = False


def speaker(name: Any) -> str | None:
    """A speaker's name as `ROLES` has it, whatever its case and the mark between its words; None for no text."""
    return name.strip().lower().replace(" ", "_").replace("-", "_") if isinstance(name, str) else None


def talk_of(value: Any, column: str, columns: Columns) -> Talk:
    """Reads a conversation: a list of messages, of strings or of lists, an object of lists, JSON of these, or one text.

    Raises:
        BadShape: it is none of these, or a speaker is not known.
    """
    value = cell(value)
    if isinstance(value, str) and is_script(value):
        messages, tools = script(value)
        return Talk([Turn(each["role"], each["content"], item=each) for each in messages], tools, script=True)
    if isinstance(value, dict):
        value = unzipped(cast("dict[str, Any]", value))
    if not isinstance(value, list):
        raise BadShape(f"the column '{column}' has no known shape: write [{{'role': 'user', 'content': …}}, …]")
    items = cast("list[Any]", value)
    if strings(items):
        return Talk(_strings(items, column))
    if all(isinstance(item, list) for item in items):
        items = [item for turn in cast("list[list[Any]]", items) for item in turn]
    return Talk([_turn(item, column, columns) for item in items])


def strings(value: Any) -> bool:
    """Whether a value is a list of strings, and not empty."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return bool(items) and all(isinstance(item, str) for item in items)


def unzipped(value: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The objects of an object of equally long lists, as the hub writes a `Sequence` of objects; None if it is none."""
    lists = {name: cast("list[Any]", each) for name, each in value.items() if isinstance(each, list)}
    counts = {len(each) for each in lists.values()}
    if len(lists) < 2 or len(lists) != len(value) or len(counts) != 1:
        return None
    return [{name: each[at] for name, each in lists.items()} for at in range(counts.pop())]


def first_of(item: dict[str, Any], names: tuple[str, ...]) -> Any:
    """The first of these fields that is there; a null is none, since Parquet fills missing fields with it."""
    return next((item[name] for name in names if item.get(name) is not None), None)


def _strings(texts: list[Any], column: str) -> list[Turn]:
    if column in ASKED:
        return [Turn("user", text) for text in texts]
    return [Turn("assistant" if at % 2 else "user", text) for at, text in enumerate(texts)]


def _turn(item: Any, column: str, columns: Columns) -> Turn:
    if not isinstance(item, dict):
        raise BadShape(f"the column '{column}' holds something that is no message: write {{'role': …, 'content': …}}")
    fields = cast("dict[str, Any]", item)
    name = first_of(fields, columns.role)
    said = speaker(name)
    role = ROLES.get(said) if said else None
    if role is None:
        remedy = f"rename it to system, user, assistant or tool, or map the field of the roles ({', '.join(fields)})"
        raise BadShape(f"the role {name!r:.60} is not known: {remedy[:200]}")
    return Turn(role, first_of(fields, columns.content), said or "", fields)
