"""A command's sessions as a part of a longer process: ended from outside without losing what flies."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from eyas.engine.run import Engine

T = TypeVar("T")


@dataclass(slots=True)
class Stoppable:
    """Runs a coroutine of sessions (`run_config`), and ends it in order; `begin` is to be told of each session's engine.

    `asked`: how often it was to end.
    """

    asked: int = 0
    _engine: Engine | None = None
    _task: asyncio.Task[Any] | None = None

    def begin(self, engine: Engine) -> None:
        """A session starts; one that comes after the wish to end starts nothing."""
        self._engine = engine
        for _ in range(self.asked):
            engine.interrupt()

    def interrupt(self) -> None:
        """First call: start nothing more and let what flies land. Second call: end what flies, keeping its text.

        Before the first session has begun there is nothing to keep, and it ends at once.
        """
        self.asked += 1
        if self._engine is not None:
            self._engine.interrupt()
        elif self._task is not None:
            self._task.cancel()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it to its end. Cancelled, it ends what flies, keeping its text, and is over when that is durable.

        Cancelled once more, it lets go at once, as if it were killed: the next session takes over what it left.
        """
        self._task = task = asyncio.create_task(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            while self.asked < 2 and not task.done():
                self.interrupt()
            try:
                await asyncio.wait([task])
            finally:
                task.cancel()
            raise
