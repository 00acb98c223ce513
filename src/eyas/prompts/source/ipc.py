"""What the record batches of an Arrow IPC file will unfold to, read from their headers before any is unpacked.

The framing and the FlatBuffers tables are those of https://arrow.apache.org/docs/format/Columnar.html (encapsulated
message format) and `format/Message.fbs` of apache/arrow.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import msgspec

from eyas.prompts.source.row import BrokenSource

_CONTINUATION = 0xFFFFFFFF
_HEADER_TYPE, _HEADER, _BODY = 1, 2, 3
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_DATA = 1
_BUFFERS, _COMPRESSION = 2, 3


class Load(msgspec.Struct, frozen=True):
    """A batch whose buffers are packed: bytes packed and unpacked, and whether it stays in memory, as a dictionary does."""

    packed: int
    unpacked: int
    stays: bool


def loads(raw: Any, at: int) -> Iterator[Load]:
    """Reads the headers of the batches of a stream, up to its end or to where it breaks off.

    Args:
        raw: the file's bytes, in a mapping.
        at: where the stream starts.

    Raises:
        BrokenSource: a header is damaged.
    """
    try:
        while at + 8 <= len(raw):
            mark, size = struct.unpack_from("<II", raw, at)
            start = at + 8
            if mark != _CONTINUATION:  # as it was before Arrow 0.15
                size, start = mark, at + 4
            if not size or start + size > len(raw):
                return
            message = _Table(raw, start, start + size)
            body = start + size
            length = message.number("q", _BODY)
            kind = message.number("B", _HEADER_TYPE)
            if kind in (_RECORD_BATCH, _DICTIONARY_BATCH):
                batch = message.table(_HEADER)
                batch = batch.table(_DATA) if kind == _DICTIONARY_BATCH else batch
                yield Load(length, _unpacked(raw, body, batch), kind == _DICTIONARY_BATCH)
            at = body + max(0, length)
    except (struct.error, ValueError) as error:
        raise BrokenSource(f"the message at byte {at:,} is damaged ({error}): fetch or write the file again") from error


def _unpacked(raw: Any, body: int, batch: _Table) -> int:
    """Bytes of a batch's buffers once unpacked: each packed one begins with that number, or with -1 if it is not packed."""
    if not batch.has(_COMPRESSION):
        return 0
    total = 0
    for offset, length in batch.structs("qq", _BUFFERS):
        if length >= 8 and offset >= 0 and body + offset + 8 <= len(raw):
            total += max(0, struct.unpack_from("<q", raw, body + offset)[0])
    return total


class _Table:
    """A FlatBuffers table; it raises struct.error or ValueError where it points outside of its message."""

    def __init__(self, raw: Any, start: int, end: int, *, root: bool = True) -> None:
        self._raw, self._end = raw, end
        self._at = start + self._read("I", start) if root else start
        self._fields = self._at - self._read("i", self._at)
        self._size = self._read("H", self._fields)

    def has(self, field: int) -> bool:
        return self._place(field) != 0

    def number(self, form: str, field: int) -> int:
        place = self._place(field)
        return self._read(form, place) if place else 0

    def table(self, field: int) -> _Table:
        return _Table(self._raw, self._target(field), self._end, root=False)

    def structs(self, form: str, field: int) -> Iterator[tuple[int, ...]]:
        if not self.has(field):
            return
        place = self._target(field)
        count, size = self._read("I", place), struct.calcsize(f"<{form}")
        if place + 4 + count * size > self._end:
            raise ValueError("a vector longer than its message")
        for number in range(count):
            yield struct.unpack_from(f"<{form}", self._raw, place + 4 + number * size)

    def _target(self, field: int) -> int:
        place = self._place(field)
        if not place:
            raise ValueError("a part is missing")
        return place + self._read("I", place)

    def _place(self, field: int) -> int:
        at = 4 + 2 * field
        offset = self._read("H", self._fields + at) if at + 2 <= self._size else 0
        return self._at + offset if offset else 0

    def _read(self, form: str, at: int) -> int:
        if not 0 <= at <= self._end - struct.calcsize(f"<{form}"):
            raise ValueError("it points outside of itself")
        return struct.unpack_from(f"<{form}", self._raw, at)[0]
