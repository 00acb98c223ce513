"""A response's bytes as server-sent events, or as one whole body where they are none."""

from __future__ import annotations

from collections.abc import Iterator

from eyas.backends.lines import MOST_HELD, Block, Lines

DONE = b"[DONE]"
"""What ends a stream, where one is ended so."""

_FIELDS = (b"event:", b"id:", b"retry:")


class Events:
    """Takes bytes cut anywhere and gives the data of each event; `count` says how many there were."""

    __slots__ = ("_body", "_data", "_lines", "count")

    def __init__(self) -> None:
        self.count = 0
        self._lines = Lines()
        self._data = Block()
        self._body = Block()

    @property
    def between(self) -> bool:
        """Whether the next byte begins an event."""
        return self._lines.empty and not self._data

    @property
    def garbage(self) -> str:
        """What was too long to be taken, a few words; empty if nothing was."""
        if self._lines.overlong or self._data.overlong:
            return f"a line or an event of over {MOST_HELD} bytes"
        return f"a body of over {MOST_HELD} bytes" if self._body.overlong and not self.count else ""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The events that end in these bytes."""
        for line in self._lines.feed(data):
            yield from self._line(line)

    def end(self) -> Iterator[bytes]:
        """No more bytes will come: the event that was begun."""
        rest = self._lines.end()
        if rest:
            yield from self._line(rest)
        yield from self._event()

    def body(self) -> bytes:
        """What came if it was no event; to be asked for once, at the end."""
        body = self._body.take().strip()
        return b"" if self.count else body

    def _line(self, line: bytes) -> Iterator[bytes]:
        if line.startswith(b"data:"):
            self._data.add(line[6:] if line[5:6] == b" " else line[5:])
        elif not line:
            yield from self._event()
            if self._body:
                self._body.add(line)
        elif line[:1] != b":" and not line.startswith(_FIELDS) and not self.count:
            self._body.add(line)

    def _event(self) -> Iterator[bytes]:
        if self._data:
            self.count += 1
            yield self._data.take()
