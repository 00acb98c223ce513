"""JSON arrays of rows, alone or under a key of an object, cut at their commas before anything is decoded.

So memory is bounded by the longest row, and a bad element spoils only itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum

import msgspec

from eyas.prompts.source.lines import BLANK
from eyas.prompts.source.row import MAX_ROW, TEXT_PREFIX, TOO_LONG, BadRow, BrokenSource, Rows, json_row, prefix

_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+("?)|[\[\]{},]', re.DOTALL)
_REST = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+("?)', re.DOTALL)
_OPEN, _CLOSE = b"[{", b"]}"


class Position(Enum):
    """Where a piece stands: before a comma, before its array's end, behind the root, or where the text breaks off."""

    AMID = "amid"
    LAST = "last"
    AFTER = "after"
    CUT = "cut"


class Piece(msgspec.Struct, frozen=True):
    """What stands between two commas: the first bytes of it, its whole size in bytes, and its position."""

    text: bytes
    size: int
    position: Position


def elements(chunks: Iterator[bytes], file: str, member: int | None = None) -> Rows:
    """The rows of an array: of the root, or of the root object's member of that number, from 0.

    Raises:
        BrokenSource: the text breaks off, or goes on behind its end.
    """
    number = 0
    for piece in pieces(chunks, member, MAX_ROW):
        if piece.position is Position.CUT:
            raise BrokenSource(f"breaks off in element {number + 1} of its JSON array: fetch or write the file again")
        if piece.position is Position.AFTER:
            raise BrokenSource("goes on after the end of its JSON array: write one array, or one object a line")
        raw = piece.text.strip(BLANK)
        if raw or piece.position is Position.AMID:
            number += 1
            whole = piece.size == len(piece.text)
            yield json_row(raw, file, number) if whole else BadRow(file, number, TOO_LONG, prefix(raw))


def pieces(chunks: Iterator[bytes], member: int | None, keep: int) -> Iterator[Piece]:
    """Cuts the root, or the array in its member, at commas; a last piece says if the text goes on or breaks off.

    Args:
        chunks: the text; what precedes the first bracket is passed over.
        member: the number, from 0, of the member of the root whose array is cut; None for the root itself.
        keep: bytes of a piece that are held at most.
    """
    cutter = _Cutter(1 if member is None else 2, member or 0, keep)
    for chunk in _whole_escapes(chunks):
        yield from cutter.cut(chunk)
        if cutter.after:
            yield Piece(b"", 0, Position.AFTER)
            return
    if not cutter.ended:
        yield cutter.take(Position.CUT)


def breaks_within(line: bytes) -> bool:
    """Whether a line ends within brackets but not within quotes, as the first of an object over several lines does."""
    cutter = _Cutter(1, 0, 0)
    for _ in cutter.cut(line):
        pass
    return cutter.breaks


class _Cutter:
    """Knows how deep the text has come, and holds the piece that it is in."""

    def __init__(self, level: int, member: int, keep: int) -> None:
        self._level, self._member, self._keep = level, member, keep
        self._depth = self._number = 0
        self._quoted = self._inside = False
        self._held: list[bytes] = []
        self._size = self._kept = 0
        self.ended = self.after = False

    @property
    def breaks(self) -> bool:
        """Whether a line may end here."""
        return self._depth > 0 and not self._quoted

    def cut(self, chunk: bytes) -> Iterator[Piece]:
        """The pieces that end in a chunk."""
        start = at = 0
        if self._quoted and (rest := _REST.match(chunk)):
            at, self._quoted = rest.end(), not rest[1]
        for token in _TOKEN.finditer(chunk, at):
            if token[1] is not None:
                self._quoted = not token[1]
            elif not self.ended:
                at = token.start()
                position = self._step(chunk[at])
                if position:
                    self._hold(chunk[start:at])
                    yield self.take(position)
                if position or not self._inside or (self._depth == self._level and chunk[at] in _OPEN):
                    start = token.end()
        if self._inside:
            self._hold(chunk[start:])
        self.after = self.ended and bool(chunk[start:].strip(BLANK))

    def _step(self, mark: int) -> Position | None:
        """Takes a bracket or comma in; gives the position of the piece that it ends."""
        if mark in _OPEN:
            self._depth += 1
            if self._depth == self._level and (self._level == 1 or self._number == self._member):
                self._inside = True
            return None
        if mark in _CLOSE:
            self._depth -= 1
            self.ended = self._depth == 0
            ends = self._inside and self._depth < self._level
            self._inside = self._inside and not ends
            return Position.LAST if ends else None
        if self._depth == 1:
            self._number += 1
        return Position.AMID if self._inside and self._depth == self._level else None

    def _hold(self, part: bytes) -> None:
        self._size += len(part)
        if self._kept < self._keep:
            part = part[: self._keep - self._kept]
            self._kept += len(part)
            self._held.append(part)

    def take(self, position: Position) -> Piece:
        """What is held, as a piece; the next one begins."""
        piece = Piece(b"".join(self._held), self._size, position)
        self._held, self._size, self._kept = [], 0, 0
        return piece


def _whole_escapes(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Moves the cuts between chunks to where no backslash escape straddles one."""
    rest = b""
    for chunk in chunks:
        joined = rest + chunk
        rest = b"\\" if (len(joined) - len(joined.rstrip(b"\\"))) % 2 else b""
        yield joined[:-1] if rest else joined
    yield rest


_MEMBER = re.compile(rb'\s*"((?:[^"\\]|\\.)*)"\s*:\s*(\[\s*\{(?!\s*"(?:role|from|content|value)"\s*:))?', re.DOTALL)
_HEAD = 4 * TEXT_PREFIX
_HOLDERS = ("data", "rows", "train", "examples", "instances", "items", "records", "samples", "prompts", "questions")
_OF_A_ROW = frozenset(
    (
        *("messages", "conversations", "conversation", "dialog", "dialogue", "turns", "prompt", "question"),
        *("instruction", "query", "problem", "input", "text", "content"),
    )
)


class Holder(msgspec.Struct, frozen=True):
    """What a text that starts with an object is: several values, or one object that holds rows under a key or is one."""

    several: bool
    key: str | None = None
    member: int = 0


def holder(chunks: Iterator[bytes], *, one_line: bool) -> Holder:
    """Looks through an object for the array that holds its rows, without holding more than the starts of its members.

    Of the members that are lists of objects, but not of messages, one with a usual name goes first, then the largest. An
    object that has a column of a row is a row, and one on a single line is if no usual name is there.
    """
    found: dict[int, tuple[str, int]] = {}
    names: set[str] = set()
    for number, piece in enumerate(pieces(chunks, None, _HEAD)):
        if piece.position is Position.AFTER:
            return Holder(several=True)
        if member := _MEMBER.match(piece.text):
            name = member[1].decode(errors="replace")
            names.add(name)
            if member[2]:
                found[number] = name, piece.size
    usual = {number: each for number, each in found.items() if each[0] in _HOLDERS} or ({} if one_line else found)
    if not usual or names & _OF_A_ROW:
        return Holder(several=False)
    member = max(usual, key=lambda number: usual[number][1])
    return Holder(several=False, key=usual[member][0], member=member)
