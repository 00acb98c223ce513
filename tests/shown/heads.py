"""Heads of tables in the output that a page shows: a command must still print them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

_CELLS = re.compile(r"\s{2,}")
_NAME = re.compile(r"[a-z$][a-z$/_A-Z -]*")
LEAST = 3
"""Columns from which on a line of names is taken for a head."""


def heads(output: Iterable[str]) -> list[str]:
    """Lines that name columns, each with single spaces: words without figures, above a line that has some."""
    return [
        " ".join(line.split())
        for line, below in pairwise([*output, ""])
        if _is_head(line.strip()) and re.search(r"\d", below)
    ]


def _is_head(line: str) -> bool:
    cells = _CELLS.split(line)
    return len(cells) >= LEAST and all(_NAME.fullmatch(cell) for cell in cells)


def missing(shown: Iterable[str], printed: str) -> list[str]:
    """Heads that are shown and were not printed."""
    there = {" ".join(line.split()) for line in printed.splitlines()}
    return [head for head in heads(shown) if head not in there]
