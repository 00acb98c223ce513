"""The response cache: a finished answer repeated for the identical body and key, for a while (pure)."""

from __future__ import annotations

from collections import deque

import msgspec

from eyas.sim.providers import Provider
from eyas.sim.text import Answer


class Cached(msgspec.Struct, frozen=True):
    """A finished answer; it may be given from `since` (it may finish when the client is gone) until `until`."""

    source: str
    provider: Provider
    answer: Answer
    thinking: bool
    since: float
    until: float


class ResponseCache:
    """Answers by (key, sha256 of the body)."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, str], Cached] = {}
        self._order: deque[tuple[float, tuple[str, str]]] = deque()

    def find(self, key: str, body_sha256: str, now: float) -> Cached | None:
        """The answer that may be repeated now."""
        found = self._answers.get((key, body_sha256))
        return found if found and found.since <= now < found.until else None

    def store(self, key: str, body_sha256: str, cached: Cached, now: float) -> None:
        """Keep a finished answer."""
        while self._order and self._order[0][0] <= now:
            old = self._order.popleft()[1]
            if old in self._answers and self._answers[old].until <= now:
                del self._answers[old]
        self._answers[key, body_sha256] = cached
        self._order.append((cached.until, (key, body_sha256)))
