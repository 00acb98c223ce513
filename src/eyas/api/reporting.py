"""`eyas.report`: what run directories have to tell, as values and as the offline page."""

from __future__ import annotations

import os
import time
from pathlib import Path

from eyas import config as configs
from eyas.api.exporting import Paths, folders_of, loader
from eyas.errors import StorageError
from eyas.report.document import Report
from eyas.report.page import html
from eyas.survey import Survey, Wanted


def report(
    rundirs: Paths,
    out: str | os.PathLike[str] | None = None,
    *,
    text: bool = True,
    activity: str | os.PathLike[str] | None = None,
    workers: int | None = 1,
) -> Report:
    """Gather the figures of one or several run directories, which may still be going on; nothing in them is changed.

    Args:
        rundirs: the directories, of the same target.
        out: write the page of `eyas report` here, in place of what is there; None: write none.
        text: whether answers to read, and the words of errors, are in it.
        activity: a file with what OpenRouter's activity endpoint said, to be held against our own books.
        workers: processes that judge the answers; None: as many as there are cores. A script that asks for more than one
            needs `if __name__ == "__main__":`.

    Returns:
        What the page shows and `eyas report --json` prints, as values (docs/report.md).

    Raises:
        UsageError: no run directory, runs of different targets, or an activity file that cannot be read.
        StorageError: a run could not be read, or the page not be written.
    """
    folders = folders_of(rundirs)
    wanted = Wanted(text=text, activity=None if activity is None else Path(activity), workers=workers)
    found = Survey(folders, loader(configs.frozen(folders[0])), wanted).report(time.time())
    if out is not None:
        put(Path(out), html(found))
    return found


def put(path: Path, text: str) -> None:
    """Write a file whole or not at all: its readers never see half of one.

    Raises:
        StorageError: it could not be written.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(text, encoding="utf-8", newline="")
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise StorageError(
            f"{path} could not be written ({error.strerror}): make room, or name another place"
        ) from error
