"""Rows of imports that cannot be used, in one file of the run directory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from eyas.prompts import BadRow, write_quarantine


def keep_apart(path: Path, bad: Collection[BadRow], files: Collection[str]) -> None:
    """Write the bad rows of some files in place of what was written of these files before; rows of other files stay.

    Raises:
        StorageError: the file cannot be written.
    """
    before = [row for row in _rows(path) if row.file not in files]
    if before or len(bad) or path.exists():
        write_quarantine(path, _both(before, bad))


def _both(one: Iterable[BadRow], other: Iterable[BadRow]) -> Iterator[BadRow]:
    yield from one
    yield from other


def _rows(path: Path) -> Iterator[BadRow]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return
    for line in lines:
        with suppress(msgspec.DecodeError):
            yield msgspec.json.decode(line, type=BadRow)
