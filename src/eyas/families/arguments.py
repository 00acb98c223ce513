"""Tool arguments as an API gives them (JSON) in the pieces that tagged syntaxes are made of, cut ones included (pure)."""

from __future__ import annotations

import json
import re

import msgspec

_STRING = re.compile(r'"((?:[^"\\]|\\.)*)(\\?"?)', re.DOTALL)
_SPACE = re.compile(r"[\s,]*")
_COLON = re.compile(r"\s*:?\s*")
_WORD = re.compile(r"[^\s,}]*")
_HIGH = re.compile("[\ud800-\udbff]$")
_RAW = json.JSONDecoder()


class Pair(msgspec.Struct, frozen=True):
    """One argument.

    Attributes:
        key: its name.
        value: a string's text, or another value's JSON as it came; None: cut before it.
        string: whether the value is a string.
    """

    key: str
    value: str | None = None
    string: bool = False


def pairs(text: str, whole: bool) -> tuple[Pair, ...] | None:
    """The arguments of a JSON object in order, values as they came; None if the text is no such object.

    Args:
        text: the arguments.
        whole: whether the call ended; if not, the object may be cut anywhere.
    """
    if not text.strip():
        return ()
    if whole and not _is_object(text):
        return None
    start = text.find("{")
    if text[:start].strip() or start < 0:
        return None
    found: list[Pair] = []
    at = _skip(text, start + 1)
    while at < len(text) and text[at] != "}":
        if text[at] != '"':
            return None
        key, at, closed = _string(text, at)
        at = _COLON.match(text, at).end()  # pyright: ignore[reportOptionalMemberAccess]  # it matches the empty text
        if not closed or at >= len(text):
            return (*found, Pair(key))
        if text[at] == '"':
            value, at, _ = _string(text, at)
            found.append(Pair(key, value, string=True))
        else:
            end = _raw_end(text, at)
            found.append(Pair(key, text[at:end]))
            at = end
        at = _skip(text, at)
    return tuple(found)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text, strict=False), dict)
    except ValueError:
        return False


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _string(text: str, at: int) -> tuple[str, int, bool]:
    """The text of the JSON string at a place, where it ends, and whether it is closed; a cut escape is left out."""
    match = _STRING.match(text, at)
    if match is None:
        return "", len(text), False
    body, closed = match[1], match[2] == '"'
    try:
        value: str = json.loads(f'"{body}"', strict=False)
    except ValueError:
        value = json.loads(f'"{body[: body.rindex(chr(92))]}"', strict=False)
    return value if closed else _HIGH.sub("", value), match.end(), closed


def _raw_end(text: str, at: int) -> int:
    """Where a value that is no string ends; a cut number must not be taken for a whole one before its end."""
    if text[at] not in "{[":
        match = _WORD.match(text, at)
        return match.end() if match else at
    try:
        return _RAW.raw_decode(text, at)[1]
    except ValueError:
        return len(text)
