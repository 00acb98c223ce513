"""Reads any source as a stream of rows: a bad row is named and passed over, a bad file stops the reading.

The format is told from the content, since suffixes lie: BFCL's `.json` files are JSON Lines. A further format is a reader
and its line in `_READERS`.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, cast

import msgspec

from eyas.errors import UsageError

MAX_DEPTH = 100
"""Levels of nesting that a row may have: far below the recursion limit of whatever encodes it later."""

TEXT_PREFIX = 200
"""Characters of a bad row that are kept to recognise it by."""

_CHUNK = 1 << 20
_HEAD = 1 << 16
_BOM = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"
_BLANK = b" \t\r\n"

_FOREIGN = {
    b"PAR1": "Parquet",
    b"ARROW1": "Arrow",
    b"\x28\xb5\x2f\xfd": "Zstandard",
    b"\xfd7zXZ": "xz",
    b"BZh": "bzip2",
    b"PK\x03\x04": "zip",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_ARRAY_START = re.compile(rb'\[\s*[\[{"\]\-0-9tfn]')
_MARK = re.compile(rb'\\.|["\[\]{},]', re.DOTALL)
_STEP = {b"[": 1, b"{": 1, b"]": -1, b"}": -1, b",": 0}


class Row(msgspec.Struct, frozen=True):
    """A row as it stands in its file. `line` is 1-based; in a JSON array it is the element's number."""

    data: dict[str, Any]
    file: str
    line: int


class BadRow(msgspec.Struct, frozen=True):
    """A row that cannot be used, why and what to do about it, and the first characters of its text."""

    file: str
    line: int
    reason: str
    text: str


class _BrokenError(Exception):
    """The bytes of a file end or change where they must not; the message is the reason."""


def rows(source: str | Path, base: Path) -> Iterator[Row | BadRow]:
    """Reads JSON Lines or a JSON array of objects, plain or gzip, in memory bounded by the longest row.

    Args:
        source: the file, as the user named it; rows carry this name.
        base: the folder that a relative `source` starts from.

    Raises:
        UsageError: the file is missing, unreadable, empty, in another format or breaks off; rows that were read before
            it broke have been given.
    """
    path = base / (Path(source).expanduser() if str(source).startswith("~/") else Path(source))
    count = 0
    with _open(path, source, base) as file:
        try:
            for row in _parse(file, str(source)):
                count += 1
                yield row
        except OSError as error:
            raise UsageError(f"{source}: cannot be read on ({error}): copy it to a sound disk") from error
        except _BrokenError as error:
            raise UsageError(f"{source}: {error} ({count} rows were read before that)") from error
    if not count:
        raise UsageError(f"{source}: holds no rows: write one JSON object a line, or take the set out of the run")


def decode(raw: bytes | str) -> Any:
    """Decodes strict JSON: no NaN or Infinity, no lone surrogates, at most `MAX_DEPTH` levels.

    Raises:
        ValueError: the text is not that; the message says where.
    """
    try:
        value = msgspec.json.decode(raw)
    except RecursionError:
        raise ValueError(f"it nests deeper than {MAX_DEPTH} levels") from None
    if _too_deep(value):
        raise ValueError(f"it nests deeper than {MAX_DEPTH} levels")
    return value


def _open(path: Path, source: str | Path, base: Path) -> io.BufferedReader:
    try:
        return path.open("rb")
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise UsageError(
            f"{source}: cannot be read ({error}): name one JSON or JSON Lines file, absolute or relative to {base}"
        ) from error


def _parse(file: io.BufferedReader, name: str) -> Iterator[Row | BadRow]:
    packed = file.peek(len(_GZIP)).startswith(_GZIP)
    head, chunks = _peek(_chunks(gzip.GzipFile(fileobj=file) if packed else file))
    head = head.removeprefix(_BOM)
    foreign = next((known for magic, known in _FOREIGN.items() if head.startswith(magic)), None)
    if foreign:
        raise _BrokenError(f"is {foreign}, which is not read: convert it to JSON Lines in UTF-8")
    return _READERS[_format(head)](chain([head], chunks), name)


