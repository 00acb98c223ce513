"""Lines of styled text for a terminal, each cut to its width. All text is inert: it cannot move the cursor or colour the screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions
from rich.segment import Segment
from rich.style import Style

from eyas.report.columns import plain

_MOST = 400
"""Characters of one piece of text that are looked at."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Text in one style, which rich names (empty: none)."""

    text: str
    style: str = ""


Line = tuple[Piece, ...]


def inert(text: str) -> str:
    """Text of others on one line, without control codes, marks that reorder text, or characters without a width."""
    return "".join(c for c in plain(text, _MOST) if c == " " or cell_len(c) > 0)


def cell(text: str, width: int, *, right: bool = False) -> str:
    """Text of others in exactly so many columns."""
    text = inert(text)
    if width <= 0:
        return ""
    text = set_cell_size(text, width - 1) + "…" if cell_len(text) > width else text
    gap = " " * (width - cell_len(text))
    return gap + text if right else text + gap


@dataclass(frozen=True, slots=True)
class Frame:
    """Lines that rich draws, no wider than `width` columns."""

    lines: tuple[Line, ...]
    width: int

    @classmethod
    def of(cls, lines: Iterable[Line], width: int, height: int) -> Frame:
        """So many lines at most, each cut where the width ends."""
        return cls(tuple(_cut(line, width) for _, line in zip(range(height), lines, strict=False)), width)

    @property
    def text(self) -> str:
        """The same without style."""
        return "\n".join("".join(piece.text for piece in line).rstrip() for line in self.lines)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """The lines, with a break between two."""
        for number, line in enumerate(self.lines):
            if number:
                yield Segment.line()
            for piece in line:
                yield Segment(piece.text, _style(piece.style))


def _cut(line: Line, width: int) -> Line:
    left, kept = width, list[Piece]()
    for piece in line:
        if left <= 0:
            break
        text = piece.text if cell_len(piece.text) <= left else set_cell_size(piece.text, left)
        left -= cell_len(text)
        kept.append(Piece(text, piece.style))
    return tuple(kept)


@lru_cache(maxsize=64)
def _style(name: str) -> Style | None:
    return Style.parse(name) if name else None
