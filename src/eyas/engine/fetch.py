"""Answers cut on our side and finished on the provider's: fetched whole out of the API's response cache.

Most providers run on when a stream ends, and bill the whole answer of which we kept the first part. OpenRouter keeps what
they finish for the identical body. Nobody may pay for it twice, so such an answer is asked for only once a lost answer has
come back in this session, first few at a time; one that is not in the cache is ended before it streams, and is the last of
its endpoint.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from eyas.engine.admit import Candidate
from eyas.engine.recover import Repeat
from eyas.plan import Route
from eyas.providers.cancel import stops
from eyas.state import Attempt, State
from eyas.types import Verdict

SURE_HITS = 1
"""Lost answers that must have come out of the cache before one of which a part is kept is asked for."""

FEWEST = 64
"""Tokens that a provider must have billed beyond those that we kept: it ran on."""


@dataclass(slots=True)
class Fetches:
    """What may be fetched in one session.

    Attributes:
        cut: by attempt, whose part is kept and whose cost is not known yet.
        ready: those that the provider ran on with.
        hits: answers that came out of the cache.
        flying: fetches under way.
        missed: endpoints of which one was not there, by tag.
    """

    cut: dict[int, Candidate] = field(default_factory=dict[int, Candidate])
    ready: deque[tuple[Candidate, Repeat]] = field(default_factory=deque[tuple[Candidate, Repeat]])
    hits: int = 0
    flying: int = 0
    missed: set[str] = field(default_factory=set[str])

    def known(self, attempt: Attempt, now: float) -> None:
        """The cost of an attempt became known, and with it how far its provider ran."""
        candidate = self.cut.pop(attempt.id, None)
        if candidate is not None and ran_on(attempt):
            self.ready.append((candidate, Repeat(attempt.mark, attempt.tag, now, fetch=True)))

    def landed(self, tag: str, *, hit: bool, fetch: bool) -> None:
        """A body that was sent before was answered: out of the cache, or not."""
        self.hits += hit
        self.flying -= fetch
        if fetch and not hit:
            self.missed.add(tag)

    def release(self) -> list[tuple[Candidate, Repeat]]:
        """Those to ask for now: never more under way than hits so far."""
        found: list[tuple[Candidate, Repeat]] = []
        while self.ready and SURE_HITS <= self.hits > self.flying:
            candidate, repeat = self.ready.popleft()
            if repeat.tag not in self.missed:
                found.append((candidate, repeat))
                self.flying += 1
        return found


def cut_short(state: State, attempt: Attempt, route: Route) -> bool:
    """Whether an attempt's part of an answer is its work's, and its provider goes on when a stream ends."""
    settled = attempt.settled
    partial = settled is not None and settled.verdict is Verdict.PARTIAL and attempt.cost is None
    standing = bool(attempt.mark) and state.work(attempt.work).answer == attempt.id
    return partial and standing and not any(map(stops, route.endpoints))


def ran_on(attempt: Attempt) -> bool:
    """Whether the provider billed clearly more than what we kept."""
    kept = attempt.settled.tokens if attempt.settled else 0
    return attempt.counts is not None and attempt.counts[1] - kept >= FEWEST
