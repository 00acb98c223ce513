"""An open source that can be read from its start more than once: a pipe's bytes are remembered, or spooled to disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import BinaryIO

from eyas.prompts.source.row import BrokenSource

CHUNK = 1 << 18
"""Most bytes taken from a file at a time."""


class Opened:
    """The bytes of a file, a pipe or standard input. What a pipe has given is kept until `forget`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._pipe = not file.seekable()
        self._start = 0 if self._pipe else file.tell()
        self._seen: list[bytes] | None = [] if self._pipe else None
        self._spool: BinaryIO | None = None

    def chunks(self) -> Iterator[bytes]:
        """All bytes from the start; of a pipe, not again after `forget`."""
        if self._seen is None:
            self._rewind()
        else:
            yield from tuple(self._seen)
        while chunk := self._file.read(CHUNK):
            if self._seen is not None:
                self._seen.append(chunk)
            yield chunk

    def forget(self) -> None:
        """Remember a pipe's bytes no longer: the iterator in use is the last one."""
        self._seen = None

    def seekable(self) -> BinaryIO:
        """The file at its start; a pipe is first copied into a file that has no name and goes when it is closed.

        Raises:
            BrokenSource: the disk cannot take the copy.
        """
        if self._pipe:
            self._spool = spool = tempfile.TemporaryFile()  # noqa: SIM115  # it lives as long as its source
            seen, self._seen = self._seen or [], None
            try:
                spool.writelines(seen)
                spool.writelines(self.chunks())
            except OSError as error:
                raise BrokenSource(
                    f"cannot be copied to {tempfile.gettempdir()} ({error}), which its format needs: free space, "
                    "set TMPDIR to another disk, or name a file instead of a pipe"
                ) from error
            self._file, self._pipe, self._start = spool, False, 0
        self._rewind()
        return self._file

    def close(self) -> None:
        """Give up the copy of a pipe; the file itself is its opener's to close."""
        if self._spool:
            self._spool.close()

    def _rewind(self) -> None:
        if not self._pipe:
            self._file.seek(self._start)


def first(chunks: Iterator[bytes], size: int) -> tuple[bytes, Iterator[bytes], bool]:
    """Gives the first `size` bytes or more, the rest, and whether that is nothing.

    A break within them is raised by the rest: what precedes it is used first.
    """
    head = b""
    try:
        while len(head) < size:
            chunk = next(chunks, b"")
            if not chunk:
                return head, iter(()), True
            head += chunk
    except BrokenSource as error:
        return head, _raising(error), False
    return head, chunks, False


def _raising(error: BrokenSource) -> Iterator[bytes]:
    yield b""
    raise error


def within(chunks: Iterator[bytes], size: int) -> Iterator[bytes]:
    """The first `size` bytes at most."""
    for chunk in chunks:
        yield chunk[:size]
        size -= len(chunk)
        if size <= 0:
            return
