"""Reads any source as a stream of rows: a bad row is named and passed over, a bad file stops the reading.

The format is told from the content (`source/formats.py`), since suffixes lie. A further format of text is a reader and its
line in `_text`; one of columns has its reader in `source/columnar.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path

from eyas.errors import UsageError
from eyas.prompts.source.arrays import elements, holder
from eyas.prompts.source.columnar import columnar_rows
from eyas.prompts.source.files import SourceFile, source_files
from eyas.prompts.source.formats import BOM, HEAD, Text, columnar, foreign, tell
from eyas.prompts.source.hub import SCHEME, hub_rows
from eyas.prompts.source.lines import BLANK, json_lines
from eyas.prompts.source.opened import Opened, first, within
from eyas.prompts.source.row import (
    MAX_DEPTH,
    MAX_ROW,
    TEXT_PREFIX,
    TOO_LONG,
    BadRow,
    BrokenSource,
    Row,
    Rows,
    decode,
    json_row,
    prefix,
)
from eyas.prompts.source.tables import table
from eyas.prompts.source.unpack import Packing, packing_of, unpacked

__all__ = ["MAX_DEPTH", "MAX_ROW", "TEXT_PREFIX", "BadRow", "Row", "decode", "rows"]


def rows(source: str | Path, base: Path) -> Rows:
    """Reads a source in memory bounded by its longest row.

    Args:
        source: as the user named it: a file, a folder, a pattern, `-` for standard input, or `hub:org/name@revision:split`.
            A file is JSON Lines, JSON, CSV, Parquet or Arrow; one of text may be packed by gzip, Zstandard, xz or bzip2.
        base: the folder that a relative `source` starts from.

    Raises:
        UsageError: there is no such source, nothing in it can be read, or it breaks off; rows that were read before it
            broke have been given.
    """
    named = str(source)
    count = 0
    parts = iter([(named, hub_rows(named))]) if named.startswith(SCHEME) else _parts(source_files(named, base))
    for name, part in parts:
        for row in _counted(part, name):
            count += 1
            yield row
    if not count:
        raise UsageError(f"{source}: holds no rows: write one JSON object a line, or take the set out of the run")


def _parts(files: list[SourceFile]) -> Iterator[tuple[str, Rows]]:
    for file in files:
        yield file.name, _file(file)


def _counted(part: Rows, name: str) -> Rows:
    """The rows of a file; an error says how many of its rows were read."""
    count = 0
    try:
        for row in part:
            count += 1
            yield row
    except OSError as error:
        raise UsageError(f"{name}: cannot be read on ({error}): copy it to a sound disk") from error
    except BrokenSource as error:
        raise UsageError(f"{name}: {error} ({count} rows were read before that)") from error


def _file(source: SourceFile) -> Rows:
    with source.open() as file, closing(Opened(file)) as opened:
        head, _, _ = first(opened.chunks(), 16)
        kind = columnar(head)
        if kind:
            yield from columnar_rows(opened.seekable(), source.name, kind)
        else:
            yield from _text(opened, packing_of(head), source.name)


def _text(opened: Opened, packing: Packing | None, name: str) -> Rows:
    head, rest, whole = first(unpacked(opened.chunks(), packing), HEAD)
    _refuse(head, packing)
    head = head.removeprefix(BOM)
    told = tell(head, name, whole=whole)
    if told.text is Text.OBJECT:
        yield from _object(opened, packing, name)
        return
    opened.forget()
    chunks = chain([head], rest)
    if told.text is Text.TABLE:
        yield from table(chunks, name, told.delimiter)
    elif told.text is Text.ARRAY:
        yield from elements(chunks, name)
    else:
        yield from json_lines(chunks, name)


def _refuse(head: bytes, packing: Packing | None) -> None:
    if reason := foreign(head):
        raise BrokenSource(f"is {reason}")
    if not packing:
        return
    if kind := columnar(head):
        raise BrokenSource(f"is {kind.value} packed by {packing.name}, and columns are read from any place: unpack it")
    if again := packing_of(head):
        raise BrokenSource(f"is packed twice, by {again.name} and {packing.name}: unpack it once")


def _object(opened: Opened, packing: Packing | None, name: str) -> Rows:
    """Rows of a text that starts with an object: those under one of its keys, itself, or lines after all."""
    opened.seekable()
    head, rest, _ = first(_unmarked(opened, packing), HEAD)
    one_line = not head.strip(BLANK).partition(b"\n")[2]
    found = holder(_until_break(chain([head], rest)), one_line=one_line)
    if found.key is not None:
        yield from elements(_unmarked(opened, packing), f"{name}#{found.key}", found.member)
        return
    chunks = _unmarked(opened, packing)
    if one_line:
        yield from json_lines(chunks, name)
    elif found.several:
        raise BrokenSource("holds several JSON values over several lines each: put each on one line (jq -c . FILE)")
    else:
        yield from _whole(chunks, name)


def _whole(chunks: Iterator[bytes], name: str) -> Rows:
    """An object over several lines that is one row; if it is not, its lines are, one by one."""
    raw = b"".join(within(chunks, MAX_ROW + 1))
    if len(raw) > MAX_ROW:
        yield BadRow(name, 1, TOO_LONG, prefix(raw))
        return
    row = json_row(raw, name, 1)
    yield from [row] if isinstance(row, Row) else json_lines(iter([raw]), name)


def _unmarked(opened: Opened, packing: Packing | None) -> Iterator[bytes]:
    """The text from its start, without byte order mark."""
    head, rest, _ = first(unpacked(opened.chunks(), packing), len(BOM))
    return chain([head.removeprefix(BOM)], rest)


def _until_break(chunks: Iterator[bytes]) -> Iterator[bytes]:
    # Who only looks ahead passes over a break: it is told when the rows before it have been given.
    with suppress(BrokenSource):
        yield from chunks
