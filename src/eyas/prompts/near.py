"""Prompts whose users say nearly the same: the first in the order of the seed stays.

What counts is what users say, in all turns; system turns and tools are shared by whole sets and would make everything
alike. Candidates come from MinHash bands (the extra `dedupe`), and each is checked by its exact Jaccard index.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from eyas.errors import UsageError
from eyas.prompts.words import Hashes, gram_set, grams, words

WORDS = 3
"""Words in a row that are compared: prompts are short, and one changed word already spoils three."""

_PERMUTATIONS = 128
_FOUND = 0.99
_BATCH = 1024
_MOST = 256
"""Prompts that one is compared with at most, the first in the order: a common template cannot stall the load."""

Keys = npt.NDArray[np.uint32]
"""A row of keys for each prompt; prompts that share a key at the same place may be alike."""


def shape(threshold: float) -> tuple[int, int]:
    """Bands and rows of a MinHash that finds 99 of 100 pairs at a threshold, and as few others as can be."""
    for rows in range(_PERMUTATIONS, 1, -1):
        bands = _PERMUTATIONS // rows
        if 1 - (1 - threshold**rows) ** bands >= _FOUND:
            return bands, rows
    return _PERMUTATIONS, 1


class Sketches:
    """Takes the texts of prompts, keeps their keys: 4 bytes a band, which is 84 bytes a prompt at a threshold of 0.8."""

    def __init__(self, threshold: float) -> None:
        """`threshold`: the Jaccard index of word triples from which on two are alike, above 0; 1: the same words.

        Raises:
            UsageError: the threshold is below 1 and the extra `dedupe` is not installed.
        """
        self._bands, self._rows = shape(threshold)
        self._minhash = _rensa() if threshold < 1 else None
        self._waiting: list[Hashes] = []
        self._done: list[Keys] = []

    def add(self, texts: Iterable[str]) -> None:
        """Take what the user says in one prompt."""
        self._waiting.append(gram_set(texts, WORDS) if self._minhash else _whole(texts))
        if len(self._waiting) == _BATCH:
            self._work()

    def keys(self) -> Keys:
        """The keys of all prompts, in the order in which they were added."""
        self._work()
        return np.concatenate(self._done) if self._done else np.empty((0, 1), np.uint32)

    def _work(self) -> None:
        batch, self._waiting = self._waiting, []
        if not batch:
            return
        flat = np.concatenate(batch)
        if self._minhash is None:
            self._done.append(flat.view(np.uint32).reshape(-1, 2))
            return
        ends = np.cumsum([0, *(len(each) for each in batch)])
        digests = self._minhash.digest_matrix_from_flat_token_hashes(flat, ends, _PERMUTATIONS, 0).to_rows()
        parts = np.array(digests, np.uint64)[:, : self._bands * self._rows].reshape(len(batch), self._bands, self._rows)
        self._done.append(_banded(parts))


def firsts(keys: Keys, threshold: float, texts: Callable[[int], Sequence[str]]) -> npt.NDArray[np.bool_]:
    """Which prompts stay: those that are not alike to an earlier one that stays.

    Args:
        keys: of the prompts in the order of the seed.
        threshold: as for `Sketches`.
        texts: what the user says in a prompt, by its number in that order; asked where keys meet.
    """
    stay = np.ones(len(keys), bool)
    if not len(keys):
        return stay
    if threshold == 1:
        whole = np.ascontiguousarray(keys).view(np.uint64).ravel()
        stay[:] = False
        stay[np.unique(whole, return_index=True)[1]] = True
        return stay

    @lru_cache(maxsize=4096)
    def found(number: int) -> Hashes:
        return gram_set(texts(number), WORDS)

    kept: dict[tuple[int, int], list[int]] = {}
    for number, mine in _meetings(keys):
        others = sorted({other for bucket in mine for other in kept.get(bucket, ())})[:_MOST]
        if any(jaccard(found(number), found(other)) >= threshold for other in others):
            stay[number] = False
            continue
        for bucket in mine:
            if len(there := kept.setdefault(bucket, [])) < _MOST:
                there.append(number)
    return stay


def jaccard(one: Hashes, other: Hashes) -> float:
    """Share of hashes that two sets have in common; both ascending and distinct, and not both empty."""
    common = len(np.intersect1d(one, other, assume_unique=True))
    return common / (len(one) + len(other) - common)


def _meetings(keys: Keys) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """The prompts that share a key with another one, ascending, each with its shared keys as (place, key)."""
    shared = np.zeros(keys.shape, bool)
    for place in range(keys.shape[1]):
        _, name, count = np.unique(keys[:, place], return_inverse=True, return_counts=True)
        shared[:, place] = count[name] > 1
    for number in np.flatnonzero(shared.any(axis=1)).tolist():
        yield number, [(place, int(keys[number, place])) for place in np.flatnonzero(shared[number]).tolist()]


def _banded(parts: Hashes) -> Keys:
    """One key of each band's values: (prompts, bands, rows) to (prompts, bands)."""
    key = np.zeros(parts.shape[:2], np.uint64)
    for row in range(parts.shape[2]):
        key = (key ^ (key >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) + parts[:, :, row]
    return (key >> np.uint64(32)).astype(np.uint32) ^ key.astype(np.uint32)


def _whole(texts: Iterable[str]) -> Hashes:
    parts = [word for text in texts for word in (*(words(text) or [text.strip()]), "\n")]
    return grams(parts, len(parts))


def _rensa() -> Any:
    try:
        found: Any = importlib.import_module("rensa")
    except ImportError as error:
        raise UsageError(
            "near_duplicates below 1 needs rensa: pip install 'eyas[dedupe]', or set 1 to compare whole texts only"
        ) from error
    return found.RMinHash
