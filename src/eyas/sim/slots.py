"""How many answers a provider works on at the same time (pure)."""

from __future__ import annotations

import heapq
from collections import Counter


class Slots:
    """Slots taken by provider tag. Some are freed later by themselves: a provider may run on when the client is gone."""

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()
        self._later: list[tuple[float, str]] = []

    def take(self, tag: str, most: int, now: float) -> bool:
        """Take a slot of that provider, if there is one; `most` 0 is no limit."""
        while self._later and self._later[0][0] <= now:
            self._taken[heapq.heappop(self._later)[1]] -= 1
        if most and self._taken[tag] >= most:
            return False
        self._taken[tag] += 1
        return True

    def free(self, tag: str, at: float) -> None:
        """Give a slot back at that time, now or later."""
        heapq.heappush(self._later, (at, tag))
