"""What the pages of a Parquet row group will unfold to, read from their headers before any is unpacked.

The footer may claim anything; a page's own header is what the unpacker trusts. Both are Thrift structs in the compact
protocol: https://github.com/apache/parquet-format (`parquet.thrift`, FileMetaData and PageHeader), and `thrift-compact-protocol.md` of
apache/thrift.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import msgspec

from eyas.prompts.source.row import BrokenSource

_TYPE, _UNPACKED, _PACKED = 1, 2, 3
_DATA, _DICTIONARY, _DATA_2 = 5, 7, 8
_VALUES = 1
_WINDOWS = (1 << 8, 1 << 14, 1 << 20)
_DEEPEST = 12
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 12
_INTEGERS = (4, 5, 6)
_GROUPS, _COLUMNS, _ROWS, _CHUNK = 4, 1, 3, 3
_SIZE, _DATA_START, _DICTIONARY_START = 7, 9, 11

Wanted = dict[int, "Wanted"]
"""The lists of a struct that are kept, by field, and of what is in them the same; all others are passed over."""

_FOOTER: Wanted = {_GROUPS: {_COLUMNS: {}}}

VALUE = 8
"""Bytes that a value takes at least once it is unpacked: a run of a million equal ones takes three in the file."""


_DAMAGED = "the {} is damaged: fetch or write the file again"


class Group(msgspec.Struct, frozen=True):
    """A row group: its rows, and where the pages of each column start and end."""

    rows: int
    columns: tuple[tuple[int, int], ...]


class Load(msgspec.Struct, frozen=True):
    """A row group: bytes packed and unpacked, bytes of the largest pages of its columns together, and of its longest value."""

    packed: int
    unpacked: int
    pages: int
    value: int


def groups(file: BinaryIO) -> list[Group]:
    """Reads the row groups from the footer of a Parquet file; pyarrow's own way to them ends the process if it is damaged.

    Raises:
        BrokenSource: it is damaged.
    """
    size = file.seek(0, 2)
    file.seek(max(0, size - 8))
    length = int.from_bytes(file.read(4), "little")
    if length > size - 12 or file.read(4) != b"PAR1":
        raise BrokenSource(_DAMAGED.format("end of its Parquet data"))
    file.seek(size - 8 - length)
    try:
        footer = _Compact(file.read(length)).struct(_FOOTER)
        return [_group(group) for group in footer[_GROUPS]]
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        raise BrokenSource(_DAMAGED.format("footer of its Parquet data")) from error


def _group(group: dict[int, Any]) -> Group:
    columns: list[tuple[int, int]] = []
    for column in group[_COLUMNS]:
        chunk = column[_CHUNK]
        start = min(at for at in (chunk.get(_DICTIONARY_START), chunk[_DATA_START]) if at)
        columns.append((start, start + chunk[_SIZE]))
    return Group(group[_ROWS] + 0, tuple(columns))


def load(file: BinaryIO, group: Group) -> Load:
    """Reads the headers of a row group's pages.

    Raises:
        BrokenSource: a header is damaged.
    """
    packed = unpacked = pages = longest = 0
    for start, end in group.columns:
        largest: dict[bool, int] = {}
        for page in _pages(file, start, end):
            counted = max(page[_UNPACKED], page[_VALUES] * VALUE)
            packed += page[_PACKED]
            unpacked += counted
            dictionary = page[_TYPE] == _DICTIONARY
            largest[dictionary] = max(largest.get(dictionary, 0), page[_UNPACKED])
            if not dictionary:
                longest = max(longest, page[_UNPACKED] // max(1, page[_VALUES]))
        pages += sum(largest.values())
    return Load(packed, unpacked, pages, longest)


def _pages(file: BinaryIO, at: int, end: int) -> Iterator[dict[int, int]]:
    while at < end:
        header, size = _header(file, at)
        try:
            page = _page(header)
        except (LookupError, TypeError) as error:
            raise BrokenSource(_DAMAGED.format(f"page at byte {at:,}")) from error
        if min(page.values()) < 0:
            raise BrokenSource(_DAMAGED.format(f"page at byte {at:,}"))
        yield page
        at += size + page[_PACKED]


def _page(header: dict[int, Any]) -> dict[int, int]:
    kind = next((kind for kind in (_DATA, _DATA_2, _DICTIONARY) if kind in header), 0)
    count = header[kind][_VALUES] if kind else 0
    return {_TYPE: kind, _UNPACKED: header[_UNPACKED], _PACKED: header[_PACKED], _VALUES: count}


def _header(file: BinaryIO, at: int) -> tuple[dict[int, Any], int]:
    """A page's header and its length in bytes; most take less than 100, one with statistics may take more."""
    for window in _WINDOWS:
        file.seek(at)
        compact = _Compact(file.read(window))
        try:
            return compact.struct({}), compact.at
        except (IndexError, ValueError, TypeError):
            continue
    raise BrokenSource(_DAMAGED.format(f"page at byte {at:,}"))


class _Compact:
    """Reads Thrift's compact protocol; IndexError where the bytes end."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self.at = 0

    def struct(self, wanted: Wanted, depth: int = 0) -> dict[int, Any]:
        if depth > _DEEPEST:
            raise ValueError("deeper than any header")
        fields: dict[int, Any] = {}
        field = 0
        while (byte := self._byte()) & 15 != _STOP:
            field = field + (byte >> 4) if byte >> 4 else self._integer()
            value = self._value(byte & 15, wanted.get(field), depth)
            if value is not None:
                fields[field] = value
        return fields

    def _value(self, kind: int, wanted: Wanted | None, depth: int) -> Any:
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind in _INTEGERS:
            return self._integer()
        if kind == _STRUCT:
            return self.struct(wanted or {}, depth + 1)
        if kind in (_LIST, _SET):
            return self._list(wanted, depth)
        sizes = {_BYTE: 1, _DOUBLE: 8}
        self._skip(sizes[kind] if kind in sizes else self._varint() if kind == _BINARY else -1)
        return None

    def _list(self, wanted: Wanted | None, depth: int) -> list[Any] | None:
        byte = self._byte()
        kind, count = byte & 15, byte >> 4
        count = self._varint() if count == 15 else count
        if count > len(self._raw):
            raise IndexError("longer than what is left")
        kept: list[Any] = []
        for _ in range(count):
            value = self._skip(1) if kind in (_TRUE, _FALSE) else self._value(kind, wanted, depth + 1)
            if wanted is not None:
                kept.append(value)
        return None if wanted is None else kept

    def _skip(self, size: int) -> None:
        if size < 0:
            raise ValueError("a type that no page header has")
        self.at += size
        if self.at > len(self._raw):
            raise IndexError("longer than what is left")

    def _integer(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)

    def _varint(self) -> int:
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number
            if shift > 63:
                raise ValueError("no number")

    def _byte(self) -> int:
        byte = self._raw[self.at]
        self.at += 1
        return byte
