"""Shards: files of a fixed number of rows, plain or compressed, the same bytes for the same rows."""

from __future__ import annotations

import gzip
import hashlib
import re
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import msgspec

from eyas.errors import UsageError

MANIFEST = "manifest.json"
_MARK = ".eyas-export"
_SHARD = re.compile(r"rows-\d{5,}\.jsonl(\.gz|\.zst)?")
_SUFFIX = {"none": "", "gz": ".gz", "zst": ".zst"}
_LEVEL = 6


class Shard(msgspec.Struct, frozen=True):
    """A finished file: its rows, its size in bytes and its sha256 as they lie on disk."""

    name: str
    rows: int
    bytes: int
    sha256: str


class _Sink(Protocol):
    def write(self, data: bytes, /) -> int: ...
    def close(self) -> None: ...


class _Hashed:
    """A file that is hashed while it is written."""

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO = path.open("wb")
        self._sum = hashlib.sha256()
        self._size = 0

    def write(self, data: bytes, /) -> int:
        self._sum.update(data)
        self._size += len(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def shard(self, name: str, rows: int) -> Shard:
        return Shard(name, rows, self._size, self._sum.hexdigest())


class Shards:
    """Writes rows into `rows-00000.jsonl` and on; of the rows only the current line is held."""

    def __init__(self, folder: Path, compress: str, rows_per_shard: int) -> None:
        self._folder, self._compress, self._limit = folder, compress, rows_per_shard
        self._file: _Hashed | None = None
        self._sink: _Sink | None = None
        self._rows = 0
        self._done: list[Shard] = []

    def add(self, line: bytes) -> None:
        """Append one row."""
        if self._sink is None:
            self._file = _Hashed(self._folder / self._name())
            self._sink = _compressed(self._file, self._compress)
        self._sink.write(line)
        self._rows += 1
        if self._rows == self._limit:
            self._close()

    def finish(self) -> tuple[Shard, ...]:
        """Close the last shard and return all."""
        self._close()
        return tuple(self._done)

    def _name(self) -> str:
        return f"rows-{len(self._done):05d}.jsonl{_SUFFIX[self._compress]}"

    def _close(self) -> None:
        if self._sink is None or self._file is None:
            return
        self._sink.close()
        self._file.close()
        self._done.append(self._file.shard(self._name(), self._rows))
        self._sink = self._file = None
        self._rows = 0


def prepare(folder: Path) -> None:
    """Make an export folder ready: remove the shards and the manifest of a former export.

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
    for name in names:
        if _SHARD.fullmatch(name):
            (folder / name).unlink()


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


def _compressed(file: _Hashed, compress: str) -> _Sink:
    raw: Any = file
    if compress == "gz":
        # No name and no time in the header: the same rows give the same bytes.
        return gzip.GzipFile(filename="", mode="wb", compresslevel=_LEVEL, fileobj=raw, mtime=0)
    if compress == "zst":
        import zstandard  # noqa: PLC0415  # only where asked for

        return zstandard.ZstdCompressor(level=_LEVEL).stream_writer(raw, closefd=False)
    return _Plain(file)


class _Plain:
    def __init__(self, file: _Hashed) -> None:
        self._file = file

    def write(self, data: bytes, /) -> int:
        return self._file.write(data)

    def close(self) -> None:
        self._file.flush()
