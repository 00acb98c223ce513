"""One process a run directory: an flock on RUNDIR/lock, which the system gives back when the process ends."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Generator
from pathlib import Path

from eyas.errors import LockedError, StorageError
from eyas.journal import storage

_NOT_OURS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EEXIST)
"""Why a folder cannot be made or written where no free space would help."""


@contextlib.contextmanager
def lock(folder: Path) -> Generator[None]:
    """Hold a run directory (created if need be) for this process; files made meanwhile are its owner's only (umask).

    Raises:
        LockedError: another process holds it.
        StorageError: it cannot be created or written.
    """
    with storage(folder):
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(folder / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            if error.errno not in _NOT_OURS:
                raise
            raise StorageError(f"{folder} cannot be written ({error.strerror}): choose another [run] dir") from error
    try:
        if not _take(handle):
            owner = os.pread(handle, 32, 0).decode(errors="replace").strip() or "unknown"
            raise LockedError(
                f"{folder} is in use by process {owner}: wait for it, or press ^C there, then run this again"
            )
        with storage(folder):
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        former = os.umask(0o077)  # run.toml, quarantine and journal hold prompts and answers
        try:
            yield
        finally:
            os.umask(former)
    finally:
        os.close(handle)


def _take(handle: int) -> bool:
    """Take the lock; `is_locked` of another process may hold it for microseconds, so some tries are made."""
    for _ in range(1000):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.sched_yield()
        else:
            return True
    return False


def owner(folder: Path) -> int | None:
    """The process that took the run directory last, by its own id; None where none ever did."""
    try:
        return int((folder / "lock").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def is_locked(folder: Path) -> bool:
    """Whether a living process holds the run directory."""
    try:
        handle = os.open(folder / "lock", os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
