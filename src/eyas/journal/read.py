"""Reads a journal, also while another process writes it."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import zstandard

from eyas.errors import StorageError, UsageError
from eyas.events import AnyEvent
from eyas.journal.database import NAME, Packed, Row, connect, refuse_newer, storage
from eyas.types import DraftText


class Store:
    """Read access to a journal, also while another process writes it."""

    def __init__(self, folder: Path) -> None:
        """Open the journal of a run directory for reading.

        Raises:
            UsageError: there is none, or a newer eyas wrote it.
            StorageError: it cannot be read.
        """
        self.path = folder / NAME
        if not self.path.exists():
            raise UsageError(
                f"{folder} holds no run: there is no {NAME} in it; give the directory named in RUN.toml as [run] dir"
            )
        self._decode_event = msgspec.json.Decoder(AnyEvent).decode
        self._decompress = zstandard.ZstdDecompressor().decompress
        with storage(self.path):
            self._db = connect(f"file:{quote(str(self.path))}?mode=ro", ("busy_timeout=10000",))
        with storage(self.path, self._db):
            refuse_newer(self.path, self._db)

    def events(self, after: int = 0) -> Iterator[tuple[int, AnyEvent]]:
        """(sequence number, event) of all events after that number, in order.

        A journal whose process was killed before its tables were made holds none.
        """
        with storage(self.path):
            if not self._has("events"):
                return
            for seq, data in self._db.execute("SELECT seq, data FROM events WHERE seq > ? ORDER BY seq", (after,)):
                yield seq, self._decode_event(data)

    def rows(self, after: int, most: int) -> Iterator[Row]:
        """Events after that number as they lie in the journal, texts packed, until they have `most` bytes; one at least."""
        query = (
            "SELECT events.seq, events.data, size, crc, payloads.data FROM events LEFT JOIN payloads USING (seq) "
            "WHERE events.seq > ? ORDER BY events.seq"
        )
        with storage(self.path):
            for seq, event, size, crc, data in self._db.execute(query, (after,)):
                text = None if data is None else Packed(size, crc, data)
                yield Row(seq, event.encode(), text)
                most -= len(event) + len(data or b"")
                if most < 0:
                    return

    def last(self) -> int:
        """The number of the last event, 0 if there is none."""
        with storage(self.path):
            return int(self._db.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()[0])

    def checkpoint(self) -> Iterator[bytes]:
        """What the journal keeps beside its events (`checkpoint.Rows`): the head, then the pieces in order.

        Raises:
            StorageError: it is damaged.
        """
        with storage(self.path):
            if self._has("checkpoint"):
                for row in self._db.execute("SELECT size, crc, data FROM checkpoint ORDER BY part"):
                    yield self._unpack(row, "its checkpoint")

    def payload(self, seq: int) -> bytes:
        """The text of that event, as it was written.

        Raises:
            StorageError: it is missing or damaged.
        """
        with storage(self.path):
            row = self._db.execute("SELECT size, crc, data FROM payloads WHERE seq = ?", (seq,)).fetchone()
        if row is None:
            raise StorageError(f"{self.path}: the text of event {seq} is missing; restore the file from a copy")
        return self._unpack(row, f"event {seq}")

    def drafts(self, attempt: int) -> list[DraftText]:
        """What was kept of an answer that never settled, in order."""
        with storage(self.path):
            rows = self._db.execute(
                "SELECT size, crc, data FROM drafts WHERE attempt = ? ORDER BY part", (attempt,)
            ).fetchall()
        return [msgspec.json.decode(self._unpack(row, f"a draft of attempt {attempt}"), type=DraftText) for row in rows]

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def _has(self, table: str) -> bool:
        return bool(self._db.execute("SELECT count(*) FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0])

    def _unpack(self, row: Any, what: str) -> bytes:
        size, crc, data = row
        try:
            raw: bytes = self._decompress(data, max_output_size=size)
        except zstandard.ZstdError as error:
            raise StorageError(f"{self.path}: {what} is damaged ({error}); restore the file from a copy") from None
        if len(raw) != size or zlib.crc32(raw) != crc:
            raise StorageError(f"{self.path}: {what} is damaged (length or checksum); restore the file from a copy")
        return raw
