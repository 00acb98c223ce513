"""The table that a session of these tests prints at its end."""

from __future__ import annotations

HEAD = (
    "| route | label | answers | tokens | answers differing | tokens differing |",
    "|---|---|---|---|---|---|",
)


class Table:
    """Lines of markdown, in the order in which they came."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(self, lines: list[str]) -> None:
        """Put lines at its end."""
        self._lines += lines

    @property
    def markdown(self) -> str:
        """The whole table; empty without a line."""
        return "\n".join((*HEAD, *self._lines)) if self._lines else ""
