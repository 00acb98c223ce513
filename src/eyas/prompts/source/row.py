"""A row as it was read, and the limits that hold for every row, whatever its file claims of itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import msgspec

MAX_DEPTH = 100
"""Levels of nesting that a row may have: far below the recursion limit of whatever encodes it later."""

MAX_ROW = 16 << 20
"""Bytes of text that a row may have: about four million tokens, more than any model reads."""

MAX_NODES = 1_000_000
"""Lists and objects that a row may have: three bytes of text make one, and it takes some eighty bytes of memory."""

TEXT_PREFIX = 200
"""Characters of a bad row that are kept to recognise it by."""

TOO_LONG = f"it is longer than {MAX_ROW >> 20} MiB: split it or remove it"
TOO_DEEP = f"it nests deeper than {MAX_DEPTH} levels"
NOT_UTF8 = "it is not text in UTF-8: save the file as UTF-8, or correct this row or remove it"

_DECODER = msgspec.json.Decoder()


class Row(msgspec.Struct, frozen=True):
    """A row as it stands in its file.

    `line` is 1-based; in a JSON array and in columns it is the row's number, in CSV the line where its record starts.
    """

    data: dict[str, Any]
    file: str
    line: int


class BadRow(msgspec.Struct, frozen=True):
    """A row that cannot be used, why and what to do about it, and the first characters of its text."""

    file: str
    line: int
    reason: str
    text: str


Rows = Iterator[Row | BadRow]


class BrokenSource(Exception):
    """The bytes of a source end, change or unfold where they must not; the message is the reason and the remedy."""


def decode(raw: bytes | str) -> Any:
    """Decodes strict JSON: no NaN or Infinity, no lone surrogates, at most `MAX_DEPTH` levels.

    Raises:
        ValueError: the text is not that; the message says where.
    """
    most = _brackets(raw)
    if most > MAX_NODES:
        raise ValueError(f"it holds more than {MAX_NODES:,} lists and objects")
    try:
        value = _DECODER.decode(raw)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    if most > MAX_DEPTH and too_deep(value):
        raise ValueError(TOO_DEEP)
    return value


def json_row(raw: bytes, file: str, line: int) -> Row | BadRow:
    """The row that a JSON object is, or why it is none."""
    try:
        data = decode(raw)
    except ValueError as error:
        reason = f"it is not valid JSON in UTF-8 ({error}): correct this row or remove it"
    else:
        if type(data) is dict:
            return Row(cast("dict[str, Any]", data), file, line)
        reason = "it is valid JSON but not an object: write one object with named columns a row"
    return BadRow(file, line, reason, prefix(raw))


def prefix(raw: bytes) -> str:
    """The first `TEXT_PREFIX` characters of a row's bytes."""
    return raw[: 4 * TEXT_PREFIX].decode(errors="replace")[:TEXT_PREFIX]


def too_deep(value: Any) -> bool:
    """Whether lists and objects stand in each other more than `MAX_DEPTH` times."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        deeper: list[Any] = []
        for node in level:
            children = cast("dict[str, Any]", node).values() if type(node) is dict else node
            deeper += [child for child in children if type(child) is dict or type(child) is list]
        if not deeper:
            return False
        level = deeper
    return True


def _brackets(raw: bytes | str) -> int:
    """The most lists and objects that a text can hold: cheaper than to walk them, and nearly always enough to know."""
    return raw.count(b"[") + raw.count(b"{") if isinstance(raw, bytes) else raw.count("[") + raw.count("{")
