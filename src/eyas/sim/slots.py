"""How many answers a provider works on at the same time, how many requests it takes a second, how busy it is (pure)."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping


class Slots:
    """Slots taken by provider tag. Some are freed later by themselves: a provider may run on when the client is gone.

    `batching`: by tag, the number of answers that halves the speed of each; a provider that is not in it is never slower.
    """

    def __init__(self, batching: Mapping[str, float] | None = None) -> None:
        self._batching = dict(batching or {})
        self._taken: Counter[str] = Counter()
        self._later: list[tuple[float, str]] = []
        self._worked: dict[str, tuple[float, float]] = {}

    def take(self, tag: str, most: int | None, now: float) -> bool:
        """Take a slot of that provider, if there is one; `most` None is no limit."""
        self._settle(now)
        if most is not None and self._taken[tag] >= most:
            return False
        self._change(tag, 1, now)
        return True

    def free(self, tag: str, at: float) -> None:
        """Give a slot back at that time, now or later."""
        heapq.heappush(self._later, (at, tag))

    def pace(self, tag: str) -> float:
        """The share of its full speed at which each answer of a provider comes."""
        size = self._batching.get(tag)
        return 1.0 if size is None else 1.0 / (1.0 + self._taken[tag] / size)

    def worked(self, tag: str, now: float) -> float:
        """Seconds of full speed that each answer of a provider has had by now, on a clock of any origin."""
        if tag not in self._batching:
            return now
        self._settle(now)
        worked, since = self._worked.get(tag, (0.0, now))
        return worked + (now - since) * self.pace(tag)

    def _settle(self, now: float) -> None:
        while self._later and self._later[0][0] <= now:
            at, tag = heapq.heappop(self._later)
            self._change(tag, -1, at)

    def _change(self, tag: str, by: int, at: float) -> None:
        if tag in self._batching:
            worked, since = self._worked.get(tag, (0.0, at))
            # What is freed only now was freed a moment ago: the clock of a provider's work never goes back.
            self._worked[tag] = (worked + max(0.0, at - since) * self.pace(tag), max(at, since))
        self._taken[tag] += by


class Buckets:
    """Requests a second by provider tag: each has the burst of one second."""

    def __init__(self) -> None:
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, tag: str, per_second: float, now: float) -> bool:
        """Take one request, if there is one; `per_second` 0 is no limit."""
        if not per_second:
            return True
        most = max(1.0, per_second)
        left, since = self._left.get(tag, (most, now))
        left = min(most, left + (now - since) * per_second)
        self._left[tag] = (left - 1.0 if left >= 1.0 else left, now)
        return left >= 1.0
