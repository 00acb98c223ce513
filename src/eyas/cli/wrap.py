"""Text of models and prompts in lines that fit a terminal: counted in cells, for a Chinese character takes two. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_WIDE = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uff60"
_PIECES = re.compile(rf"\s+|[{_WIDE}]|[^\s{_WIDE}]+")
"""What a line may be broken between: words, gaps, and each character of writing that has no gaps."""


def cells(text: str) -> int:
    """Columns that a terminal takes for a text: two for a wide character, none for one that joins the one before it."""
    if text.isascii():
        return len(text)
    return sum(map(_cells, text))


def _cells(sign: str) -> int:
    if unicodedata.category(sign) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


def wrapped(text: str, width: int) -> str:
    """Lines of at most `width` columns (0: as they are); a word that is longer goes on in the next line."""
    if width <= 0:
        return text
    return "\n".join(part for line in text.split("\n") for part in _broken(line, max(2, width)))


def _broken(line: str, width: int) -> Iterator[str]:
    if cells(line) <= width:
        yield line
        return
    made, room = "", width
    for piece in (part for found in _PIECES.findall(line) for part in _cut(found, width)):
        if cells(piece) > room:
            yield made.rstrip()
            made, room = ("", width) if piece.isspace() else (piece, width - cells(piece))
        else:
            made, room = made + piece, room - cells(piece)
    yield made.rstrip()


def _cut(piece: str, width: int) -> Iterator[str]:
    """A piece in parts of at most `width` columns."""
    part, room = "", width
    for sign in piece:
        if _cells(sign) > room:
            yield part
            part, room = "", width
        part, room = part + sign, room - _cells(sign)
    yield part
