"""`eyas report`."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from eyas import config as configs
from eyas.api.exporting import loader
from eyas.api.reporting import put
from eyas.cli.refresh import every
from eyas.cli.say import say
from eyas.errors import UsageError
from eyas.report.document import Report
from eyas.report.page import html
from eyas.survey import Survey, Wanted
from eyas.survey.tables import HEADS, tables

OUT = Path("report.html")
SHARE = 0.05
"""Of its time a watching report spends on judging answers at most, and as much on all else; a run beside it has the rest."""
NICE = 19
_MARK = b"eyas report"
_LOOKED_AT = 4096


@dataclass(frozen=True, slots=True)
class Places:
    """Where a report goes: a page, a folder of tables, stdout. `force`: files that are not ours may be replaced."""

    page: Path | None
    folder: Path | None
    stdout: bool
    force: bool

    def check(self) -> None:
        """Look before the work begins whether each may be written; raises UsageError where a file would be lost."""
        if self.page is not None and not self.force and not _ours(self.page, _MARK):
            raise UsageError(
                f"{self.page} is there and no report of eyas: give another --out, or --force to replace it"
            )
        if self.folder is None or self.force:
            return
        for name, head in HEADS.items():
            path = self.folder / name
            if not _ours(path, head.encode()):
                raise UsageError(f"{path} is there and no table of a report: give another folder to --csv, or --force")

    def write(self, report: Report, refresh: float | None = None) -> None:
        """Write all; `refresh`: after so many seconds the page loads itself anew.

        Raises:
            StorageError: a file could not be written.
        """
        if self.page is not None:
            put(self.page, html(report, refresh=refresh))
        if self.folder is not None:
            for name, text in tables(report).items():
                put(self.folder / name, text)
        if self.stdout:
            print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())

    @property
    def words(self) -> str:
        """The files, for people."""
        names = [str(self.page)] if self.page is not None else []
        names += [f"{len(HEADS)} tables in {self.folder}"] if self.folder is not None else []
        return " and ".join(names)


def command(
    rundirs: tuple[Path, ...],
    out: Path | None,
    no_text: bool,
    as_json: bool,
    folder: Path | None,
    activity: Path | None,
    watch: bool,
    seconds: float,
    workers: int | None,
    force: bool,
) -> None:
    """Do what `eyas report` says (declared/look.py)."""
    if watch and as_json:
        raise UsageError("--watch writes files again and again, --json prints once: leave one of them away")
    places = Places(out or (None if as_json or folder else OUT), folder, as_json, force)
    places.check()
    wanted = Wanted(text=not no_text, activity=activity, workers=workers or (1 if watch else None))
    load = loader(configs.frozen(rundirs[0]))
    survey = Survey(rundirs, cache(load) if wanted.workers == 1 else load, wanted)
    if watch:
        if hasattr(os, "nice"):
            os.nice(NICE)
        report = follow(survey, places, seconds, every(seconds))
    else:
        report = survey.report(time.time())
        places.write(report)
    if places.words:
        say(f"written to {places.words}: {summary(report)}")


def follow(survey: Survey, places: Places, seconds: float, looks: Iterable[None]) -> Report:
    """Write the report at each look while a run goes on, and once when it has ended or there are no more looks (^C).

    Returns:
        The last one. An open page loads itself anew every so many seconds until then.
    """
    pace = Pace()
    report: Report | None = None
    try:
        for _ in looks:
            running = survey.running
            if running and not pace.writes:
                continue
            with pace.measured(anew=not running or pace.judges) as anew:
                report = survey.report(time.time(), anew=anew)
                places.write(report, seconds if running else None)
            if not running:
                return report
    except KeyboardInterrupt:
        pass  # as if the wait had ended
    report = survey.report(time.time(), anew=report is None)
    places.write(report)  # an open page need not wait for more
    return report


class Pace:
    """How often a watching report works: judging and all else each take at most SHARE of the time."""

    def __init__(self) -> None:
        self._judge_after = self._write_after = 0.0

    @property
    def judges(self) -> bool:
        """Whether answers may be judged again."""
        return time.monotonic() >= self._judge_after

    @property
    def writes(self) -> bool:
        """Whether the report may be written again."""
        return time.monotonic() >= self._write_after

    @contextmanager
    def measured(self, *, anew: bool) -> Generator[bool]:
        """Measure one report, `anew` with the answers judged; when the next one may come depends on it."""
        began = time.process_time()
        yield anew
        free = time.monotonic() + (time.process_time() - began) / SHARE
        if anew:
            self._judge_after = free
        else:
            self._write_after = free


def summary(report: Report) -> str:
    """The first figures in words."""
    first = report.headline
    paid = f", ${first.paid_usd:.2f} paid" if first.paid_usd else ""
    answers = f"{first.answers:,} of {first.prompts:,} answers"
    return f"{report.state}, {answers}, {first.supervised_tokens:,} supervised tokens{paid}"


def _ours(path: Path, mark: bytes) -> bool:
    """Whether nothing of others stands there."""
    try:
        with path.open("rb") as file:
            return mark in file.read(_LOOKED_AT)
    except FileNotFoundError:
        return True
    except OSError:
        return False
