"""How a command shows the run that it carries: as a live view, as lines now and then, or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from typing import TextIO

from eyas.cli.listener import Carried, Progress
from eyas.report.progress import Line

LINES, LINES_SEEN = 10.0, 2.0
"""Seconds between two lines: where there is no terminal, and where there is one."""


class Show(StrEnum):
    """What is shown of a run while it goes on."""

    LIVE = "live"
    PLAIN = "plain"
    NONE = "none"


def shows(wish: str | None, stream: TextIO, environment: Mapping[str, str] = os.environ) -> Show:
    """What a stream can show of what is wished: live needs a terminal that moves its cursor, and is the default there."""
    if wish in (Show.PLAIN, Show.NONE):
        return Show(wish)
    return Show.LIVE if stream.isatty() and environment.get("TERM", "") not in ("", "dumb") else Show.PLAIN


class Plain(Progress):
    """A line now and then."""

    def __init__(self, stream: TextIO) -> None:
        self._line = line_of(stream)

    def tick(self, session: Carried) -> None:
        """Write a line, if it is time."""
        books, pulse = session.books, session.pulse
        end = pulse.end(books.world.wall()) if pulse else None
        self._line.tick(books.state, session.in_flight, books.last_error, end)


@contextmanager
def progress(wish: str | None = None) -> Generator[Progress]:
    """What shows the run on stderr, until the context ends; `wish`: live, plain, none, or the best that it can show."""
    with ExitStack() as stack:
        match shows(wish, sys.stderr):
            case Show.LIVE:
                from eyas.cli.live import Live  # noqa: PLC0415  # loads rich, which is for who looks at a terminal

                yield Live(sys.stderr, stack)
            case Show.PLAIN:
                yield Plain(sys.stderr)
            case Show.NONE:
                yield Progress()


def line_of(stream: TextIO) -> Line:
    """Writes lines about a run to a stream."""
    return Line(stream, every=LINES_SEEN if stream.isatty() else LINES)
