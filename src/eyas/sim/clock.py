"""A clock that does not wait: an event loop whose time jumps to the next timer, so that an hour is played in seconds.

Nothing on it may wait for the outside: no socket, no other process. Threads are waited for only as long as a timer runs.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Idle(selectors.DefaultSelector):
    """Where a real loop would sleep, the clock jumps."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready; nothing ever is but the loop's own pipe."""
        if timeout is None:
            raise RuntimeError("deadlock: the run waits for something that will never happen")
        self.now += max(timeout, 0.0)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only when nothing else is to do."""

    def __init__(self) -> None:
        self._idle = _Idle()
        super().__init__(self._idle)

    def time(self) -> float:
        """Virtual seconds."""
        return self._idle.now + 1_000.0


def play(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end in virtual time.

    Raises:
        RuntimeError: it waits for something that no timer brings.
    """
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main())


def now() -> float:
    """Virtual seconds of the running loop."""
    return asyncio.get_running_loop().time()
