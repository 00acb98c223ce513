"""What a cell and a message's content hold: text, or why it is none."""

from __future__ import annotations

import json
from typing import Any, cast

from eyas.errors import EyasError
from eyas.prompts.read import decode

_MEDIA = ("image", "video", "audio", "input_image", "input_video", "input_audio", "input_file", "file")
_PICTURES = ("image", "images")
_MARK = "<image>"


class BadShape(EyasError):
    """A row that is no prompt; the message is a sentence that says why and what to do."""


class Skipped(BadShape):
    """A sound row that asks about something else than text (an image, a sound): to be counted apart from bad rows."""


def blank(content: Any) -> bool:
    """Whether a content says nothing: absent, empty or white space."""
    return not content or (isinstance(content, str) and not content.strip())


def cell(value: Any) -> Any:
    """A list or an object that a cell holds as JSON text, as in CSV; any other value as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return decode(value)
        except ValueError:
            return value
    return value


def text_of(content: Any, role: str) -> str:
    """The text of a turn, as it stands; text parts are joined by line ends.

    Raises:
        BadShape: it is empty or no text.
        Skipped: a part of it is an image or a sound.
    """
    if isinstance(content, list):
        content = "\n".join(_part(part) for part in cast("list[Any]", content))
    if not isinstance(content, str):
        raise BadShape(f"a {role} turn's content is not text: write a string or a list of text parts")
    if blank(content):
        raise BadShape(f"a {role} turn is empty: fill it or remove the row")
    return content


def result_of(content: Any) -> str:
    """The text of what a tool gave: text as it stands, text parts joined, anything else as JSON; it may be empty.

    Raises:
        BadShape: a part has a kind that is not known.
        Skipped: a part of it is an image or a sound.
    """
    if content is None or isinstance(content, str):
        return content or ""
    parts = cast("list[Any]", content) if isinstance(content, list) else []
    if parts and all(isinstance(part, dict) and isinstance(cast("Any", part).get("type"), str) for part in parts):
        return "\n".join(_part(part) for part in parts)
    return dumped(content)


def dumped(value: Any) -> str:
    """JSON with sorted keys and without null fields, the same for every file format that the value was read from."""
    return json.dumps(_filled(value), sort_keys=True, ensure_ascii=False, default=str)


def pictured(row: dict[str, Any], texts: list[str]) -> bool:
    """Whether a row asks about a picture that stands in a column of its own, as LLaVA and ShareGPT4V write it."""
    filled = [row[name] for name in _PICTURES if row.get(name)]
    return any(not isinstance(value, str) or any(_MARK in text for text in texts) for value in filled)


def _filled(value: Any) -> Any:
    """A value without the null fields of its objects: Parquet fills in what is missing."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {name: _filled(each) for name, each in fields.items() if each is not None}
    return [_filled(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    known: dict[str, Any] = cast("dict[str, Any]", part) if isinstance(part, dict) else {}
    # Parquet fills a struct's missing fields with null.
    kind, text = known.get("type") or "text", known.get("text")
    if isinstance(kind, str) and kind.removesuffix("_url") in _MEDIA:
        raise Skipped(f"a content part is of type {kind!r:.60}, and only text can be asked: leave such rows out")
    if kind != "text":
        raise BadShape(f"a content part is of type {kind!r:.60}, and only text can be asked: leave such rows out")
    if not isinstance(text, str):
        raise BadShape("a text part holds no text: write {'type': 'text', 'text': …}")
    return text
