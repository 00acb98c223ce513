"""JSON Lines: one object a line."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from eyas.prompts.source.row import MAX_ROW, TEXT_PREFIX, TOO_LONG, BadRow, Rows, json_row, prefix

BLANK = b" \t\r\n"


class LongLine(msgspec.Struct, frozen=True):
    """A line of more than `MAX_ROW` bytes: its start, and how many double quotes it holds in all."""

    start: bytes
    quotes: int


def json_lines(chunks: Iterator[bytes], file: str) -> Rows:
    """The rows of JSON Lines; `line` is the line in the file, blank lines are passed over."""
    for number, line in enumerate(split(chunks), 1):
        if isinstance(line, LongLine):
            yield BadRow(file, number, TOO_LONG, prefix(line.start))
        elif stripped := line.strip(BLANK):
            yield json_row(stripped, file, number)


def split(chunks: Iterator[bytes]) -> Iterator[bytes | LongLine]:
    """Gives the lines without their newlines; of one that is too long only its start is held on to."""
    line = _Line()
    for chunk in chunks:
        first, *others = chunk.split(b"\n")
        line.add(first)
        if others:
            yield line.whole()
            yield from others[:-1]  # within one chunk, which is far below MAX_ROW
            line = _Line()
            line.add(others[-1])
    yield line.whole()


class _Line:
    """A line that comes in pieces."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._start = b""
        self._size = self._quotes = 0

    def add(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size > MAX_ROW:
            self._quotes += sum(each.count(b'"') for each in self._pieces)
            self._start = self._start or b"".join(self._pieces)[: 4 * TEXT_PREFIX]
            self._pieces = []

    def whole(self) -> bytes | LongLine:
        return LongLine(self._start, self._quotes) if self._size > MAX_ROW else b"".join(self._pieces)
