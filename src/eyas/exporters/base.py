"""What an export format is: rows are packed to bytes by the chunk, in any process, and chunks are written in order."""

from __future__ import annotations

from collections.abc import Sequence as Many
from pathlib import Path
from typing import Protocol

import msgspec

from eyas.types import Record, Sequence


class Row(msgspec.Struct, frozen=True):
    """One answer to export: the record, its training tokens, and their text, which is decode(input_ids)."""

    record: Record
    sequence: Sequence
    text: str


class Writer(Protocol):
    """An open shard."""

    def write(self, chunk: bytes) -> None:
        """Append one packed chunk."""
        ...

    def close(self) -> None:
        """Finish the file; the same chunks give the same bytes."""
        ...


class Format(Protocol):
    """A trainer format. One file a format; all are stateless."""

    @property
    def name(self) -> str:
        """As --format names it."""
        ...

    @property
    def suffix(self) -> str:
        """Of its shards, such as `.jsonl`."""
        ...

    @property
    def cannot(self) -> tuple[str, ...]:
        """What it cannot carry, each a sentence; printed and kept in the manifest."""
        ...

    def pack(self, rows: Many[Row]) -> bytes:
        """Rows as bytes. For JSON lines the bytes of chunks are joined as they are."""
        ...

    def open(self, path: Path) -> Writer:
        """A new shard at that path."""
        ...
