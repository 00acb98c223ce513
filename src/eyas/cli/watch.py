"""`eyas watch`."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import msgspec

from eyas.cli.progress import Show, line_of, shows
from eyas.cli.refresh import every
from eyas.cli.say import USUAL, columns_of
from eyas.lock import is_locked, owner
from eyas.records import Run
from eyas.report.live.pulse import FILE, Pulse, current, decode
from eyas.report.live.recent import Recent
from eyas.report.live.snapshot import Snapshot, snapshot
from eyas.report.progress import table
from eyas.report.summary import standing, status

LOOK = 1.0
"""Seconds between two looks at the journal."""
FRAME = 0.25
"""Seconds between two looks at the pulse, and frames."""
TALL = 200
"""Lines of a frame that is printed and not kept on a screen."""


class Watched:
    """A run that another process carries, or none any more: read now and then, never written to."""

    def __init__(self, folder: Path) -> None:
        """Open its journal.

        Raises:
            UsageError: there is no run.
            StorageError: it cannot be read.
        """
        self._folder = folder
        self.running = is_locked(folder)
        self._run = Run(folder)
        self.recent = Recent.of(self._run.state)
        self._next = time.monotonic() + LOOK
        self.looks = 0

    @property
    def pulse(self) -> Pulse | None:
        """What the process that carries it says now; None where none does."""
        if not self.running:
            return None
        try:
            found = decode((self._folder / FILE).read_bytes())
        except (OSError, msgspec.MsgspecError):  # none was written yet, or by another eyas
            return None
        return found if current(found, time.time(), owner(self._folder)) else None

    @property
    def shown(self) -> Snapshot:
        """Where it stands."""
        return snapshot(self.recent, self.pulse, time.time(), standing(self._run.state, running=self.running))

    def look(self) -> bool:
        """Take in what was written, if it is time; gives whether a process still carries the run."""
        if time.monotonic() >= self._next:
            self.running = is_locked(self._folder)  # before the look: what was written until it ended is taken in
            self._run.refresh(self.recent.take)
            self._next = time.monotonic() + LOOK
            self.looks += 1
        return self.running

    def close(self) -> None:
        """Close the journal."""
        self._run.close()


def command(rundir: Path, once: bool) -> None:
    """Show the run in RUNDIR, which another process carries, until it ends."""
    watched = Watched(rundir)
    try:
        if once:
            print_frame(watched)
        elif shows(None, sys.stdout) is Show.LIVE:
            follow(watched)
        else:
            lines(watched)
    except KeyboardInterrupt:
        pass  # to look away is no failure
    finally:
        watched.close()


def follow(watched: Watched) -> None:
    """Keep a frame on the terminal until the run ends."""
    from eyas.cli.screen import Screen  # noqa: PLC0415  # loads rich, which is for who looks at a terminal
    from eyas.report.live.view import view  # noqa: PLC0415  # as above

    drawn: object = None
    with Screen(sys.stdout, lambda width, height, glyphs: view(watched.shown, width, height, glyphs)) as screen:
        for _ in every(FRAME):
            if not watched.look():
                return
            news = (watched.looks, watched.pulse)
            if news != drawn:  # whoever watches beside a run takes as little from it as can be
                drawn = news
                screen.show()


def print_frame(watched: Watched) -> None:
    """Print one frame, with all its lines."""
    from rich.console import Console  # noqa: PLC0415  # as above

    from eyas.report.live.view import view  # noqa: PLC0415  # as above

    width = columns_of(sys.stdout) or int(os.environ.get("COLUMNS", USUAL))
    console = Console(width=width, highlight=False, markup=False, emoji=False)
    console.print(view(watched.shown, width, TALL))


def lines(watched: Watched) -> None:
    """Write a line every ten seconds until the run ends, and then its table."""
    line, state = line_of(sys.stdout), watched.recent.state
    for _ in every(LOOK):
        if not watched.look():
            figures = status(state, running=False)
            print(f"{figures['state']}: {figures['model']}\n{table(figures, columns_of(sys.stdout))}", flush=True)
            return
        pulse, errors = watched.pulse, watched.recent.errors(1)
        flying = pulse.in_flight if pulse else len(state.left_open())
        last = f"{errors[0].tag}: {errors[0].kind}: {errors[0].detail}" if errors else ""
        line.tick(state, flying, last, pulse.end(time.time()) if pulse else None)
