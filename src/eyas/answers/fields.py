"""Fields of a row, each read as what it must be or refused with a sentence (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from eyas.answers.answer import BadAnswer, Ids
from eyas.prompts import BadShape, Row, to_prompt
from eyas.prompts.columns import Reading
from eyas.prompts.shape import DEFAULT
from eyas.types import Finish, Prompt, Usage

Fields = Mapping[str, Any]

_AS_GIVEN = Reading(DEFAULT.columns, "last")
"""What was asked is read as it stands, with its history: of conversations that are replayed too."""

_FINISH = {
    **dict.fromkeys(("stop", "eos", "eos_token", "stop_sequence", "end_turn"), Finish.STOP),
    **dict.fromkeys(("tool_calls", "tool_use", "function_call"), Finish.TOOL_CALLS),
    **dict.fromkeys(("length", "max_tokens", "max_length"), Finish.LENGTH),
    "content_filter": Finish.CONTENT_FILTER,
}
_PROMPTS = ("messages", "conversations", "prompt", "question", "instruction")


def ids_of(value: Any, name: str) -> Ids | None:
    """A list of token ids, alone or as the only row of a batch; None where there is none.

    Raises:
        BadAnswer: it is something else.
    """
    if value is None:
        return None
    items: list[Any] = cast("list[Any]", value) if isinstance(value, list) else []
    if len(items) == 1 and isinstance(items[0], list):
        items = cast("list[Any]", items[0])
    if not items or any(type(item) is not int or item < 0 for item in items):
        raise BadAnswer(f"{name} is no list of token ids: write whole numbers from 0 on, or remove the row")
    return tuple(items)


def fields_of(value: Any) -> Fields:
    """An object's fields; none where it is no object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    """A list's items; none where it is no list."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def text_of(value: Any) -> str:
    """A text; an empty one where it is something else."""
    return value if isinstance(value, str) else ""


def finish_of(value: Any) -> Finish | None:
    """Why an answer ended: a word, or SGLang's object with a type. None where it broke off, or nothing is said."""
    word = fields_of(value).get("type") if isinstance(value, dict) else value
    return _FINISH.get(word) if isinstance(word, str) else None


def usage_of(value: Fields) -> Usage | None:
    """Counts as OpenAI's `usage` and SGLang's `meta_info` name them; None unless both are there."""
    prompt, completion = value.get("prompt_tokens"), value.get("completion_tokens")
    if type(prompt) is not int or type(completion) is not int or prompt < 0 or completion <= 0:
        return None
    cached = value.get("cached_tokens")
    return Usage(prompt, completion, cached_tokens=cached if type(cached) is int else 0, cost=0)


def asked_in(row: Row, *places: Fields) -> tuple[Prompt | None, str, Ids | None]:
    """What a row asked: its prompt, or a text that is one, and the ids in a completion's `prompt`.

    Args:
        row: the row, for messages about it.
        places: objects that may hold `messages` or a prompt with its tools, the first that does counts.

    Raises:
        BadAnswer: what stands there is no prompt.
    """
    for place in places:
        name = next((name for name in _PROMPTS if place.get(name)), None)
        if name is None:
            continue
        value = place[name]
        if isinstance(value, str):
            return _prompt(row, {**place, "prompt": value}), value, None
        if all(type(item) is int for item in list_of(value)):
            return None, "", ids_of(value, name)
        return _prompt(row, {**place, "messages": value}), "", None
    return None, "", None


def _prompt(row: Row, place: Fields) -> Prompt:
    kept = ("messages",) if "messages" in place and not isinstance(place["messages"], str) else ("prompt",)
    data = {name: place[name] for name in (*kept, "system", "system_prompt", "tools", "functions") if place.get(name)}
    try:
        return to_prompt(Row(data, row.file, row.line), "", _AS_GIVEN)
    except BadShape as error:
        raise BadAnswer(f"what was asked cannot be read: {error}") from None
