"""Rows that cannot be asked: written down one by one, and counted by reason so that a wrong file is told at once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from eyas.errors import StorageError, UsageError
from eyas.prompts.read import BadRow

MOST = 0.20
"""Share of a source's rows that may be bad; above it the source is taken for the wrong one."""

_KINDS = 1000
_SHOWN = 80
_SPECIFIC = re.compile(r"\([^()]*\)|'[^']*'|\d+")


class Rejected(UsageError):
    """A source of which too much cannot be asked; `says` is the sentence without examples, `rows` are all its bad rows."""

    def __init__(self, says: str, rows: Sequence[BadRow]) -> None:
        lines = [f"{says} The first of them:"]
        for row in rows[:3]:
            lines.append(f"  line {row.line}: {_visible(row.text)}")
            if row.reason not in says:
                lines.append(f"    {row.reason}")
        super().__init__("\n".join(lines))
        self.says = says
        self.rows = rows


class Reasons:
    """How often each kind of reason was given, with the first row of each; of a thousand kinds at most."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._first: dict[str, BadRow] = {}

    def add(self, row: BadRow) -> None:
        """Count a row; names, figures and asides in its reason do not make another kind."""
        kind = _SPECIFIC.sub("", row.reason)
        if kind in self._counts or len(self._counts) < _KINDS:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._first.setdefault(kind, row)

    def commonest(self) -> tuple[int, BadRow]:
        """The kind that was given most often: how often, and its first row; there must be one."""
        kind = max(self._counts, key=lambda one: self._counts[one])
        return self._counts[kind], self._first[kind]


def check(source: str, rows: int, bad: Sequence[BadRow], reasons: Reasons) -> None:
    """Refuse a source of which more than a fifth is bad.

    Args:
        source: as the user named it.
        rows: all its rows.
        bad: those in quarantine.
        reasons: the same, counted.

    Raises:
        Rejected: it is.
    """
    if len(bad) <= MOST * rows:
        return
    count, first = reasons.commonest()
    raise Rejected(
        f"{source}: {len(bad)} of {rows} rows cannot be asked, more than {MOST:.0%}, so the run does not start. Most often "
        f"({count} rows, line {first.line} of {first.file} for one): {first.reason}. Name the columns with `map`, leave such "
        "rows out with `filter`, or name another file.",
        bad,
    )


def _visible(text: str) -> str:
    """The start of a row's text, without what would move a terminal's cursor."""
    return "".join(each if each.isprintable() else "\ufffd" for each in text[:_SHOWN])


def json_lines(values: Iterable[msgspec.Struct]) -> Iterator[bytes]:
    """Gives values as JSON lines."""
    for value in values:
        yield msgspec.json.encode(value) + b"\n"


def write_lines(path: Path, values: Iterable[msgspec.Struct]) -> None:
    """Writes values as JSON lines in place of an earlier such file, whole or not at all; only the owner can read it.

    Raises:
        StorageError: the file cannot be written.
    """
    draft = path.with_name(f"{path.name}.tmp")
    try:
        with open(draft, "wb", opener=_private) as file:
            file.writelines(json_lines(values))
        draft.replace(path)
    except OSError as error:
        raise StorageError(f"{path}: cannot be written ({error}): free space or choose another [run] dir") from error


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def write_quarantine(path: Path, bad: Iterable[BadRow]) -> None:
    """Writes the rows that cannot be asked, one a line: file, line, reason, text; as `write_lines` does."""
    write_lines(path, bad)
