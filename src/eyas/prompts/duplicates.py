"""Rows that are one prompt: those with the same id."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eyas.prompts.order import Order
from eyas.prompts.words import Hashes

Rank = Callable[[int], tuple[int, tuple[str, ...]]]


def unique(ids: Hashes, rank: Rank) -> Order:
    """One row of each prompt, in file order: of rows with the same id the one of the highest rank, the first among equals.

    Args:
        ids: the prompt id of each row.
        rank: how a row is preferred, by its number; asked of rows that share an id only.
    """
    order = np.argsort(ids, kind="stable")
    ranked = ids[order]
    first = np.ones(len(ids), bool)
    first[1:] = ranked[1:] != ranked[:-1]
    del ranked
    for start in np.flatnonzero(first[:-1] & ~first[1:]).tolist():
        end = start + 1
        while end < len(first) and not first[end]:
            end += 1
        order[start] = max(order[start:end].tolist(), key=rank)
    kept = order[first]
    kept.sort()
    return kept
