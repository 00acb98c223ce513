"""The live view of a run that this process carries. Imports rich: load it only where a view is shown."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TextIO

from eyas.cli.listener import Carried, Progress
from eyas.cli.screen import Screen
from eyas.report.live.frame import Frame
from eyas.report.live.recent import Recent
from eyas.report.live.rows import Glyphs
from eyas.report.live.snapshot import snapshot
from eyas.report.live.view import view
from eyas.report.summary import standing


class Live(Progress):
    """A frame on the terminal, from the first session of the command until `stack` is closed."""

    def __init__(self, stream: TextIO, stack: ExitStack) -> None:
        self._stream = stream
        self._stack = stack
        self._sessions: list[tuple[Carried, Recent]] = []
        self._screen: Screen | None = None
        self._over = False

    def begin(self, session: Carried) -> None:
        """Hear all events of the session from now on, and show it."""
        recent = Recent.of(session.books.state)
        session.books.fold = recent.take
        self._sessions = [(session, recent)]
        if self._screen is None:
            self._screen = self._stack.enter_context(Screen(self._stream, self._frame))
            self._stack.callback(self._end)

    def tick(self, session: Carried) -> None:
        """Draw, if it is time."""
        if self._screen is not None:
            self._screen.show()

    def _end(self) -> None:
        """The last frame, which the screen draws as it closes, shows how the run ended."""
        self._over = True

    def _frame(self, width: int, height: int, glyphs: Glyphs) -> Frame:
        (session, recent), *_ = self._sessions
        where = standing(recent.state, running=not self._over)
        pulse = None if self._over else session.pulse
        return view(snapshot(recent, pulse, session.books.world.wall(), where), width, height, glyphs)
