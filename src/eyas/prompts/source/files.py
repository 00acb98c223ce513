"""Which files a source names: one, those of a folder, those that a pattern fits, or standard input."""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import BinaryIO

import msgspec

from eyas.errors import UsageError
from eyas.prompts.source.formats import HEAD, belongs
from eyas.prompts.source.opened import Opened, first
from eyas.prompts.source.unpack import packing_of, unpacked

STDIN = "-"
_PATTERN = re.compile(r"[*?[]")
_BESIDE = frozenset(("dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json"))
"""What `datasets` writes beside the rows of a saved set."""


class SourceFile(msgspec.Struct, frozen=True):
    """A file of a source: its name for the user, and how to open it."""

    name: str
    open: Callable[[], AbstractContextManager[BinaryIO]]


def source_files(source: str, base: Path) -> list[SourceFile]:
    """The files that a source names, in the order of their names.

    Raises:
        UsageError: there are none.
    """
    if source == STDIN:
        return [SourceFile(STDIN, lambda: nullcontext(sys.stdin.buffer))]
    path = _path(source, base)
    try:
        if path.is_dir():
            found = list(_folder(source, path))
        elif _PATTERN.search(source) and not path.exists():
            found = [_file(name, path) for name, path in _matches(source, base) if path.is_file()]
        else:
            return [_file(source, path)]
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise UsageError(_unreadable(source, error, base)) from error
    if not found:
        raise UsageError(f"{source}: names no file of rows: check the name; a relative one starts from {base}")
    return found


def _path(source: str, base: Path) -> Path:
    return base / (Path(source).expanduser() if source.startswith("~/") else Path(source))


def _file(name: str, path: Path) -> SourceFile:
    def opened() -> AbstractContextManager[BinaryIO]:
        try:
            return path.open("rb")
        except (OSError, ValueError) as error:
            raise UsageError(_unreadable(name, error, path.parent)) from error

    return SourceFile(name, opened)


def _unreadable(name: str, error: Exception, base: Path) -> str:
    return f"{name}: cannot be read ({error}): name a file, a folder or a pattern, absolute or relative to {base}"


def _folder(source: str, folder: Path) -> Iterator[SourceFile]:
    """The files of rows below a folder; what is hidden, and what is no file of rows, is passed over."""
    for inside, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(inside) / name
            if not name.startswith(".") and name not in _BESIDE and path.is_file() and belongs(name, _head(path)):
                yield _file(f"{source.rstrip('/')}/{path.relative_to(folder).as_posix()}", path)


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        opened = Opened(file)
        packing = packing_of(first(opened.chunks(), 8)[0])
        return first(unpacked(opened.chunks(), packing), HEAD)[0]


def _matches(source: str, base: Path) -> Iterator[tuple[str, Path]]:
    pattern = str(Path(source).expanduser()) if source.startswith("~/") else source
    for name in sorted(glob.glob(pattern, root_dir=base, recursive=True)):  # noqa: PTH207  # Path's takes no absolute pattern
        yield name, base / name
