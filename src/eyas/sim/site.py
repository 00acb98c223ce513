"""What the simulator's server serves: a world, or the stand-in of an engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from eyas.sim.reply import Reply


class Kept(Protocol):
    """Books that can be written down."""

    def to_json(self, *, ids: bool) -> dict[str, Any]:
        """All that they hold, ready for JSON; sampled ids on demand."""
        ...


class Site(Protocol):
    """Answers requests."""

    @property
    def books(self) -> Kept:
        """What was asked and answered."""
        ...

    def handle(self, method: str, target: str, headers: Mapping[str, str], data: bytes = b"") -> Reply:
        """The reply to a request; header names are lower case, `target` is the path with its query."""
        ...
