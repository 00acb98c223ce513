"""Bytes cut anywhere in, whole lines out: linear in what comes, bounded in what is held."""

from __future__ import annotations

MOST_HELD = 16 * 1024 * 1024
"""Bytes that one line, one event or one whole body may have; above it is garbage."""


class Lines:
    """Splits a stream of bytes at newlines. `overlong` says whether a line was dropped for its length."""

    __slots__ = ("_held", "_size", "_skipping", "overlong")

    def __init__(self) -> None:
        self.overlong = False
        self._held: list[bytes] = []
        self._size = 0
        self._skipping = False

    @property
    def empty(self) -> bool:
        """Whether the next byte begins a line."""
        return not self._held and not self._skipping

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that end in these bytes, without newline and carriage return."""
        first, *rest = data.split(b"\n")
        self._hold(first)
        if not rest:
            return []
        lines = [self._whole(), *rest[:-1]]
        self._skipping = False
        self._hold(rest[-1])
        return [line.rstrip(b"\r") for line in lines]

    def end(self) -> bytes:
        """What stands behind the last newline."""
        return self._whole().rstrip(b"\r")

    def _hold(self, part: bytes) -> None:
        if self._skipping or not part:
            return
        self._held.append(part)
        self._size += len(part)
        if self._size > MOST_HELD:
            self._skipping = self.overlong = True
            self._held, self._size = [], 0

    def _whole(self) -> bytes:
        line = self._held[0] if len(self._held) == 1 else b"".join(self._held)
        self._held, self._size = [], 0
        return line


class Block:
    """Lines that belong together, up to `MOST_HELD` bytes in all; what is more makes it `overlong`, and empty."""

    __slots__ = ("_lines", "_size", "overlong")

    def __init__(self) -> None:
        self.overlong = False
        self._lines: list[bytes] = []
        self._size = 0

    def __bool__(self) -> bool:
        return bool(self._lines)

    def add(self, line: bytes) -> None:
        """One line more."""
        self._size += len(line) + 1
        if self._size > MOST_HELD:
            self.overlong, self._lines = True, []
        else:
            self._lines.append(line)

    def take(self) -> bytes:
        """All lines, joined by newlines; the block is empty then."""
        whole = self._lines[0] if len(self._lines) == 1 else b"\n".join(self._lines)
        self._lines, self._size = [], 0
        return whole
