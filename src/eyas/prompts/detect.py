"""What the columns of a set mean, from what stands in its first rows: names help, content decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from eyas.prompts.columns import Columns, Fields, Guess, Reading, describe, listed, with_fields
from eyas.prompts.fields import fields_of, messages_in
from eyas.prompts.glaive import is_script
from eyas.prompts.names import is_answer, is_label
from eyas.prompts.parts import BadShape, Skipped, blank, cell
from eyas.prompts.read import Row
from eyas.prompts.shape import DEFAULT, to_prompt
from eyas.prompts.talk import ASKED, strings, talk_of
from eyas.prompts.tools import declares

SAMPLE = 200
"""Rows that are enough to look at."""

_MESSAGES = ("messages", "conversations", "conversation", "dialog", "dialogue", "turns", "input")
_STRINGS = frozenset((*_MESSAGES, *ASKED, "data", "chat"))
_PROMPT = ("prompt", "question", "instruction", "query", "problem")
_LAST = ("text", "input", "user_prompt", "user", "human")
_INPUT = {"instruction": "input"}
_SYSTEM = ("system", "system_prompt", "system_message")
_TOOLS = ("tools", "functions", "function")

_Cells = Mapping[str, Sequence[Any]]


class _Kind(msgspec.Struct, frozen=True):
    """Columns that seem to hold a prompt, the best first, and how sure each of them is (0..1)."""

    sure: dict[str, float]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.sure)


def detect(sample: Sequence[Mapping[str, Any]]) -> Guess:
    """Guesses what the columns of a set mean.

    A conversation goes before a question's text, a known name before an unknown one; a column whose name is an answer's is
    never the prompt.

    Args:
        sample: the first rows of the set, about `SAMPLE` of them.
    """
    names = tuple(dict.fromkeys(name for row in sample for name in row))
    cells = {name: [row[name] for row in sample if not blank(row.get(name))] for name in names}
    fields = {name: found for name in names if (found := fields_of(cells[name]))}
    tools = _tools(cells)
    talks = _talks({name: cells[name] for name in names if name not in tools and not is_answer(name)}, fields)
    texts = _texts({name: each for name, each in cells.items() if name not in (*tools, *talks.names, *_SYSTEM)})
    # Beside conversations a column of text is often the same conversation, rendered.
    prompts = [name for name in texts.names if name in _PROMPT or not talks.sure]
    system = [name for name in _SYSTEM if name not in names or _mostly(cells[name], map(_is_text, cells[name]))]
    columns = Columns(
        messages=(*talks.names, *(name for name in DEFAULT.columns.messages if name not in names)),
        prompt=(*prompts, *(name for name in _PROMPT if name not in names)),
        input={name: more for name, more in _INPUT.items() if more not in talks.names},
        system=tuple(system),
        tools=(*tools, *(name for name in _TOOLS if name not in names)),
    )
    columns = with_fields(msgspec.structs.replace(columns, seen=_seen(sample, columns)), fields)
    sure = [{**texts.sure, **talks.sure}[name] for name in (*talks.names, *texts.names) if name in columns.seen]
    good = sum(_reads(row, columns) for row in sample)
    confidence = round(min(sure, default=0.0) * good / len(sample), 3) if sample else 0.0
    return Guess(
        columns, confidence, _sentence(columns, confidence, good, len(sample), names), len(sample), names, fields
    )


def _mostly(cells: Sequence[Any], fits: Iterable[bool]) -> bool:
    return bool(cells) and 2 * sum(fits) >= len(cells)


def _talks(cells: _Cells, fields: Mapping[str, Fields]) -> _Kind:
    known = [name for name in (*_MESSAGES, *_PROMPT) if name in cells]
    sure: dict[str, float] = {}
    for name in dict.fromkeys((*known, *sorted(cells, key=lambda each: -len(cells[each])))):
        if certainty := _talk(name, cells[name], fields.get(name)):
            sure[name] = certainty
    return _Kind(sure)


def _talk(name: str, cells: Sequence[Any], fields: Fields | None) -> float:
    """How sure it is that a column holds conversations; 0: it does not."""
    if _mostly(cells, (isinstance(each, str) and is_script(each) for each in cells)):
        return 1.0
    if name in _STRINGS and _mostly(cells, (strings(cell(each)) for each in cells)):
        return 1.0 if name in _MESSAGES else 0.8
    if fields is None or fields.role is None or fields.content is None:
        return 0.0
    if name in _MESSAGES or name in _PROMPT:
        return 1.0 if _mostly(cells, (bool(messages_in(each)) for each in cells)) else 0.0
    columns = Columns(role=(fields.role,), content=(fields.content,))
    return 0.8 if _mostly(cells, (_is_talk(each, name, columns) for each in cells)) else 0.0


def _is_talk(value: Any, name: str, columns: Columns) -> bool:
    try:
        return any(turn.role == "user" for turn in talk_of(value, name, columns).turns)
    except BadShape:
        return False


def _texts(cells: _Cells) -> _Kind:
    texts = {name: [each for each in cells[name] if isinstance(each, str)] for name in cells}
    texts = {name: each for name, each in texts.items() if _mostly(cells[name], (True for _ in each))}
    known = [name for name in _PROMPT if name in texts]
    last = [name for name in _LAST if name in texts]
    if known or last:
        return _Kind(dict.fromkeys(known, 1.0) or {last[0]: 0.7})
    others = [name for name in texts if not is_answer(name) and not is_label(name)]
    longest = sorted(others, key=lambda name: -sum(map(len, texts[name])) / len(texts[name]))
    return _Kind({longest[0]: 0.5 if len(others) == 1 else 0.3} if longest else {})


def _tools(cells: _Cells) -> tuple[str, ...]:
    """Columns of declarations. `tools` and `functions` are such whatever they hold, so that what is wrong is said."""
    found = [name for name in cells if not is_answer(name) and _mostly(cells[name], map(_declared, cells[name]))]
    named = [name for name in _TOOLS if cells.get(name) and (name != "function" or name in found)]
    return tuple(dict.fromkeys((*named, *found)))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _declared(value: Any) -> bool:
    value = cell(value)
    items: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
    return bool(items) and all(declares(item) for item in items)


def _seen(sample: Sequence[Mapping[str, Any]], columns: Columns) -> tuple[str, ...]:
    """The columns that some row of the sample is read from: the first that it fills, of each kind."""
    seen: list[str] = []
    for row in sample:
        filled = [name for name, value in row.items() if not blank(cell(value))]
        for kind in ((*columns.messages, *columns.prompt), columns.system, columns.tools):
            seen += [name for name in kind if name in filled][:1]
        seen += [more for name, more in columns.input.items() if name in seen and more in filled]
    return tuple(dict.fromkeys(seen))


def _reads(row: Mapping[str, Any], columns: Columns) -> bool:
    try:
        to_prompt(Row(dict(row), "", 0), "", Reading(columns))
    except Skipped:
        return True
    except BadShape:
        return False
    return True


def _sentence(columns: Columns, confidence: float, good: int, rows: int, names: Sequence[str]) -> str:
    if not confidence:
        return f'no column seems to hold a prompt (there is {listed(names)}): map one, such as map = {{ prompt = "…" }}'
    word = "certain" if confidence >= 0.95 else "likely" if confidence >= 0.6 else "a guess, map it if it is wrong"
    return f"{describe(columns)}: {word} ({good} of {rows} row{'' if rows == 1 else 's'})"
