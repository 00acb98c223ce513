"""What a session tells whoever shows it."""

from __future__ import annotations

from eyas.engine.run import Engine


class Progress:
    """Shows nothing: what the other ways are told, too."""

    def begin(self, engine: Engine) -> None:
        """A session begins."""

    def tick(self, engine: Engine) -> None:
        """Time passed."""
