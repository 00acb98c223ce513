"""The file itself: its tables, how it is opened, and what its failures mean."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Generator
from pathlib import Path

import msgspec

from eyas.errors import StorageError, UsageError

NAME = "journal.db"
VERSION = 1
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS events (seq INTEGER PRIMARY KEY, data TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS payloads (seq INTEGER PRIMARY KEY, size INTEGER NOT NULL, crc INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS drafts (attempt INTEGER, part INTEGER, size INTEGER NOT NULL, crc INTEGER NOT NULL,
    data BLOB NOT NULL, PRIMARY KEY (attempt, part)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS checkpoint (part INTEGER PRIMARY KEY, size INTEGER NOT NULL, crc INTEGER NOT NULL,
    data BLOB NOT NULL);
PRAGMA user_version = {VERSION};
"""
PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=4000", "busy_timeout=10000")
DISK_HELP = "free some disk space or check the disk, then run the same command again: what was acknowledged is safe"


class Packed(msgspec.Struct, frozen=True):
    """A text as it lies in a journal: its size and CRC-32 unpacked, and itself packed by zstd."""

    size: int
    crc: int
    data: bytes


class Row(msgspec.Struct, frozen=True):
    """An event as it lies in a journal: its number, itself as JSON, and its text if it has one."""

    seq: int
    event: bytes
    text: Packed | None


def connect(path: str, pragmas: tuple[str, ...]) -> sqlite3.Connection:
    """Open it, by a path or a file: URI; every statement is its own transaction unless BEGIN says otherwise."""
    db = sqlite3.connect(path, uri=path.startswith("file:"), isolation_level=None, check_same_thread=False)
    try:
        for pragma in pragmas:
            db.execute(f"PRAGMA {pragma}").fetchall()
    except sqlite3.Error:
        db.close()
        raise
    return db


def refuse_newer(path: Path, db: sqlite3.Connection) -> None:
    """Close and refuse a journal that a newer eyas wrote; to be called under `storage`.

    Raises:
        UsageError: it is one.
    """
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version > VERSION:
        db.close()
        raise UsageError(
            f"{path} was written by a newer eyas (its tables are of version {version}, this one knows {VERSION}): "
            "pip install --upgrade eyas, then run the same command again"
        )


@contextlib.contextmanager
def storage(path: Path, db: sqlite3.Connection | None = None) -> Generator[None]:
    """Translate what SQLite and the file system raise, once; `db` is closed then."""
    try:
        yield
    except (sqlite3.Error, OSError, msgspec.DecodeError) as error:
        if db is not None:
            db.close()
        raise StorageError(f"{path}: {error}; {DISK_HELP}") from error
