"""The works that wait to be asked: one pool over all datasets. Pure; the clock is handed in as `now` (seconds, monotonic)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from eyas.engine.recover import Repeat
from eyas.types import Prompt, Work


class Candidate(NamedTuple):
    """A work, its prompt, and what our count of the prompt is."""

    work: Work
    prompt: Prompt
    tokens: int


@dataclass(slots=True)
class Window:
    """Works of one dataset that are asked out of their order, since all of them are certain to be asked.

    `first` go before `others`. `places` are those of all of them in the pool's order, ascending: they say when it is the
    dataset's turn, which so does not depend on which of its works is next.
    """

    first: deque[Candidate] = field(default_factory=deque[Candidate])
    others: deque[Candidate] = field(default_factory=deque[Candidate])
    places: deque[int] = field(default_factory=deque[int])

    def __len__(self) -> int:
        return len(self.first) + len(self.others)


@dataclass(slots=True)
class Pool:
    """Works to ask: rejected ones first, then each dataset's: those of its window, then the `fresh` ones in their order.

    `repeats` are bodies to send again; a work that has one waits for its time, in `later` once that was seen.
    """

    fresh: dict[str, deque[tuple[int, Candidate]]] = field(default_factory=dict[str, deque[tuple[int, Candidate]]])
    again: deque[Candidate] = field(default_factory=deque[Candidate])
    avoid: dict[Work, set[str]] = field(default_factory=dict[Work, set[str]])
    repeats: dict[Work, Repeat] = field(default_factory=dict[Work, Repeat])
    windows: dict[str, Window] = field(default_factory=dict[str, Window])
    later: list[Candidate] = field(default_factory=list[Candidate])
    _places: int = 0
    _due: float = math.inf
    _mixed: bool = False

    @classmethod
    def of(cls, candidates: Iterable[Candidate]) -> Pool:
        """A pool of works in the order given."""
        pool = cls()
        for place, candidate in enumerate(candidates):
            pool.fresh.setdefault(candidate.work.dataset, deque()).append((place, candidate))
            pool._places = place
        return pool

    def add(self, candidate: Candidate) -> None:
        """One more, behind all others of its dataset."""
        self._places += 1
        self.fresh.setdefault(candidate.work.dataset, deque()).append((self._places, candidate))

    def give_up(self, wanted: Callable[[Candidate], bool]) -> list[Candidate]:
        """Take out the works that wait, were not rejected before, and are wanted elsewhere."""
        found: list[Candidate] = []
        for name in self.fresh:
            waiting = self._waiting(name)
            found += [candidate for _, candidate in waiting if wanted(candidate)]
            self.fresh[name] = deque(each for each in waiting if not wanted(each[1]))
            self.windows.pop(name, None)
        return found

    def _waiting(self, name: str) -> list[tuple[int, Candidate]]:
        """The works of a dataset's window and after it, with their places."""
        window = self.windows.get(name) or Window()
        return [*zip(window.places, (*window.first, *window.others), strict=True), *self.fresh[name]]

    @property
    def size(self) -> int:
        """How many works wait."""
        return len(self.again) + len(self.later) + sum(map(self.unasked, self.fresh))

    def unasked(self, name: str) -> int:
        """How many works of a dataset wait that were not rejected before."""
        window = self.windows.get(name)
        return len(self.fresh.get(name, ())) + (len(window) if window else 0)

    def put_back(self, candidate: Candidate, avoid: str = "") -> None:
        """Ask it again, before any fresh one; not on the route `avoid` if there is another."""
        self.again.append(candidate)
        self._mixed |= candidate.work in self.repeats
        if avoid:
            self.avoid.setdefault(candidate.work, set()).add(avoid)

    def go_on(self, candidate: Candidate) -> None:
        """The next turn of a conversation: before the others of its dataset, so that what was begun is finished first."""
        name = candidate.work.dataset
        queue = self.fresh.setdefault(name, deque())
        window = self.windows.setdefault(name, Window())
        places = window.places or (place for place, _ in queue)
        window.places.appendleft(next(iter(places), 0))
        window.first.appendleft(candidate)

    def bring_forward(self, name: str, count: int, likely_long: Callable[[Candidate], bool]) -> None:
        """Take so many works of a dataset from the front of its order into its window."""
        queue, window = self.fresh[name], self.windows.setdefault(name, Window())
        for _ in range(min(count, len(queue))):
            place, candidate = queue.popleft()
            window.places.append(place)
            (window.first if likely_long(candidate) else window.others).append(candidate)

    def ask_again(self, repeats: Mapping[Work, Repeat]) -> None:
        """Have lost answers asked for by the bodies that may have brought them, each when its time has come."""
        self.repeats |= repeats
        self._mixed = True
        for name, queue in self.fresh.items():
            self.again.extend(candidate for _, candidate in queue if candidate.work in repeats)
            self.fresh[name] = deque(item for item in queue if item[1].work not in repeats)

    def now_due(self, work: Work, mark: str, now: float) -> None:
        """The attempt with that mark is over for its provider too: a repeat of its body need not wait any more."""
        repeat = self.repeats.get(work)
        if repeat and repeat.mark == mark:
            self.repeats[work] = replace(repeat, after=min(repeat.after, now))
            self._due = min(self._due, now)

    def waiting(self, wanted: Callable[[str], bool]) -> bool:
        """Whether any work of a wanted dataset waits that is owed: one that is only fetched is not."""
        again = (c for works in (self.again, self.later) for c in works if not self.fetched(c.work))
        return any(wanted(c.work.dataset) for c in again) or any(
            self.unasked(name) and wanted(name) for name in self.fresh
        )

    def fetched(self, work: Work) -> bool:
        """Whether only what the API's cache holds of it is wanted."""
        repeat = self.repeats.get(work)
        return repeat is not None and repeat.fetch

    def heads(self, now: float, progress: Callable[[str], float] = lambda _: 0.0) -> Iterator[Candidate]:
        """What may be next, in order: the works to ask again whose time has come, then each dataset's first one.

        Of the datasets the one with the least progress comes first, and of equals the one whose turn it is in the order.
        The pool must not change while it is read, but for the one that is taken last.
        """
        self._sort_out(now)
        yield from self.again
        yield from (candidate for _, _, candidate in sorted(self._fresh_heads(progress), key=lambda head: head[:2]))

    def sooner_or_later(self) -> Iterator[Candidate]:
        """What may be next when its time has come."""
        yield from (*self.again, *self.later)
        yield from (candidate for _, _, candidate in self._fresh_heads(lambda _: 0.0))

    def take(self, candidate: Candidate) -> None:
        """It starts."""
        name = candidate.work.dataset
        queue, window = self.fresh.get(name), self.windows.get(name) or Window()
        if queue and queue[0][1] is candidate:
            queue.popleft()
            return
        for works in (window.first, window.others):
            if works and works[0] is candidate:
                works.popleft()
                window.places.popleft()
                return
        self.again.remove(candidate)

    def _fresh_heads(self, progress: Callable[[str], float]) -> Iterator[tuple[float, int, Candidate]]:
        for name, queue in self.fresh.items():
            window = self.windows.get(name)
            if window:
                yield progress(name), window.places[0], (window.first or window.others)[0]
            elif queue:
                yield progress(name), *queue[0]

    def _sort_out(self, now: float) -> None:
        """Lay apart what must wait, so that thousands of such works are not looked at for every request."""
        if now >= self._due:
            self.again.extend(self.later)
            self.later, self._due, self._mixed = [], math.inf, True
        if not self._mixed:
            return
        self._mixed = False
        ready: deque[Candidate] = deque()
        for candidate in self.again:
            repeat = self.repeats.get(candidate.work)
            if repeat is None or repeat.after <= now:
                ready.append(candidate)
            else:
                self.later.append(candidate)
                self._due = min(self._due, repeat.after)
        self.again = ready
