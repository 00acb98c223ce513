"""Cells as aligned text, and text of others as one harmless line. Pure."""

from __future__ import annotations


def columns(rows: list[tuple[str, ...]], left: tuple[int, ...] = (0,)) -> list[str]:
    """Rows as aligned text; the columns named in `left` (negative from the end) to the left, the others to the right."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    sides = [str.ljust if i in left or i - len(widths) in left else str.rjust for i in range(len(widths))]
    return [
        "  ".join(side(cell, width) for side, cell, width in zip(sides, row, widths, strict=True)).rstrip()
        for row in rows
    ]


def plain(text: str, most: int) -> str:
    """Text of others as one line that cannot move the cursor or colour the screen."""
    shown = "".join(c if c.isprintable() else " " for c in text)
    return shown if len(shown) <= most else shown[: most - 1] + "…"
