"""The screen of a live view on a real (pseudo) terminal: it is restored, messages stand above it, and nobody waits for it."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import sys
import termios
from collections.abc import Callable, Generator
from contextlib import contextmanager, redirect_stderr
from itertools import count
from pathlib import Path
from typing import TextIO

import pytest
from rich.cells import cell_len

from eyas.cli.progress import Show, shows
from eyas.cli.say import say
from eyas.cli.screen import EVERY, SHOWN, Draw, Messages, Screen
from eyas.report.live.frame import Frame, Piece
from eyas.report.live.rows import Glyphs
from tests.test_fit import Terminal as Seeming

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"


class Pty:
    """A terminal of so many columns and lines, and what was written to it."""

    def __init__(self) -> None:
        self._master, slave = os.openpty()
        os.set_blocking(self._master, False)
        self.stream: TextIO = os.fdopen(slave, "w", encoding="utf-8")
        self.resize(40, 10)

    def resize(self, columns: int, lines: int) -> None:
        """Another size."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self) -> str:
        """What came since."""
        found = b""
        while True:
            try:
                found += os.read(self._master, 65536)
            except (BlockingIOError, OSError):
                return found.decode(errors="replace")

    def close(self) -> None:
        """Give both ends back."""
        self.stream.close()
        os.close(self._master)


@pytest.fixture
def pty() -> Generator[Pty]:
    """A terminal."""
    found = Pty()
    yield found
    found.close()


@contextmanager
def opened(pty: Pty, draw: Draw, clock: Callable[[], float]) -> Generator[Screen]:
    """A screen on that terminal, which stderr goes to as well."""
    with redirect_stderr(pty.stream), Screen(pty.stream, draw, clock) as screen:
        yield screen


def frames(most: int = 99) -> Callable[[int, int, Glyphs], Frame]:
    """Frames as high as they may be, each numbered."""
    numbers = count()

    def draw(width: int, height: int, _: Glyphs) -> Frame:
        lines = [(Piece(f"frame {next(numbers)}"),), *[(Piece("." * width),)] * (height - 1)]
        return Frame.of(lines, width, min(height, most))

    return draw


class Clock:
    """Stands still until it is moved."""

    now = 0.0

    def __call__(self) -> float:
        """Seconds."""
        return self.now

    def show(self, screen: Screen, seconds: float = 1.0) -> None:
        """So much later, have the screen drawn."""
        self.now += seconds
        screen.show()


def test_the_cursor_is_hidden_and_comes_back(pty: Pty) -> None:
    """Also where the command ends by an exception, and stderr is given back."""

    def fail() -> None:
        with opened(pty, frames(), Clock()) as screen:
            screen.show()
            assert isinstance(sys.stderr, Messages)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert not isinstance(sys.stderr, Messages)
    said = pty.read()
    assert said.index(HIDE) < said.index("frame 0") < said.rindex(SHOW)
    assert HIDE not in said[said.rindex(SHOW) :]


def test_the_echo_of_an_interrupt_takes_no_line(pty: Pty) -> None:
    """Whatever was drawn, full lines and messages: the cursor waits where a line begins, so that ^C never wraps."""
    clock = Clock()
    with opened(pty, frames(), clock) as screen:
        for message in ("", "starting nothing more", ""):
            if message:
                say(message)
            clock.show(screen)
            assert re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", pty.read()).endswith(".\r")


def test_a_message_stands_above_the_frame_which_makes_room(pty: Pty) -> None:
    """Its lines are written once, the frame is lower meanwhile, and rises again later."""
    clock, heights = Clock(), []
    with opened(pty, frames(), clock) as screen:
        for seconds, message in ((1.0, ""), (1.0, "starting nothing more"), (1.0, ""), (SHOWN, "")):
            if message:
                say(message)
            clock.show(screen, seconds)
            heights.append(pty.read().rpartition("frame")[2].count("\r\n.") + 1)
    assert heights == [10, 9, 9, 10]


def test_messages_are_whole_in_order_and_inert(pty: Pty) -> None:
    """What is written without a break waits for it; colours pass, other codes do not; nothing is lost at the end."""
    clock = Clock()
    with opened(pty, frames(), clock) as screen:
        print("\x1b[33mnote\x1b[0m: one", "\x1b[2J\x9b31mtwo", sep="\n", end="\nthr", file=sys.stderr)
        clock.show(screen)
        first = pty.read()
        print("ee", file=sys.stderr)
        clock.show(screen)
        print("last", end="", file=sys.stderr)
    second = pty.read()
    assert first.index("note") < first.index("two")
    assert "thr" not in first
    assert not {"\x1b[2J", "\x9b"} & {first[i : i + n] for n in (1, 4) for i in range(len(first))}
    assert "\x1b[33mnote" in first
    assert second.index("three") < second.index("last")
    assert "one" not in first[first.index("two") :]


def test_another_size_begins_anew(pty: Pty) -> None:
    """The screen is cleared, the frame has the new width, and messages that have a place are there again."""
    clock = Clock()
    with opened(pty, frames(), clock) as screen:
        say("a message")
        clock.show(screen)
        assert "a message" in pty.read()
        pty.resize(30, 8)
        clock.show(screen)
        said = pty.read()
    assert said.index("\x1b[H\x1b[J") < said.index("a message")
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said).splitlines()
    assert max(map(cell_len, lines)) == 30


def test_nobody_waits_for_a_terminal_that_is_not_read(pty: Pty) -> None:
    """Frames are left out meanwhile, none is cut in two, and what was begun is finished."""
    clock = Clock()
    with opened(pty, frames(), clock) as screen:
        for _ in range(5000):
            clock.show(screen)
        drawn = 0
        while not screen._terminal.free:
            drawn += pty.read().count("frame")
        clock.show(screen)
        drawn += pty.read().count("frame")
        assert 2 <= drawn < 5000


def test_a_frame_that_takes_long_is_drawn_less_often(pty: Pty) -> None:
    """It may take a small share of the time only."""
    clock, drawn = Clock(), []

    def slow(width: int, height: int, _: Glyphs) -> Frame:
        clock.now += 0.1
        drawn.append(clock.now)
        return Frame.of([(Piece("slow"),)], width, height)

    with opened(pty, slow, clock) as screen:
        for _ in range(400):
            clock.show(screen, EVERY)
            pty.read()
    assert 0.02 < 0.1 * len(drawn) / clock.now < 0.05


def test_what_is_shown_where() -> None:
    """Live on a terminal that moves its cursor, unless another is wished; a pipe has lines whatever is wished."""
    able, dumb = {"TERM": "xterm"}, {"TERM": "dumb"}
    with Path(os.devnull).open("w", encoding="utf-8") as pipe:
        assert [shows(None, pipe, able), shows("live", pipe, able)] == [Show.PLAIN, Show.PLAIN]
        assert [shows(each, Seeming(), able) for each in (None, "live", "plain", "none")] == [
            Show.LIVE, Show.LIVE, Show.PLAIN, Show.NONE,
        ]  # fmt: skip
        assert [shows(None, Seeming(), dumb), shows(None, Seeming(), {})] == [Show.PLAIN, Show.PLAIN]
