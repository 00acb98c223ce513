"""Turns a row of any known shape into a Prompt, or says why not: nothing that is unclear becomes a question."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

from eyas.prompts.calls import calls_tools
from eyas.prompts.columns import Columns, Reading, listed
from eyas.prompts.glaive import declarations
from eyas.prompts.history import history
from eyas.prompts.parts import BadShape, Skipped, blank, cell, pictured, text_of
from eyas.prompts.read import Row
from eyas.prompts.talk import ASKED, Talk, Turn, strings, talk_of
from eyas.prompts.tools import tools_of
from eyas.types import Message, Prompt, Source

__all__ = ["DEFAULT", "BadShape", "Skipped", "prompt_id", "to_prompt"]

DEFAULT = Reading(
    Columns(
        messages=("messages", "conversations", "turns"),
        prompt=("prompt", "question", "instruction"),
        input={"instruction": "input"},
        system=("system", "system_prompt"),
        tools=("tools", "functions", "function"),
    ),
    "replay",
)
"""How rows are read whose columns nobody has looked at."""


def to_prompt(row: Row, dataset: str, reading: Reading, system: Callable[[str], str | None] | None = None) -> Prompt:
    """Makes the prompt of a row. Columns that the reading does not name are ignored.

    Args:
        row: the row as it was read.
        dataset: the name of its set.
        reading: what its columns mean, and which turns are asked.
        system: the system turn of rows that bring none of their own, by the id that the prompt has without it.

    Raises:
        BadShape: the row is none of the known shapes, or something that cannot be asked as text.
        Skipped: it asks about an image or a sound.
    """
    talk = _talk(row.data, reading.columns)
    own, declared = _system(row.data, reading.columns, talk)
    tools = tools_of([*talk.tools, *declared]) or tools_of(_first(row.data, reading.columns.tools))
    turns = _asked(talk.turns)
    mode = reading.turns or ("last" if tools or any(calls_tools(turn) for turn in turns) else "replay")
    messages, later = (history(_to_last(turns)), ()) if mode == "last" else _to_first(turns, replay=mode == "replay")
    texts = [*(str(message["content"]) for message in messages), *later]
    if pictured(row.data, texts):
        raise Skipped("it asks about an image, and only text can be asked: leave such rows out")
    if messages[0]["role"] != "system":
        text = own or (system(prompt_id(messages, tools)) if system else None)
        if text and not blank(text):
            messages = ({"role": "system", "content": text}, *messages)
    return Prompt(
        id=prompt_id(messages, tools),
        dataset=dataset,
        messages=messages,
        tools=tools,
        turns=later,
        system=_leading(messages),
        source=Source(row.file, row.line),
    )


def prompt_id(messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> str:
    """The identity of a prompt: 16 hex digits of the SHA-256 of its messages and tools as canonical JSON."""
    canonical = json.dumps([messages, tools], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def _talk(data: dict[str, Any], columns: Columns) -> Talk:
    for name in columns.messages:
        if not blank(value := cell(data.get(name))):
            return talk_of(value, name, columns)
    for name in columns.prompt:
        if value := data.get(name):
            return _question(value, name, data, columns)
    known = (*columns.messages, *columns.prompt)
    if empty := [name for name in known if name in data]:
        raise BadShape(f"the column '{empty[0]}' is empty: fill it or remove the row")
    remedy = f"name it one of {listed(known)}, or map it" if known else 'map one, such as map = { prompt = "…" }'
    raise BadShape(f"no column holds a prompt (there is {listed(data)}): {remedy}")


def _question(value: Any, name: str, data: dict[str, Any], columns: Columns) -> Talk:
    joined = columns.input.get(name)
    if joined is not None:
        more = data.get(joined) or ""
        if not isinstance(value, str) or not isinstance(more, str):
            raise BadShape(f"the columns '{name}' and '{joined}' are not both text: write strings")
        return Talk([Turn("user", f"{value}\n\n{more}" if more.strip() else value)])
    if not isinstance(value, str):
        if name not in ASKED and strings(value):
            raise BadShape(f"the column '{name}' holds a list of strings: map it to messages if they are turns")
        return talk_of(value, name, columns)
    return _messages_as_text(value, name, columns) or Talk([Turn("user", value)])


def _messages_as_text(text: str, name: str, columns: Columns) -> Talk | None:
    """The conversation that a text spells in JSON; None for any other text, since a question may be JSON by itself."""
    found = cell(text)
    if not isinstance(found, list) or strings(found):
        return None
    try:
        talk = talk_of(found, name, columns)
    except BadShape:
        return None
    return talk if talk.turns else None


def _asked(turns: Sequence[Turn]) -> list[Turn]:
    """The turns without empty system turns; the first that is no system turn is the user's."""
    kept = [turn for turn in turns if turn.role != "system" or not blank(turn.content)]
    if not any(turn.role == "user" for turn in kept):
        raise BadShape("no user turn asks anything: add one or remove the row")
    first = next(turn for turn in kept if turn.role != "system")
    if first.role != "user":
        raise BadShape(f"it starts with the {first.role}: begin it with the user's turn or remove the row")
    return kept


def _to_first(turns: list[Turn], *, replay: bool) -> tuple[tuple[Message, ...], tuple[str, ...]]:
    """What is asked now, and the texts of the user turns after it."""
    first = next(at for at, turn in enumerate(turns) if turn.role == "user")
    later = [turn for turn in turns[first + 1 :] if turn.role == "user"] if replay else []
    asked = tuple({"role": turn.role, "content": text_of(turn.content, turn.role)} for turn in turns[: first + 1])
    return asked, tuple(text_of(turn.content, "user") for turn in later)


def _to_last(turns: list[Turn]) -> list[Turn]:
    """The turns up to the last that the assistant has to answer."""
    last = max(at for at, turn in enumerate(turns) if turn.role in ("user", "tool"))
    return turns[: last + 1]


def _system(data: dict[str, Any], columns: Columns, talk: Talk) -> tuple[str | None, list[Any]]:
    """The text of the system column, and the functions declared in it where the conversation is one text."""
    text = _first(data, columns.system) or ""
    if not isinstance(text, str):
        raise BadShape("the system column is not text: write a string")
    said, declared = declarations(text) if talk.script else (text, [])
    return (said if said.strip() else None), declared


def _first(data: dict[str, Any], names: Sequence[str]) -> Any:
    return next((data[name] for name in names if data.get(name)), None)


def _leading(messages: Sequence[Message]) -> str | None:
    """The text of the system turns before the first user turn."""
    first = next(at for at, message in enumerate(messages) if message["role"] == "user")
    return "\n\n".join(message["content"] for message in messages[:first]) or None
