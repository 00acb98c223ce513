"""A journal that keeps a checkpoint of the State beside its events while they are written, a little at a time.

Attempts whose cost is known and works that ended rarely change again: they go into a piece of their own once. What is on
the move stands in the head, which is small and written anew each time. So the loop never waits long, a killed process
leaves a checkpoint that is some seconds old, and nothing is written twice that need not be.
"""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Iterable
from itertools import islice
from typing import TypeVar

from eyas.events import AnyEvent
from eyas.journal.checkpoint import Kept, encode, head_of, pack
from eyas.journal.index import Index
from eyas.journal.write import Journal, Payload
from eyas.state import State, Touched
from eyas.types import DraftText

T = TypeVar("T")
PIECE = 3000
"""Most attempts, works, labels and prompts of a piece, which is written when there is half of that: a few milliseconds of the
loop."""
HEAD = 8
"""Pieces to a head, which takes longer the more is in flight: a resume folds at most the events of so many."""
APART = 64
"""Events between two pieces at least: a backlog of them never holds the loop for long."""


class Keeper:
    """A `Log` that writes to a journal. The caller applies each event to the state before it is written.

    `state` and `index` are the fold of all that the journal holds; `kept` is the checkpoint that they were loaded from, None
    where all is to be kept anew.
    """

    def __init__(self, journal: Journal, state: State, index: Index, kept: Kept | None) -> None:
        self._journal, self._state, self._index = journal, state, index
        self._crcs = list(kept.crcs) if kept else []
        if state.touched is None or kept is None:
            state.touched = _everything(state)
        self._touched = state.touched
        self._moving = 0
        self._since = 0
        self._ahead = 0

    def write(self, event: AnyEvent, payload: Payload = None) -> Awaitable[None]:
        """Append one event, as `Journal.write` does."""
        durable = self._journal.write(event, payload)
        self._index.note(self._journal.last, event)
        self._since += 1
        if self._since >= APART and _size(self._touched) >= PIECE // 2 + self._moving:
            self._since = 0
            if self._piece() and self._ahead >= HEAD:
                self._head()
        return durable

    def draft(self, attempt: int, part: int, text: DraftText) -> Awaitable[None]:
        """Keep what an answer in flight gained, as `Journal.draft` does."""
        return self._journal.draft(attempt, part, text)

    def flush(self) -> Awaitable[None]:
        """Awaiting it means that all that was written before is durable."""
        return self._journal.flush()

    def finish(self) -> None:
        """Keep the state as it is now, all of it: at the end of a session, when nothing is in flight."""
        while not self._piece():
            pass
        self._head()

    def _piece(self) -> bool:
        """Write a piece of what rests; whether nothing of that is left."""
        resting = self._resting()
        if _size(resting):
            data = encode(pack(self._state, self._index, resting))
            self._crcs.append(zlib.crc32(data))
            self._journal.keep(len(self._crcs), data)
            self._touched.attempts -= resting.attempts
            self._touched.works -= resting.works
            self._touched.labels -= resting.labels
            self._touched.prompts -= resting.prompts
            self._ahead += 1
        if _size(resting) >= PIECE:
            return False
        self._moving = _size(self._touched)
        return True

    def _head(self) -> None:
        """Write the head: from now on the pieces that there are, and what is on the move, are the checkpoint."""
        self._ahead = 0
        self._journal.keep(0, head_of(self._state, self._index, self._touched, self._journal.last, self._crcs))

    def _resting(self) -> Touched:
        """Some of what was touched and is not on the move, at most a piece; of what is on the move only what is too much."""
        state, touched = self._state, self._touched
        busy, works = state.pending_cost, state.works
        found = Touched()
        _take(found.labels, touched.labels, PIECE)
        _take(found.prompts, touched.prompts, PIECE - _size(found))
        _take(found.attempts, (each for each in touched.attempts if each not in busy), PIECE - _size(found))
        ended = (each for each in touched.works if each not in works or not works[each].owed)
        _take(found.works, ended, PIECE - _size(found))
        if not _size(found) and _size(touched) > 2 * PIECE:
            _take(found.attempts, touched.attempts, PIECE)
            _take(found.works, touched.works, PIECE - _size(found))
        return found


def _take(into: set[T], found: Iterable[T], most: int) -> None:
    into.update(islice(found, most))


def _size(touched: Touched) -> int:
    return len(touched.attempts) + len(touched.works) + len(touched.labels) + len(touched.prompts)


def _everything(state: State) -> Touched:
    prompts = {
        (name, prompt_id)
        for name, known in state.datasets.items()
        for table in (known.prompts, known.gone, known.forgotten)
        for prompt_id in table
    }
    return Touched(set(state.attempts), set(state.works), set(state.labels), prompts)
