"""What came of the sets of a run: prompts that stay on disk, each once, in an order that files and budgets cannot change."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, compress
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from eyas.prompts.contaminate import Contaminated
from eyas.prompts.order import order_of
from eyas.prompts.read import BadRow
from eyas.prompts.spool import Lazy, Spool
from eyas.prompts.words import Hashes
from eyas.types import Prompt

T = TypeVar("T")
Small = npt.NDArray[np.uint32]


class Picked(Lazy[Prompt]):
    """Some prompts of a longer sequence, in an order: 4 bytes each."""

    def __init__(self, source: Spool[Prompt], which: npt.NDArray[np.integer]) -> None:
        self._source, self._which = source, which.astype(np.uint32)

    def at(self, index: int) -> Prompt:
        """The prompt at that place of the order."""
        return self._source.at(int(self._which[index]))

    def raw(self, index: int) -> bytes:
        """The same as JSON."""
        return self._source.raw(int(self._which[index]))

    def part(self, mask: npt.NDArray[np.bool_]) -> Picked:
        """Those of them that a mask says, in the same order."""
        return Picked(self._source, self._which[mask])

    def __len__(self) -> int:
        return len(self._which)


class Ids(Lazy[str]):
    """Prompt ids, 8 bytes each."""

    def __init__(self, numbers: Hashes) -> None:
        self.numbers = numbers

    @cached_property
    def order(self) -> npt.NDArray[np.intp]:
        """Their places in the order of the numbers."""
        return np.argsort(self.numbers)

    def at(self, index: int) -> str:
        """The id as its 16 hex digits."""
        return f"{int(self.numbers[index]):016x}"

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True, slots=True)
class LoadedSet:
    """What came of one set: rows = len(prompts) + duplicates + len(quarantined) + images + all that was removed.

    Attributes:
        name: the set's.
        prompts: read from disk one at a time, in the order of the seed: a larger quota extends what a smaller one asked.
        ids, tokens: of the prompts, in that order; tokens are the target's own, before the answer.
        rows: read from the source.
        duplicates: rows that are a prompt which another row is already.
        quarantined: rows that cannot be asked, in the order of the file; those that cannot be counted at its end.
        images: rows left out because they hold images.
        removed: rows and prompts left out on demand, by the key of RUN.toml that did it.
        contaminated: those that `decontaminate` removed.
        guess: what the columns were taken for, a sentence.
        turns: how many turns of the user come after each prompt, in their order.
    """

    name: str
    prompts: Sequence[Prompt]
    ids: Ids
    tokens: array[int]
    rows: int
    duplicates: int = 0
    quarantined: Sequence[BadRow] = ()
    images: int = 0
    removed: Mapping[str, int] = field(default_factory=dict[str, int])
    contaminated: Sequence[Contaminated] = ()
    guess: str = ""
    turns: array[int] = field(default_factory=lambda: array("I"))


def part(one: LoadedSet, number: int, of: int) -> LoadedSet:
    """Part `number` (from 1) of `of` of a set, by the prompts' ids: each prompt is in one of them, whatever else the set holds."""
    mask = one.ids.numbers % np.uint64(of) == np.uint64(number - 1)
    prompts = one.prompts.part(mask) if isinstance(one.prompts, Picked) else list(compress(one.prompts, mask))
    return replace(
        one,
        prompts=prompts,
        ids=Ids(one.ids.numbers[mask]),
        tokens=array("I", np.array(one.tokens, np.uintc)[mask].tobytes()),
        turns=array("I", np.array(one.turns, np.uintc)[mask].tobytes()),
        removed={**one.removed, "other shards": int(np.count_nonzero(~mask))},
    )


