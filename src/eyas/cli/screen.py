"""The one place that draws on a terminal while a command goes on: a frame, four times a second at most, messages above it.

Nobody waits for the terminal: what it does not take at once (a user pressed ^S, a slow line) is sent later, and frames are
left out meanwhile. A run must not lose its streams because nobody reads.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self, TextIO, cast

from rich.console import Console
from rich.live import Live
from rich.text import Text

from eyas.report.live.frame import Frame
from eyas.report.live.rows import ASCII, UNICODE, Glyphs

EVERY = 0.25
"""Seconds between two frames at least."""
SHARE = 0.03
"""Of the process's time that drawing may take: a frame that takes long is drawn less often."""
SHOWN = 30.0
"""Seconds that a message keeps its place above the frame."""
MOST_MESSAGES = 6
"""Lines of messages that keep a place."""
LEAST_HEIGHT = 6
"""Lines that are left to the frame whatever is said."""

Draw = Callable[[int, int, Glyphs], Frame]
"""Makes the frame for so many columns and lines."""

_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""What stands between is shown at once, by terminals that know it; others pass over it."""
_HOME = "\x1b[H\x1b[J"


class Terminal(io.TextIOBase):
    """The terminal behind a stream, written to without ever waiting; what it does not take yet is kept."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._left = b""
        try:
            # A description of its own: to set the shared one to non-blocking would change the shell's, too.
            self._own: int | None = os.open(
                os.ttyname(stream.fileno()), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
            )
        except OSError:
            self._own = None  # the terminal has no name here, as in some containers

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a property in io too, by its documentation
        """That of the stream."""
        return self._stream.encoding or "utf-8"

    def isatty(self) -> bool:
        """It is one."""
        return True

    def fileno(self) -> int:
        """The stream's."""
        return self._stream.fileno()

    def write(self, text: str) -> int:
        """Keep text for the next flush."""
        self._left += text.encode(self.encoding, "replace")
        return len(text)

    def flush(self) -> None:
        """Write as much as the terminal takes."""
        try:
            while self._left:
                self._left = self._left[os.write(self.fileno() if self._own is None else self._own, self._left) :]
        except BlockingIOError:
            return
        except OSError:
            self._left = b""  # the terminal is gone: nobody is there to be told

    @property
    def free(self) -> bool:
        """Whether it has taken all."""
        self.flush()
        return not self._left

    def end(self) -> None:
        """Write all that is left, waiting for it."""
        if self._own is not None:
            os.set_blocking(self._own, True)
        self.flush()
        if self._own is not None:
            os.close(self._own)
            self._own = None

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines."""
        try:
            found = os.get_terminal_size(self.fileno())
        except OSError:
            return 80, 24
        return found.columns or 80, found.lines or 24


class Messages(io.TextIOBase):
    """Stands in for stderr while a frame is on the terminal: lines wait here to be written above it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._begun = ""
        self._lines: deque[str] = deque()

    def write(self, text: str) -> int:
        """Take text; lines are whole at their end."""
        *whole, self._begun = (self._begun + text).split("\n")
        self._lines.extend(whole)
        return len(text)

    def isatty(self) -> bool:
        """As the stream that it stands in for."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """The stream's."""
        return self._stream.fileno()

    def take(self) -> Iterator[Text]:
        """The lines that wait, each once."""
        while self._lines:
            yield _inert(self._lines.popleft())

    def close_line(self) -> None:
        """A line that was begun is whole."""
        if self._begun:
            self.write("\n")


class Screen:
    """A frame on a terminal, for as long as the context is open; stderr is written above it. At the end the last frame stays."""

    def __init__(self, stream: TextIO, draw: Draw, clock: Callable[[], float] = time.monotonic) -> None:
        self._draw = draw
        self._clock = clock
        self._terminal = Terminal(stream)
        utf = self._terminal.encoding.lower().replace("-", "").startswith("utf")
        self._glyphs = UNICODE if utf else ASCII
        file = cast("TextIO", self._terminal)
        self._console = Console(file=file, force_terminal=True, highlight=False, markup=False, emoji=False)
        self._live = Live(console=self._console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
        self._messages = Messages(sys.stderr)
        self._stderr: Any = None
        self._said: deque[tuple[float, Text]] = deque(maxlen=MOST_MESSAGES)
        self._size = self._terminal.size
        self._next = 0.0

    def __enter__(self) -> Self:
        """Begin: nothing is drawn before the first `show`."""
        self._console.size = self._size
        self._live.start()
        if sys.stderr.isatty():
            self._stderr, sys.stderr = sys.stderr, self._messages
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        """Draw a last time, show the cursor, give stderr back."""
        if self._stderr is not None:
            self._messages.close_line()
            sys.stderr = self._stderr
        with contextlib.suppress(OSError):
            self._show()
        self._live.stop()
        self._terminal.end()

    def show(self) -> None:
        """Draw, if it is time."""
        began = self._clock()
        if began < self._next or not self._terminal.free:
            return
        self._show()
        took = self._clock() - began
        self._next = began + max(EVERY, took / SHARE)

    def _show(self) -> None:
        now, fresh = self._clock(), list(self._messages.take())
        self._said.extend((now, line) for line in fresh)
        while self._said and now - self._said[0][0] > SHOWN:
            self._said.popleft()
        size, former = self._terminal.size, self._size
        self._terminal.write(_BEGIN)
        if size != former:  # what the terminal made of the old lines nobody knows: begin anew
            self._size = self._console.size = size
            self._terminal.write(_HOME)
            fresh = [line for _, line in self._said]
        width, height = size
        above = sum(1 + max(0, line.cell_len - 1) // width for _, line in self._said)
        frame = self._draw(width, max(min(LEAST_HEIGHT, height), height - above), self._glyphs)
        self._live.update(frame, refresh=True)
        if fresh:  # the frame has made room by now: it is written anew below them
            self._console.print(*fresh, sep="\n")
        self._terminal.write("\r" + _END)  # at the end of a full line the terminal's echo of ^C would begin a line more
        self._terminal.flush()


def _inert(line: str) -> Text:
    """A line with its colours; any other code in it is a space."""
    text = Text.from_ansi(line)
    text.plain = "".join(c if c.isprintable() else " " for c in text.plain)
    return text
