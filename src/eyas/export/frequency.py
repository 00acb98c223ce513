"""How often each id stands under mask 1, by dataset: what draft vocabularies are chosen by (pure)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from eyas.exporters import Row

Ints: TypeAlias = "NDArray[np.int64]"

Counts: TypeAlias = "dict[str, tuple[Ints, Ints]]"
"""Of a chunk, by dataset: the ids that occur, and how often."""


def count(rows: Iterable[Row]) -> Counts:
    """How often each id stands under mask 1."""
    found: defaultdict[str, list[NDArray[np.int32]]] = defaultdict(list)
    for row in rows:
        ids = np.array(row.sequence.prompt_ids + row.sequence.completion_ids, dtype=np.int32)
        mask = np.frombuffer(bytes(row.sequence.loss_mask), dtype=np.bool_)
        found[row.record.work.dataset].append(ids[mask])
    counts: Counts = {}
    for dataset, parts in found.items():
        sums = np.bincount(np.concatenate(parts))
        ids = np.flatnonzero(sums)
        counts[dataset] = (ids, sums[ids])
    return counts


def add(sums: dict[str, Ints], counts: Counts, size: int) -> None:
    """Add a chunk's counts to the sums by dataset: arrays of `size` numbers."""
    for dataset, (ids, numbers) in counts.items():
        if dataset not in sums:
            sums[dataset] = np.zeros(size, dtype=np.int64)
        sums[dataset][ids] += numbers
