"""Writes the journal: one thread that commits whatever waits, in one transaction, with no fixed window.

At one write a commit takes one fsync, at 500 a second dozens share one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import sqlite3
import threading
import zlib
from collections.abc import Awaitable, Iterable
from pathlib import Path
from typing import Protocol

import msgspec
import zstandard

from eyas.errors import StorageError
from eyas.events import AnyEvent, Settled
from eyas.journal.database import DISK_HELP, NAME, PRAGMAS, SCHEMA, connect, storage
from eyas.types import DraftText

MOST_A_COMMIT = 2000

Payload = msgspec.Struct | bytes | None


class Log(Protocol):
    """What the engine asks of a journal. Awaiting a write means: durable."""

    def write(self, event: AnyEvent, payload: Payload = None) -> Awaitable[None]:
        """Append one event; the order of calls is the order in the journal. Raises StorageError when awaited."""
        ...

    def draft(self, attempt: int, part: int, text: DraftText) -> Awaitable[None]:
        """Keep what an answer in flight gained since its last part."""
        ...

    def flush(self) -> Awaitable[None]:
        """Awaiting it means that all that was written before is durable. Raises StorageError when awaited."""
        ...


class Journal:
    """The writer. One a run directory; the lock is the caller's (`eyas.lock`)."""

    def __init__(self, folder: Path) -> None:
        """Open or create the journal of a run directory.

        Raises:
            StorageError: it cannot be written, or is not a journal.
        """
        self.path = folder / NAME
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queue: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self._failure: StorageError | None = None
        with storage(self.path):
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            self._db = connect(str(self.path), PRAGMAS)
        with storage(self.path, self._db):
            self._db.executescript(SCHEMA)
            self._seq = int(self._db.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()[0])
        self._thread = threading.Thread(target=self._run, name="eyas-journal", daemon=True)
        self._thread.start()

    def write(self, event: AnyEvent, payload: Payload = None) -> Awaitable[None]:
        """Append one event with its text; awaiting it means that both are on the disk."""
        return self._put(_Item(event=event, payload=payload))

    def draft(self, attempt: int, part: int, text: DraftText) -> Awaitable[None]:
        """Keep what an answer in flight gained since its last part."""
        return self._put(_Item(payload=text, attempt=attempt, part=part))

    def flush(self) -> Awaitable[None]:
        """Awaiting it means that all that was written before is durable."""
        return self._put(_Item())

    @property
    def waiting(self) -> int:
        """Writes not yet taken up."""
        return self._queue.qsize()

    def close(self) -> None:
        """Write what waits and close; safe to call twice."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()
        with contextlib.suppress(sqlite3.Error):
            self._db.close()

    def erase(self, seqs: Iterable[int], attempts: Iterable[int]) -> bool:
        """Delete texts and drafts to the last byte; no write may wait. False: a reader held the old pages, do it again."""
        texts, drafts = [(seq,) for seq in seqs], [(attempt,) for attempt in attempts]
        with storage(self.path):
            self._db.execute("BEGIN")
            self._db.executemany("DELETE FROM payloads WHERE seq = ?", texts)
            self._db.executemany("UPDATE events SET data = json_remove(data, '$.detail') WHERE seq = ?", texts)
            self._db.executemany("DELETE FROM drafts WHERE attempt = ?", drafts)
            self._db.execute("COMMIT")
            self._db.execute("VACUUM")
            return self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0

    def _put(self, item: _Item) -> Awaitable[None]:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        item.future = self._loop.create_future()
        # Not every writer waits for its own write; a failure reaches the run through those that do.
        item.future.add_done_callback(_seen)
        self._queue.put(item)
        return item.future

    def _run(self) -> None:
        compressor = zstandard.ZstdCompressor(level=3, write_checksum=False)
        ended = False
        while not ended:
            batch, ended = self._take()
            if self._failure is None:
                try:
                    self._commit(batch, compressor)
                except Exception as error:  # noqa: BLE001  # whatever it is: those who wait must hear of it
                    self._failure = StorageError(f"{self.path}: {error}; {DISK_HELP}")
            if self._loop is not None and batch:
                with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                    self._loop.call_soon_threadsafe(_resolve, batch, self._failure)

    def _take(self) -> tuple[list[_Item], bool]:
        first = self._queue.get()
        batch: list[_Item] = []
        while first is not None:
            batch.append(first)
            if len(batch) >= MOST_A_COMMIT:
                return batch, False
            try:
                first = self._queue.get_nowait()
            except queue.Empty:
                return batch, False
        return batch, True

    def _commit(self, batch: list[_Item], compressor: zstandard.ZstdCompressor) -> None:
        if not batch:
            return
        self._db.execute("BEGIN")
        try:
            for item in batch:
                self._insert(item, compressor)
            self._db.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            raise

    def _insert(self, item: _Item, compressor: zstandard.ZstdCompressor) -> None:
        packed = None
        if item.payload is not None:
            raw = item.payload if isinstance(item.payload, bytes) else msgspec.json.encode(item.payload)
            packed = (len(raw), zlib.crc32(raw), compressor.compress(raw))
        if item.event is None and packed is None:
            return
        if item.event is None:
            self._db.execute(
                "INSERT OR REPLACE INTO drafts VALUES (?, ?, ?, ?, ?)", (item.attempt, item.part, *(packed or ()))
            )
            return
        self._seq += 1
        self._db.execute("INSERT INTO events VALUES (?, ?)", (self._seq, msgspec.json.encode(item.event).decode()))
        if packed is not None:
            self._db.execute("INSERT INTO payloads VALUES (?, ?, ?, ?)", (self._seq, *packed))
        if isinstance(item.event, Settled):
            self._db.execute("DELETE FROM drafts WHERE attempt = ?", (item.event.attempt,))


class _Item:
    """One write on its way to the writer thread."""

    __slots__ = ("attempt", "event", "future", "part", "payload")

    def __init__(self, event: AnyEvent | None = None, payload: Payload = None, attempt: int = 0, part: int = 0) -> None:
        self.event = event
        self.payload = payload
        self.attempt = attempt
        self.part = part
        self.future: asyncio.Future[None] | None = None


def _resolve(batch: list[_Item], failure: StorageError | None) -> None:
    for item in batch:
        if item.future is None or item.future.done():
            continue
        if failure is None:
            item.future.set_result(None)
        else:
            item.future.set_exception(failure)


def _seen(future: asyncio.Future[None]) -> None:
    if not future.cancelled():
        future.exception()
