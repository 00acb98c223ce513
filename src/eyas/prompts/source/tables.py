"""CSV and its like: a header, then a record a row, as RFC 4180 has it; cells are text, and an empty one is none."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from eyas.prompts.source.lines import LongLine, split
from eyas.prompts.source.row import MAX_ROW, NOT_UTF8, TEXT_PREFIX, TOO_LONG, BadRow, BrokenSource, Row, Rows

DELIMITERS = ",\t;"
_SNIFFED = 50


class _LongRecord(Exception):
    """A record that goes on for more than `MAX_ROW` bytes."""


def delimiter_of(head: str, *, whole: bool, named: bool) -> str | None:
    """The delimiter of a table by the first characters of its text, or None if that is no table.

    Args:
        head: the first characters.
        whole: whether that is all.
        named: whether the file's name says that it is a table: then one column is enough, and a ragged start too.
    """
    text = head if whole else head[: head.rfind("\n") + 1]
    scored = [(_score(text, each), each) for each in DELIMITERS]
    (agreeing, width), best = max(scored, key=lambda each: each[0])
    if named:
        return best if width > 1 else ","
    return best if width > 1 and agreeing >= 0.5 else None


def _score(text: str, delimiter: str) -> tuple[float, int]:
    """The share of the first records that are as wide as the header, and how wide that is."""
    try:
        records = [record for record in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if record]
    except csv.Error:
        return 0.0, 0
    header, *others = records[:_SNIFFED] or [[]]
    named = [name for name in header if name.strip()]
    if len(header) < 2 or len(set(named)) < max(1, len(header) - 1):
        return 0.0, 0
    return sum(len(record) == len(header) for record in others) / max(1, len(others)), len(header) if others else 0


def table(chunks: Iterator[bytes], file: str, delimiter: str) -> Rows:
    """The rows of a table; `line` is the line where the record starts, the header's being 1.

    Raises:
        BrokenSource: the header names no column or one twice, or a quoted cell never ends.
    """
    csv.field_size_limit(8 * MAX_ROW)  # of the process, and never met: the feed ends a record long before
    feed = _Feed(split(chunks))
    reader = csv.reader(feed, delimiter=delimiter, strict=True)
    names: list[str] = []
    while True:
        feed.begin()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if feed.ended:
                raise feed.endless() from None
            yield feed.bad(file, f'its quotes or line ends are wrong ({error}): double each " inside a quoted cell')
            continue
        except _LongRecord:
            yield feed.bad(file, TOO_LONG)
            feed.leave_quotes()
            continue
        if feed.long_line:
            yield feed.bad(file, TOO_LONG)
        elif cells and not names:
            names = _header(cells)
        elif cells:
            yield _row(cells, names, feed, file)


def _header(cells: list[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    if not _encodes(names):
        raise BrokenSource("its header is not text in UTF-8: save the table as UTF-8 (in Excel: CSV UTF-8)")
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice or not any(names):
        reason = f"its header names the column {twice!r:.60} twice" if twice else "its header names no column"
        raise BrokenSource(f"{reason}: give each column a name of its own in the first line")
    return names


def _row(cells: list[str], names: list[str], feed: _Feed, file: str) -> Row | BadRow:
    if len(cells) != len(names):
        return feed.bad(
            file, f"it has {len(cells)} cells and the header {len(names)}: quote cells that hold delimiters"
        )
    if not _encodes(cells):
        return feed.bad(file, NOT_UTF8)
    return Row({name: cell for name, cell in zip(names, cells, strict=True) if cell and name}, file, feed.start)


def _encodes(cells: list[str]) -> bool:
    try:
        "".join(cells).encode()
    except UnicodeEncodeError:
        return False
    return True


class _Feed:
    """Gives the csv reader its lines, and knows where the record began and how long it has become."""

    def __init__(self, lines: Iterator[bytes | LongLine]) -> None:
        self._lines = lines
        self._line = self._size = 0
        self._text = ""
        self.start = 0
        self.long_line = self.ended = False

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> str:
        line = self._next()
        if isinstance(line, LongLine):
            self.long_line = True
            # What is left of it keeps the reader inside a quoted cell, or takes it out of one, as the line did.
            text = '"' * (line.quotes % 2)
            self._text = self._text or line.start.decode(errors="replace")[:TEXT_PREFIX]
        else:
            text = line.decode(errors="surrogateescape")
            self._size += len(line)
            self._text = self._text or text[:TEXT_PREFIX]
        if self._size > MAX_ROW:
            raise _LongRecord
        return text + "\n"

    def begin(self) -> None:
        """A record begins with the next line."""
        self.start, self._size, self._text, self.long_line = self._line + 1, 0, "", False

    def bad(self, file: str, reason: str) -> BadRow:
        """The record as one that cannot be used."""
        text = self._text.encode(errors="surrogateescape").decode(errors="replace").rstrip("\r")
        return BadRow(file, self.start, reason, text[:TEXT_PREFIX])

    def leave_quotes(self) -> None:
        """Pass over the rest of a quoted cell: to the line with an odd number of quotes, since inside they are doubled."""
        for line in self._lines:
            self._line += 1
            if (line.quotes if isinstance(line, LongLine) else line.count(b'"')) % 2:
                return
        raise self.endless()

    def endless(self) -> BrokenSource:
        """What to raise when the text ends within a quoted cell: all that follows its quotes would be lost unseen."""
        return BrokenSource(f"a quoted cell in the record at line {self.start} never ends: close its quotes")

    def _next(self) -> bytes | LongLine:
        for line in self._lines:
            self._line += 1
            return line
        self.ended = True
        raise StopIteration