def _row(raw: bytes, file: str, line: int) -> Row | BadRow:
    try:
        data = decode(raw)
    except ValueError as error:
        reason = f"it is not valid JSON in UTF-8 ({error}): correct this row or remove it"
    else:
        if isinstance(data, dict):
            return Row(cast("dict[str, Any]", data), file, line)
        reason = "it is valid JSON but not an object: write one object with named columns a row"
    return BadRow(file, line, reason, raw[: 4 * TEXT_PREFIX].decode(errors="replace")[:TEXT_PREFIX])


def _too_deep(value: Any) -> bool:
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in _children(node) if isinstance(child, dict | list)]
        if not level:
            return False
    return True


def _children(node: Any) -> list[Any]:
    if isinstance(node, dict):
        return list(cast("dict[str, Any]", node).values())
    return cast("list[Any]", node) if isinstance(node, list) else []


def _chunks(stream: io.BufferedReader | gzip.GzipFile) -> Iterator[bytes]:
    try:
        # read1 hands out what precedes a break; read would lose it.
        while chunk := stream.read1(_CHUNK):
            yield chunk
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _BrokenError(
            f"its gzip data break off or are damaged ({error}): fetch or write the file again"
        ) from error


def _peek(chunks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Gives the first `_HEAD` bytes or more, and the rest; a break within the head is raised after the head is used."""
    head = b""
    try:
        while len(head) < _HEAD and (chunk := next(chunks, b"")):
            head += chunk
    except _BrokenError as error:
        return head, _raising(error)
    return head, chunks


def _raising(error: Exception) -> Iterator[bytes]:
    yield b""
    raise error


def _format(head: bytes) -> str:
    head = head.lstrip(_BLANK)
    if not _ARRAY_START.match(head):
        return "lines"
    first, _, more = head.partition(b"\n")
    if not more.strip(_BLANK):
        return "array"
    try:
        decode(first)
    except ValueError:
        return "array"
    return "lines"  # an array whole on its line, with more to come: a bad first row


def _lines(chunks: Iterator[bytes], file: str) -> Iterator[Row | BadRow]:
    for number, line in enumerate(_split(chunks), 1):
        if stripped := line.strip(_BLANK):
            yield _row(stripped, file, number)


def _split(chunks: Iterator[bytes]) -> Iterator[bytes]:
    pieces: list[bytes] = []
    for chunk in chunks:
        first, *others = chunk.split(b"\n")
        pieces.append(first)
        for other in others:
            yield b"".join(pieces)
            pieces = [other]
    yield b"".join(pieces)


def _elements(chunks: Iterator[bytes], file: str) -> Iterator[Row | BadRow]:
    """Cuts a JSON array at its commas before decoding it: memory is bounded, and a bad element spoils only itself."""
    marks = _marks(chunks)
    next(marks)  # the opening bracket, by which the format was told
    depth, number = 1, 0
    element: list[bytes] = []
    while depth:
        text, mark = next(marks)
        if not mark:
            raise _BrokenError(f"breaks off in element {number + 1} of its JSON array: fetch or write the file again")
        element.append(text)
        depth += _STEP[mark]
        if depth > 1 or (depth == 1 and mark != b","):
            element.append(mark)
            continue
        raw, element = b"".join(element).strip(_BLANK), []
        if raw or depth:
            number += 1
            yield _row(raw, file, number)
    if any(mark or text.strip(_BLANK) for text, mark in marks):
        raise _BrokenError("goes on after the end of its JSON array: write one array, or one object a line")


def _marks(chunks: Iterator[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Gives each bracket and comma outside strings, after the bytes since the one before; last what remains and b""."""
    pieces: list[bytes] = []
    quoted = False
    for chunk in _whole_escapes(chunks):
        start = 0
        for found in _MARK.finditer(chunk):
            mark = found[0]
            if mark == b'"':
                quoted = not quoted
            elif not quoted and len(mark) == 1:
                yield b"".join([*pieces, chunk[start : found.start()]]), mark
                pieces, start = [], found.end()
        pieces.append(chunk[start:])
    yield b"".join(pieces), b""


def _whole_escapes(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Moves the cuts between chunks to where no backslash escape straddles one."""
    rest = b""
    for chunk in chunks:
        joined = rest + chunk
        whole = joined.rstrip(b"\\")
        rest = joined[len(whole) :]
        yield whole
    yield rest


_READERS: dict[str, Callable[[Iterator[bytes], str], Iterator[Row | BadRow]]] = {"lines": _lines, "array": _elements}
