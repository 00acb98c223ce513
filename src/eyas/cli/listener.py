"""What a session tells whoever shows it."""

from __future__ import annotations

from typing import Protocol

from eyas.engine.settle import Books
from eyas.report.live.pulse import Pulse


class Carried(Protocol):
    """A session that this process carries: an engine, or the coordinator of a run over many machines."""

    books: Books
    pulse: Pulse | None

    @property
    def in_flight(self) -> int:
        """Requests in flight."""
        ...

    def interrupt(self) -> None:
        """First call: start nothing more and let what flies land. Second call: end what flies, keeping its text."""
        ...


class Progress:
    """Shows nothing: what the other ways are told, too."""

    def begin(self, session: Carried) -> None:
        """A session begins."""

    def tick(self, session: Carried) -> None:
        """Time passed."""
