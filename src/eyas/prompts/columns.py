"""Which columns of a set's rows mean what: as guessed, as the user maps them, and in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from eyas.config import Turns
from eyas.config.dataset import MapKey
from eyas.errors import UsageError

ROLE = ("role", "from")
CONTENT = ("content", "value")
_SHOWN = 12
_FIELDS: tuple[MapKey, MapKey] = ("role", "content")


class Columns(msgspec.Struct, frozen=True):
    """Names of columns and of message fields by meaning; of several the first that a row fills is used.

    Attributes:
        messages: columns that hold a conversation; they go before `prompt`.
        prompt: columns that hold the text of one question.
        input: a column of `prompt` → the column whose text follows it after a blank line.
        system: columns that hold the text of a system turn.
        tools: columns that hold tool declarations.
        role, content: fields of a conversation's messages.
        seen: those of all these names that the sample has and needs, or that the user maps; the others are known names
            that a later row may have. Empty: nobody has looked.
    """

    messages: tuple[str, ...] = ()
    prompt: tuple[str, ...] = ()
    input: dict[str, str] = {}
    system: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    role: tuple[str, ...] = ROLE
    content: tuple[str, ...] = CONTENT
    seen: tuple[str, ...] = ()


class Fields(msgspec.Struct, frozen=True):
    """The fields of the objects in a column: all their names, and those that look like role and content, if any."""

    names: tuple[str, ...]
    role: str | None = None
    content: str | None = None


class Guess(msgspec.Struct, frozen=True):
    """What the columns of a sample seem to mean.

    Attributes:
        columns: the columns, known names that the sample lacks after those that it has.
        confidence: 0 (no prompt was found) to 1 (known names, and each row of the sample is a prompt).
        sentence: the guess for people.
        rows: rows of the sample.
        names: all its columns, in the order in which they appear.
        fields: for the columns that hold lists of objects, what those have.
    """

    columns: Columns
    confidence: float
    sentence: str
    rows: int
    names: tuple[str, ...]
    fields: dict[str, Fields] = {}


class Reading(msgspec.Struct, frozen=True):
    """How rows are read: what their columns mean, and which turns of a conversation are asked.

    `turns`: "first" asks the first user turn only; "replay" the same, and keeps the later user turns to be asked in turn;
    "last" asks the last user turn or tool result on the history as given. None: "last" for a row with tools or tool
    calls, else "replay".
    """

    columns: Columns
    turns: Turns | None = None


def columns_of(guess: Guess, map: Mapping[MapKey, str]) -> Columns:  # noqa: A002  # the name of the key in RUN.toml
    """The columns as guessed, with those in their place that the user maps; "" says that there is no such column.

    To map `messages` or `prompt` sets aside what was guessed for both.

    Raises:
        UsageError: no row of the sample has a mapped column, or no message a mapped field; or `input` is mapped and no
            prompt column is known.
    """
    sample = "the first row" if guess.rows == 1 else f"the first {guess.rows} rows"
    for key in ("messages", "prompt", "input", "system", "tools"):
        _known(key, map.get(key), guess.names if guess.rows else None, f"column in {sample}")
    columns = guess.columns
    if "messages" in map or "prompt" in map:
        columns = msgspec.structs.replace(columns, messages=(), prompt=())
    seen = (*(name for name in columns.seen if name in guess.names), *(name for name in map.values() if name))
    columns = msgspec.structs.replace(columns, seen=seen)
    taken = {key: (map[key],) if map[key] else () for key in ("messages", "prompt", "system", "tools") if key in map}
    columns = msgspec.structs.replace(columns, **taken)
    if "input" in map:
        if map["input"] and not columns.prompt:
            raise UsageError('map: input is joined to a prompt, and no prompt column is known: map prompt = "…" too')
        joined = dict.fromkeys(columns.prompt, map["input"]) if map["input"] else {}
        columns = msgspec.structs.replace(columns, input=joined)
    return _mapped_fields(columns, guess, map)


def describe(columns: Columns) -> str:
    """The columns in words, such as: messages = 'conversations' (role 'from', content 'value'), tools = 'tools'."""
    said: list[str] = []
    for key in ("messages", "prompt", "input", "system", "tools"):
        names = columns.input.values() if key == "input" else getattr(columns, key)
        if known := _seen(dict.fromkeys(names), columns):
            said.append(f"{key} = {_either(known)}{_fields(columns) if key == 'messages' else ''}")
    return ", ".join(said)


def with_fields(columns: Columns, fields: Mapping[str, Fields]) -> Columns:
    """The columns with the fields that their messages have before the known ones."""
    ours = [fields[name] for name in (*columns.messages, *columns.prompt) if name in fields and name in columns.seen]
    role = dict.fromkeys(each.role for each in ours if each.role)
    content = dict.fromkeys(each.content for each in ours if each.content)
    return msgspec.structs.replace(
        columns,
        role=tuple(dict.fromkeys((*role, *ROLE))),
        content=tuple(dict.fromkeys((*content, *CONTENT))),
        seen=(*columns.seen, *role, *content),
    )


def listed(names: Iterable[Any]) -> str:
    """Names for a message, the first dozen of them."""
    every = [repr(name) for name in names]
    return ", ".join(every[:_SHOWN]) + (", …" if len(every) > _SHOWN else "") or "none at all"


def _fields(columns: Columns) -> str:
    role, content = _seen(columns.role, columns), _seen(columns.content, columns)
    return f" (role {_either(role)}, content {_either(content)})" if role and content else ""


def _seen(names: Iterable[str], columns: Columns) -> list[str]:
    return [name for name in names if name in columns.seen or not columns.seen]


def _mapped_fields(columns: Columns, guess: Guess, map: Mapping[MapKey, str]) -> Columns:  # noqa: A002
    seen = [name for column in columns.messages if column in guess.fields for name in guess.fields[column].names]
    for key in _FIELDS:
        _known(key, map.get(key), seen or None, f"field in the messages of {_either(columns.messages)}")
    taken = {key: (map[key],) for key in _FIELDS if map.get(key)}
    return msgspec.structs.replace(with_fields(columns, guess.fields), **taken)


def _known(key: str, name: str | None, names: Sequence[str] | None, what: str) -> None:
    if name and names is not None and name not in names:
        raise UsageError(
            f"map: {key} = {name!r} is no {what} (there is {listed(dict.fromkeys(names))}): name one of these"
        )


def _either(names: Iterable[str]) -> str:
    return " or ".join(repr(name) for name in names)
