"""`filter = "keep.py:keep"`: the user's own function, asked of every row before anything else is done with it."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import msgspec

from eyas.errors import UsageError
from eyas.prompts.read import Row, decode

RowFilter = Callable[[Row], Row | None]
"""Gives the row that is to be shaped, or None where it is left out."""

_RAISED = (Exception, SystemExit)
"""What the user's code may raise. A script that calls `sys.exit` must not end the run as if all were well."""


def row_filter(spec: str, base: Path) -> RowFilter:
    """The function that `filter` names, as `FILE.py:FUNCTION`, with FILE relative to `base`.

    The function takes the row as a dict. False or None leaves it out, True keeps it, a dict takes its place.

    Raises:
        UsageError: the file cannot be read or run, or has no such function. The filter raises it too, with file and line of
            the row, where the function raises or gives something else.
    """
    name, _, function = spec.rpartition(":")
    found = getattr(_module(name, base), function, None)
    if not callable(found):
        raise UsageError(f"filter: {name} has no function {function}: define it, or name another one")
    keep = cast("Callable[[dict[str, Any]], object]", found)

    def ask(row: Row) -> Row | None:
        try:
            answer = keep(row.data)
        except _RAISED as error:
            raise UsageError(
                f"{row.file}, line {row.line}: filter {spec} raised {_named(error, base / name)}: mend the function, or have "
                "it leave such a row out"
            ) from error
        return _taken(answer, row, spec)

    return ask


def _taken(answer: object, row: Row, spec: str) -> Row | None:
    if answer is None or answer is False:
        return None
    if answer is True:
        return row
    if not isinstance(answer, dict):
        raise UsageError(
            f"{row.file}, line {row.line}: filter {spec} gave {answer!r:.60}: return True, False, None, or the row to take "
            "as a dict"
        )
    try:
        return Row(decode(msgspec.json.encode(answer)), row.file, row.line)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"{row.file}, line {row.line}: filter {spec} gave a row that is no JSON ({error}): use text, numbers, lists and "
            "dicts only"
        ) from error


def _module(name: str, base: Path) -> ModuleType:
    path = base / Path(name).expanduser()
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)  # noqa: S102 - the user names it to be run
    except OSError as error:
        raise UsageError(
            f"filter: {name} cannot be read ({error}): name a Python file, absolute or relative to {base}"
        ) from error
    except _RAISED as error:
        raise UsageError(f"filter: {name} cannot be run: it raised {_named(error, path)}: mend it") from error
    return module


def _named(error: BaseException, path: Path) -> str:
    """The error, and the last line of the user's file that it went through."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    where = f" ({path.name}, line {lines[-1]})" if lines else ""
    return f"{type(error).__name__}: {error}{where}"
