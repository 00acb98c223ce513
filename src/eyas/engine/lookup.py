"""Costs that are not known yet: generations looked up with patience, at most a few at a time.

`/generation` answers 404 for half a second to minutes after the end; a provider that a cut did not stop runs on first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, cast

from eyas.backends.openrouter import Generation, OpenRouter
from eyas.errors import EyasError, KeyOrCreditsError
from eyas.events import Corrected
from eyas.state import Attempt
from eyas.transport import Deadlines, Transport, fetch

WAITS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""Seconds before each ask; two minutes in all, then the outcome stays unknown until `eyas reconcile`."""
AT_ONCE = 8
DEADLINES = Deadlines(total=60.0)


@dataclass(slots=True)
class Lookups:
    """Look-ups of one session. `book` takes the correction that a look-up found."""

    transport: Transport
    backend: OpenRouter
    book: Callable[[Corrected], Awaitable[None]]
    wall: Callable[[], float]
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    async def settle(self, attempt: Attempt, waits: tuple[float, ...] = WAITS) -> bool:
        """Look one attempt up until the API knows it; True if its cost is booked now.

        Raises:
            KeyOrCreditsError: the key is refused.
        """
        if not attempt.generation_id:
            return False
        for wait in waits:
            await asyncio.sleep(wait)
            found = await self._ask(attempt.generation_id)
            if found is not None:
                if attempt.cost is None:  # it may have been written off meanwhile
                    await self.book(correction(attempt, found, self.wall()))
                return True
        return False

    async def settle_all(self, attempts: list[Attempt], waits: tuple[float, ...] = WAITS) -> int:
        """Look many up; how many costs are booked now.

        Raises:
            KeyOrCreditsError: the key is refused.
            StorageError: the journal failed.
        """
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self.settle(attempt, waits)) for attempt in attempts]
        except* EyasError as errors:
            raise first_error(errors) from None
        return sum(task.result() for task in tasks)

    async def _ask(self, generation_id: str) -> Generation | None:
        async with self._slots:
            try:
                answer = await fetch(self.transport, self.backend.generation(generation_id), DEADLINES)
                return self.backend.read_generation(*answer)
            except KeyOrCreditsError:
                raise
            except EyasError:
                return None  # unreachable now: the outcome is as unknown as before


def correction(attempt: Attempt, found: Generation, at: float) -> Corrected:
    """The event that books what a look-up found."""
    return Corrected(at=at, attempt=attempt.id, cost=found.cost, counts=found.counts, provider=found.provider)


def first_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error of a task group's, out of the groups around it."""
    found: Any = errors
    while isinstance(found, BaseExceptionGroup):
        found = cast("Any", found).exceptions[0]
    return found
