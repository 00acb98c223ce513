"""The order in which a run asks: a keyed hash of each prompt's id, which files and budgets cannot change."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Order = npt.NDArray[np.intp]
"""Numbers of things, from 0, in the order in which they are to be used."""

_SIZE = 16


@lru_cache(maxsize=16)
def seed_key(seed: int) -> bytes:
    """The key of a seed for keyed hashes: 16 bytes."""
    return hashlib.blake2b(str(seed).encode(), digest_size=_SIZE).digest()


def order_key(seed: int, prompt_id: str) -> bytes:
    """The place of a prompt under a seed: a keyed hash, so that any prefix of the order is a random sample."""
    return hashlib.blake2b(prompt_id.encode(), digest_size=_SIZE, key=seed_key(seed)).digest()


def order_of(seed: int, names: Collection[str]) -> Order:
    """The numbers of the names (from 0) in the order of the seed; takes 24 bytes a name while it works."""
    # Half a key sorts all but equal halves, which a million names have once in 37 million runs.
    halves = np.fromiter((int.from_bytes(order_key(seed, name)[:8], "big") for name in names), np.uint64, len(names))
    order = np.argsort(halves, kind="stable")
    ranked = halves[order]
    if not (ranked[1:] == ranked[:-1]).any():
        return order
    keys = [order_key(seed, name) for name in names]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.intp)
