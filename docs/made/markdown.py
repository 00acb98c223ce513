"""Texts of the code as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_CODE = re.compile(r"(`[^`]*`)")


def code(text: str) -> str:
    """A span of code, in a table or out of it."""
    return f"`{text}`"


def prose(text: str) -> str:
    """A text whose words mean themselves: outside of spans of code nothing is a tag or emphasis."""
    parts = _CODE.split(text)
    return "".join(part if part.startswith("`") else re.sub(r"([<*_\[\]])", r"\\\1", part) for part in parts)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are Markdown without line breaks."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
