"""Values kept on disk and read one at a time, so that a set of any size is held as offsets only."""

from __future__ import annotations

import os
import tempfile
import weakref
from abc import abstractmethod
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar, overload

import msgspec

from eyas.errors import StorageError

T = TypeVar("T")
_BLOCK = 1 << 20
encoded = msgspec.json.Encoder().encode
"""A value as JSON."""


class Lazy(Sequence[T]):
    """A sequence that makes each of its values when it is asked for; a slice is a list of them."""

    @abstractmethod
    def at(self, index: int) -> T:
        """The value at an index from 0 to len - 1."""

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        size = len(self)
        if isinstance(index, slice):
            return [self.at(each) for each in range(*index.indices(size))]
        if not -size <= index < size:
            raise IndexError(f"there are {size}, none is number {index}")
        return self.at(index % size)


class Spool(Lazy[T]):
    """Values of one msgspec type in a temporary file without a name, which vanishes with the process.

    Up to a megabyte stays in memory and makes no file. In memory each value takes 8 bytes.
    """

    def __init__(self, kind: type[T], folder: Path | None = None) -> None:
        """`folder`: where the file is made; None: the system's folder for temporary files (TMPDIR)."""
        self._decoder = msgspec.json.Decoder(kind)
        self._folder = folder
        self._ends = array("Q")
        self._tail = bytearray()
        self._written = 0
        self._file = -1

    def add(self, value: T) -> None:
        """Put a value at the end.

        Raises:
            StorageError: the disk takes no more.
            ValueError, TypeError: the value is none that JSON in UTF-8 can hold; nothing was added.
        """
        self._tail += encoded(value)
        self._ends.append(self._written + len(self._tail))
        if len(self._tail) >= _BLOCK:
            self._flush()

    def at(self, index: int) -> T:
        """The value with that number."""
        return self._decoder.decode(self.raw(index))

    def raw(self, index: int) -> bytes:
        """The same as JSON, as it was added."""
        start = self._ends[index - 1] if index else 0
        end = self._ends[index]
        if start >= self._written:
            return bytes(memoryview(self._tail)[start - self._written : end - self._written])
        return os.pread(self._file, end - start, start)

    def __len__(self) -> int:
        return len(self._ends)

    def _flush(self) -> None:
        try:
            if self._file < 0:
                self._file = _unnamed(self._folder)
                weakref.finalize(self, os.close, self._file)
            view = memoryview(bytes(self._tail))
            while view:
                view = view[os.write(self._file, view) :]
        except OSError as error:
            place = self._folder or tempfile.gettempdir()
            raise StorageError(
                f"{place}: prompts cannot be kept there while they are read ({error}): free some space, or name a larger "
                "disk in the environment variable TMPDIR"
            ) from error
        self._written += len(self._tail)
        self._tail = bytearray()


def _unnamed(folder: Path | None) -> int:
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        return os.dup(file.fileno())
