"""Writes the journal: one thread that commits whatever waits, in one transaction.

A single write is committed at once; at 500 a second dozens share one fsync.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import sqlite3
import threading
import time
import zlib
from collections import deque
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol

import msgspec
import zstandard

from eyas.errors import StorageError
from eyas.events import AnyEvent, Settled
from eyas.journal.database import DISK_HELP, NAME, PRAGMAS, SCHEMA, Packed, connect, refuse_newer, storage
from eyas.types import DraftText

MOST_A_COMMIT = 2000
GATHER = 0.025
"""Seconds between the beginnings of two commits while many writes come in: one costs the same for one write as for dozens."""
MANY = 1.5
"""Writes that a commit has had of late, on average, where the next one waits for more: below that nobody is kept waiting."""

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
            UsageError: a newer eyas wrote it.
            StorageError: it cannot be written, or is not a journal.
        """
        self.path = folder / NAME
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queue: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self._failure: StorageError | None = None
        self._closing = threading.Event()
        self._began = self._lately = 0.0
        self._undone: deque[float] = deque()
        self._commit_seconds = 0.0
        with storage(self.path):
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            self._db = connect(str(self.path), PRAGMAS)
        with storage(self.path, self._db):
            refuse_newer(self.path, self._db)
            self._db.executescript(SCHEMA)
            self._seq = int(self._db.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()[0])
        self.last = self._seq
        self._thread = threading.Thread(target=self._run, name="eyas-journal", daemon=True)
        self._thread.start()

    def write(self, event: AnyEvent, payload: Payload = None) -> Awaitable[None]:
        """Append one event with its text; awaiting it means that both are on the disk. `last` is its number from now on."""
        self.last += 1
        return self._put(_Item(event=event, payload=payload))

    def draft(self, attempt: int, part: int, text: DraftText) -> Awaitable[None]:
        """Keep what an answer in flight gained since its last part."""
        return self._put(_Item(payload=text, attempt=attempt, part=part))

    def flush(self) -> Awaitable[None]:
        """Awaiting it means that all that was written before is durable."""
        return self._put(_Item())

    def keep(self, part: int, data: bytes) -> None:
        """Put one part of a checkpoint beside the events, with those that were written before it; part 0 is its head."""
        self._put(_Item(payload=data, part=part, table=_Table.CHECKPOINT))

    @property
    def waiting(self) -> int:
        """Writes not yet taken up."""
        return self._queue.qsize()

    @property
    def lag(self) -> float:
        """Seconds since the oldest write that is not on the disk yet; 0 where all are."""
        try:
            return time.monotonic() - self._undone[0]
        except IndexError:
            return 0.0

    @property
    def commit_seconds(self) -> float:
        """How long the last commit took."""
        return self._commit_seconds

    def close(self) -> None:
        """Write what waits and close; safe to call twice."""
        if self._thread.is_alive():
            self._closing.set()
            self._queue.put(None)
            self._thread.join()
        with contextlib.suppress(sqlite3.Error):  # else the log stays beside the file, if somebody has it open
            self._db.execute("PRAGMA busy_timeout=0")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
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
            self._db.execute("DELETE FROM checkpoint")  # it holds details of attempts, which may quote a text
            self._db.execute("COMMIT")
            self._db.execute("VACUUM")
            return self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0

    def _put(self, item: _Item) -> Awaitable[None]:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        item.future = self._loop.create_future()
        # Not every writer waits for its own write; a failure reaches the run through those that do.
        item.future.add_done_callback(_seen)
        self._undone.append(time.monotonic())
        self._queue.put(item)
        return item.future

    def _run(self) -> None:
        compressor = zstandard.ZstdCompressor(level=3, write_checksum=False)
        ended = False
        while not ended:
            batch, ended = self._take()
            self._lately = 0.8 * self._lately + 0.2 * len(batch)
            if self._failure is None:
                try:
                    self._commit(batch, compressor)
                except Exception as error:  # noqa: BLE001  # whatever it is: those who wait must hear of it
                    self._failure = StorageError(f"{self.path}: {error}; {DISK_HELP}")
                self._commit_seconds = time.monotonic() - self._began
            for _ in batch if self._failure is None else ():
                self._undone.popleft()
            if self._loop is not None and batch:
                with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                    self._loop.call_soon_threadsafe(_resolve, batch, self._failure)

    def _take(self) -> tuple[list[_Item], bool]:
        first = self._queue.get()
        if self._lately >= MANY:
            self._closing.wait(self._began + GATHER - time.monotonic())  # returns at once where that is past
        self._began = time.monotonic()
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
        if isinstance(item.payload, Packed):
            packed = (item.payload.size, item.payload.crc, item.payload.data)
        elif item.payload is not None:
            raw = item.payload if isinstance(item.payload, bytes) else msgspec.json.encode(item.payload)
            packed = (len(raw), zlib.crc32(raw), compressor.compress(raw))
        if item.event is None and packed is None:
            return
        if item.event is None and item.table is _Table.CHECKPOINT:
            self._db.execute("INSERT OR REPLACE INTO checkpoint VALUES (?, ?, ?, ?)", (item.part, *(packed or ())))
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


class _Table(Enum):
    """Where a write without an event goes."""

    DRAFTS = 0
    CHECKPOINT = 1


@dataclass(slots=True, eq=False)
class _Item:
    """One write on its way to the writer thread."""

    event: AnyEvent | None = None
    payload: Payload = None
    attempt: int = 0
    part: int = 0
    table: _Table = _Table.DRAFTS
    future: asyncio.Future[None] | None = None


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
