"""A run directory that cannot be one is named, with what helps: another place, or more room."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from eyas.errors import StorageError
from eyas.lock import lock


def test_a_file_in_the_way(tmp_path: Path) -> None:
    """No free space helps where a file stands: another [run] dir does."""
    (tmp_path / "file").write_text("here")
    with pytest.raises(
        StorageError, match=r"file/run cannot be written \(Not a directory\): choose another \[run\] dir"
    ):
        lock(tmp_path / "file" / "run").__enter__()


@pytest.mark.parametrize(
    ("number", "says"),
    [(errno.EACCES, "choose another"), (errno.EROFS, "choose another"), (errno.ENOSPC, "free some disk space")],
)
def test_what_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, says: str) -> None:
    """A folder of somebody else wants another place, a full disk wants room."""

    def refused(*_: Any) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(StorageError, match=says):
        lock(tmp_path / "run").__enter__()