@dataclass(frozen=True, slots=True)
class Loaded:
    """What came of all sets, by name and in the order given."""

    sets: Mapping[str, LoadedSet]

    @property
    def quarantined(self) -> Sequence[BadRow]:
        """The rows of all sets that cannot be asked."""
        return Chained([one.quarantined for one in self.sets.values()])

    @property
    def contaminated(self) -> Sequence[Contaminated]:
        """The prompts of all sets that stand in a benchmark."""
        return Chained([one.contaminated for one in self.sets.values()])

    @property
    def duplicates(self) -> int:
        """Rows of all sets that are a prompt which another row of the set is already."""
        return sum(one.duplicates for one in self.sets.values())

    @property
    def images(self) -> int:
        """Rows of all sets left out because they hold images."""
        return sum(one.images for one in self.sets.values())

    @property
    def removed(self) -> Mapping[str, int]:
        """Rows and prompts of all sets left out on demand, by the key of RUN.toml that did it."""
        return sum((Counter(one.removed) for one in self.sets.values()), Counter[str]())


class Chained(Lazy[T]):
    """Sequences one after the other."""

    def __init__(self, parts: Iterable[Sequence[T]]) -> None:
        self._parts = list(parts)
        self._ends = list(accumulate(len(part) for part in self._parts))

    def at(self, index: int) -> T:
        """The value at that place of all."""
        part = bisect_right(self._ends, index)
        return self._parts[part][index - (self._ends[part - 1] if part else 0)]

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0


class _Named(Lazy[str]):
    """The prompt ids of a set, each after the set's name."""

    def __init__(self, of: LoadedSet) -> None:
        self._of = of

    def at(self, index: int) -> str:
        """DATASET/PROMPTID."""
        return f"{self._of.name}/{self._of.ids[index]}"

    def __len__(self) -> int:
        return len(self._of.ids)


class Mixed(Lazy[Prompt]):
    """The prompts of several sets, in an order: 10 bytes each."""

    def __init__(self, sets: Sequence[Sequence[Prompt]], order: npt.NDArray[np.integer]) -> None:
        """`order`: numbers of prompts, counted through all sets one after the other."""
        sizes = [len(one) for one in sets]
        self.order = order.astype(np.uint32)
        self._sets = sets
        self._which = np.repeat(np.arange(len(sizes), dtype=np.uint16), sizes)[order]
        self._place = np.concatenate([np.empty(0, np.uint32), *(np.arange(size, dtype=np.uint32) for size in sizes)])[
            order
        ]

    def at(self, index: int) -> Prompt:
        """The prompt at that place of the order."""
        return self._sets[int(self._which[index])][int(self._place[index])]

    def chosen(self, masks: Sequence[npt.NDArray[np.bool_]]) -> Iterator[Prompt]:
        """Some of them, in the order: a mask over each set's prompts says which. No other one is read."""
        every = np.concatenate([np.empty(0, np.bool_), *masks])
        for place in np.flatnonzero(every[self.order]).tolist():
            yield self.at(place)

    def __len__(self) -> int:
        return len(self._which)


class Counts(Mapping[tuple[str, str], int]):
    """Tokens of each prompt by (dataset, prompt id): 12 bytes each."""

    def __init__(self, sets: Iterable[LoadedSet]) -> None:
        self._sets: dict[str, tuple[Hashes, Small]] = {}
        for one in sets:
            order = one.ids.order
            self._sets[one.name] = one.ids.numbers[order], np.array(one.tokens, np.uint32)[order]

    def __getitem__(self, key: tuple[str, str]) -> int:
        name, prompt_id = key
        ids, tokens = self._sets[name]
        try:
            number = np.uint64(int(prompt_id, 16))
        except (ValueError, OverflowError):
            raise KeyError(key) from None
        spot = int(np.searchsorted(ids, number))
        if spot == len(ids) or ids[spot] != number:
            raise KeyError(key)
        return int(tokens[spot])

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for name, (ids, _) in self._sets.items():
            for number in ids:
                yield name, f"{int(number):016x}"

    def __len__(self) -> int:
        return sum(len(ids) for ids, _ in self._sets.values())


def interleave(sets: Iterable[LoadedSet], seed: int) -> Sequence[Prompt]:
    """Makes one pool of the prompts of all sets, mixed by seed, set and id: a set more leaves the others in order.

    No prompt is held: a prompt is read when its place is asked for.
    """
    sets = list(sets)
    order = order_of(seed, Chained([_Named(one) for one in sets]))
    return Mixed([one.prompts for one in sets], order)
