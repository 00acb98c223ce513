"""Which answers are shown: some of each kind, the rarest kinds first, the same ones each time (pure)."""

from __future__ import annotations

from collections import defaultdict
from heapq import heappush, heapreplace
from itertools import zip_longest
from typing import NamedTuple

FEWEST_TOKENS, MOST_TOKENS = 300, 1500
BYTES_A_TOKEN = 8
"""About what a token takes in the page: its text, quotes, a comma."""
BYTES_A_PROMPT = 1500


class Kind(NamedTuple):
    """What tells answers apart for a reader."""

    dataset: str
    provider: str
    label: str
    finish: str


class Shelf:
    """The answers of each kind, the first few by their hash kept."""

    def __init__(self, most: int) -> None:
        """`most` answers of a kind are kept."""
        self._most = most
        self._counts: defaultdict[Kind, int] = defaultdict(int)
        self._kept: defaultdict[Kind, list[tuple[int, int]]] = defaultdict(list)

    def add(self, kind: Kind, place: int, number: int) -> None:
        """An answer of a kind: `place` is its hash, `number` what it is known by."""
        self._counts[kind] += 1
        kept = self._kept[kind]
        if len(kept) < self._most:
            heappush(kept, (-place, -number))
        elif -place > kept[0][0]:
            heapreplace(kept, (-place, -number))

    @property
    def kinds(self) -> int:
        """How many kinds there are."""
        return len(self._kept)

    def order(self) -> list[int]:
        """One answer of each kind, the rarest first, then a second one of each, and so on."""
        kinds = sorted(self._kept, key=lambda kind: (self._counts[kind], kind))
        columns = ([-number for _, number in sorted(self._kept[kind], reverse=True)] for kind in kinds)
        return [number for row in zip_longest(*columns) for number in row if number is not None]


def tokens_each(kinds: int, budget: int) -> int:
    """Tokens that are shown of an answer, so that one of each kind fits into so many bytes."""
    room = budget // max(1, kinds) - BYTES_A_PROMPT
    return max(FEWEST_TOKENS, min(MOST_TOKENS, room // BYTES_A_TOKEN))
