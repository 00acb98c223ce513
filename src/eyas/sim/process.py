"""What a server of the simulator needs of its process: open files, and an end when the process that started it is gone."""

from __future__ import annotations

import contextlib
import os


def more_files() -> None:
    """Allow as many open files as may be: the usual soft limit is below two thousand streams."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415  # not there on Windows

        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def gone(parent: int | None, first: int) -> bool:
    """Whether the process has ended; our own parent may linger as a zombie, so a change of parent tells too."""
    if parent is None:
        return False
    if parent == first and os.getppid() != first:
        return True
    try:
        os.kill(parent, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
