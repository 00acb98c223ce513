"""Tells a format from the first bytes of its content, since suffixes lie: BFCL's `.json` files are JSON Lines."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import PurePath

import msgspec

from eyas.prompts.source.arrays import breaks_within
from eyas.prompts.source.lines import BLANK
from eyas.prompts.source.row import decode
from eyas.prompts.source.tables import delimiter_of

HEAD = 1 << 16
"""Bytes that a format is told from; it may be told from more."""

BOM = b"\xef\xbb\xbf"

FOREIGN = {
    b"PK\x03\x04": "a zip archive (or an Excel table), which is not unpacked: unpack it and name the files",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive, which is not unpacked: unpack it and name the files",
    b"\x04\x22\x4d\x18": "packed by lz4, which is not read: unpack it (lz4 -d), or pack it with zstd",
    b"\xff\xfe": "UTF-16, which is not read: save it as UTF-8",
    b"\xfe\xff": "UTF-16, which is not read: save it as UTF-8",
    b"FEA1": "Feather version 1, which is not read: write it again with a current pyarrow",
    b"ORC": "ORC, which is not read: write it as Parquet",
    b"Obj\x01": "Avro, which is not read: write it as Parquet or JSON Lines",
    b"SQLite format 3\0": "an SQLite database, which is not read: write the rows as JSON Lines",
    b"\x89HDF": "HDF5, which is not read: write it as Parquet or JSON Lines",
    b"%PDF": "a PDF, which is not read: write its questions as JSON Lines",
    b"PARE": "encrypted Parquet, which is not read: write it without encryption",
}
_TABLES = (".csv", ".tsv")
_PACKED = (".gz", ".zst", ".zstd", ".xz", ".bz2")
_TEXTS = (".jsonl", ".ndjson", ".json", *_TABLES)
_COLUMNAR = (".parquet", ".arrow", ".feather", ".ipc")
_ARRAY_START = re.compile(rb'\[\s*[\[{"\]\-0-9tfn]')
_MOST_LINES = 50


class Columnar(Enum):
    """A columnar format: binary, and read from any place of its file."""

    PARQUET = "Parquet"
    ARROW_FILE = "Arrow"
    ARROW_STREAM = "Arrow (stream)"


class Text(Enum):
    """A format of text. OBJECT: it starts with a JSON object that is no line of its own; only more of it tells what it is."""

    LINES = "lines"
    ARRAY = "array"
    OBJECT = "object"
    TABLE = "table"


class Told(msgspec.Struct, frozen=True):
    """A format of text, and the delimiter of a table."""

    text: Text
    delimiter: str = ""


def columnar(head: bytes) -> Columnar | None:
    """The columnar format of a file by its first bytes, or None."""
    if head.startswith(b"PAR1"):
        return Columnar.PARQUET
    if head.startswith(b"ARROW1\0\0"):
        return Columnar.ARROW_FILE
    return Columnar.ARROW_STREAM if head.startswith(b"\xff\xff\xff\xff") else None


def foreign(head: bytes) -> str | None:
    """What a file is that is not read, and what to do, by its first bytes; or None."""
    if head[257:262] == b"ustar":
        return "a tar archive, which is not unpacked: unpack it and name its folder"
    return next((text for magic, text in FOREIGN.items() if head.startswith(magic)), None)


def tell(head: bytes, name: str, *, whole: bool) -> Told:
    """The format of text without byte order mark.

    Args:
        head: its first bytes.
        name: the file's name, which is asked only when the content leaves it open.
        whole: whether the head is all.
    """
    text = head.lstrip(BLANK)
    if _ARRAY_START.match(text):
        return Told(_array_or_lines(text))
    if text.startswith(b"{"):
        return Told(_lines_or_object(text))
    if not text.startswith(b"[") and b"\0" not in text and not _has_objects(text):
        table = delimiter_of(head[:HEAD].decode(errors="replace"), whole=whole, named=_suffix(name) in _TABLES)
        if table:
            return Told(Text.TABLE, table)
    return Told(Text.LINES)


def belongs(name: str, head: bytes) -> bool:
    """Whether a file of a folder is one of rows: by its suffix, else by its content."""
    suffix = _suffix(name)
    if suffix in _TEXTS or suffix in _COLUMNAR or columnar(head):
        return True
    text = head.removeprefix(BOM).lstrip(BLANK)
    return _has_objects(text[:HEAD], most=1) or (text.startswith(b"[") and text[1:].lstrip(BLANK).startswith(b"{"))


def _array_or_lines(text: bytes) -> Text:
    first, _, more = text.partition(b"\n")
    # An array whole on its line with more to come is a bad first row.
    return Text.LINES if more.strip(BLANK) and _decodes(first) else Text.ARRAY


def _lines_or_object(text: bytes) -> Text:
    first, _, more = text.partition(b"\n")
    if not more.strip(BLANK):
        return Text.OBJECT
    if not breaks_within(first):
        return Text.LINES
    # An object over several lines has at most a few that are objects themselves; where most are, a first row is cut.
    lines = [line for line in more.split(b"\n", _MOST_LINES)[:_MOST_LINES] if line.strip(BLANK)]
    return Text.LINES if 2 * sum(isinstance(_value(line), dict) for line in lines) > len(lines) else Text.OBJECT


def _has_objects(text: bytes, most: int = _MOST_LINES) -> bool:
    lines = text.split(b"\n", most)[:most]
    return any(line.startswith(b"{") and isinstance(_value(line), dict) for line in lines)


def _decodes(line: bytes) -> bool:
    try:
        decode(line)
    except ValueError:
        return False
    return True


def _value(line: bytes) -> object:
    try:
        return decode(line)
    except ValueError:
        return None


def _suffix(name: str) -> str:
    """The suffix in small letters, that of a packing left out: `.csv` of `a.CSV.gz`."""
    path = PurePath(name.lower())
    return (path.with_suffix("") if path.suffix in _PACKED else path).suffix
