"""What an export format is: rows are packed to bytes by the chunk, in any process, and chunks are written in order.

Beside the formats stand two modules that export calls once the rows are written:

    draft_vocab.write(folder: Path, counts: Mapping[str, NDArray[int64]], sizes: Sequence[int], vocab_size: int)
        -> dict[str, Any]
        `counts` are, by dataset, how often each id stands under mask 1: arrays of `vocab_size` numbers. Writes the files
        of every size into the folder; returns what the manifest keeps: coverage by dataset, file names, sha256.
    card.text(manifest: Mapping[str, Any]) -> str
        The dataset card (README.md) of an export whose manifest.json holds exactly this, decoded.
"""

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
        """Of its shards, such as `.jsonl`; export adds `.gz` or `.zst` to that of text."""
        ...

    @property
    def text(self) -> bool:
        """Whether its chunks are lines: joined as they are, and packed by --compress. Other formats pack themselves."""
        ...

    @property
    def cannot(self) -> tuple[str, ...]:
        """What it cannot carry, each a sentence; printed and kept in the manifest."""
        ...

    def refuses(self, row: Row, /) -> str:
        """Why an answer cannot be carried at all, or an empty string: it is then no row, with this reason."""
        ...

    def pack(self, rows: Many[Row]) -> bytes:
        """Rows as bytes, at least one row; called in any process. Chunks of text are compressed by export, not here.

        Raises:
            UsageError: something that the format needs is not installed.
        """
        ...

    def open(self, path: Path) -> Writer:
        """A new shard at that path; text formats give a `lines.Lines`."""
        ...
