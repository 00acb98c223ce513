"""Shards: files of about so many rows, the same bytes for the same chunks; and the folder they stand in."""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec

from eyas.errors import UsageError
from eyas.exporters.base import Format, Writer

MANIFEST = "manifest.json"
CARD = "README.md"
DRAFT_VOCAB = "draft_vocab"
CARD_MARK = "<!-- written by eyas export -->"
"""Last line of a card of ours: a README without it is the user's, and stays."""

_MARK = ".eyas-export"
_SHARD = re.compile(r"(rows|eval)-\d{5,}\.[a-z.]+")


class Shard(msgspec.Struct, frozen=True):
    """A finished file: its rows, its size in bytes and its sha256 as they lie on disk."""

    name: str
    rows: int
    bytes: int
    sha256: str


class Shards:
    """Writes chunks into `rows-00000.jsonl` and on. A shard ends with the first chunk that fills it, never inside one."""

    def __init__(self, folder: Path, stem: str, form: Format, limit: int, packed: str = "") -> None:
        """Nothing is written yet.

        Args:
            folder: where the shards stand.
            stem: how their names begin, `rows` or `eval`.
            form: the format that opens them.
            limit: rows from which on a shard is closed.
            packed: suffix of the compression.
        """
        self._folder, self._form, self._limit = folder, form, limit
        self._name = f"{stem}-{{:05d}}{form.suffix}{packed}"
        self._writer: Writer | None = None
        self._rows = 0
        self._done: list[Shard] = []

    def add(self, chunk: bytes, rows: int) -> None:
        """Append a packed chunk of so many rows; one without rows is nothing."""
        if not rows:
            return
        if self._writer is None:
            self._writer = self._form.open(self._path())
        self._writer.write(chunk)
        self._rows += rows
        if self._rows >= self._limit:
            self._close()

    def finish(self) -> tuple[Shard, ...]:
        """Close the last shard and return all."""
        self._close()
        return tuple(self._done)

    def abandon(self) -> None:
        """Close the open file, finished or not."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _path(self) -> Path:
        return self._folder / self._name.format(len(self._done))

    def _close(self) -> None:
        if self._writer is None:
            return
        writer, self._writer = self._writer, None
        writer.close()
        path = self._path()
        # Read back, not summed up while writing: formats write their files themselves, and it comes from the page cache.
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        self._done.append(Shard(path.name, self._rows, path.stat().st_size, digest))
        self._rows = 0


def prepare(folder: Path) -> None:
    """Make an export folder ready: remove what a former export wrote into it.

    Raises:
        UsageError: it holds something and no manifest of ours.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = {path.name for path in folder.iterdir()}
    except OSError as error:
        raise UsageError(f"{folder} cannot be made the export folder ({error}): choose another --out.") from error
    if names and _MARK not in names and not _ours(folder / MANIFEST):
        raise UsageError(f"{folder} is not empty and holds no export of eyas: choose another --out, or empty it.")
    # The mark says that the folder is ours also while there is no manifest, which is written last.
    (folder / _MARK).touch()
    (folder / MANIFEST).unlink(missing_ok=True)
    shutil.rmtree(folder / DRAFT_VOCAB, ignore_errors=True)
    if may_write_card(folder):
        (folder / CARD).unlink(missing_ok=True)
    for name in names:
        if _SHARD.fullmatch(name):
            (folder / name).unlink()


def may_write_card(folder: Path) -> bool:
    """Whether there is no card, or one of ours."""
    path = folder / CARD
    return not path.exists() or path.read_bytes().rstrip().endswith(CARD_MARK.encode())


def seal(folder: Path, manifest: bytes) -> None:
    """Write the manifest: the export is whole."""
    temporary = folder / f".{MANIFEST}"
    temporary.write_bytes(manifest)
    temporary.replace(folder / MANIFEST)
    (folder / _MARK).unlink(missing_ok=True)


def _ours(path: Path) -> bool:
    try:
        return "eyas" in msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError):
        return False
