"""Prompts that share a passage with a benchmark: they would train the drafter on what it is measured with."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np
import numpy.typing as npt

from eyas.prompts.words import Hashes, grams, user_texts, words
from eyas.types import Prompt

WORDS = 13
"""Words in a row that two texts must share; a text of fewer words must be the same as a whole."""


class Contaminated(msgspec.Struct, frozen=True):
    """A prompt that was left out: its id, file and line, the words that it shares, and the file that has them too."""

    id: str
    file: str
    line: int
    shared: str
    benchmark: str


class Benchmarks:
    """The passages of some files: a hash for each 13 words in a row of what their users say, 10 bytes each."""

    def __init__(self, prompts: Iterable[tuple[str, Prompt]]) -> None:
        """`prompts`: the files' prompts, each with the name of its file."""
        self._names: list[str] = []
        hashes: list[Hashes] = [np.empty(0, np.uint64)]
        owners: list[npt.NDArray[np.uint16]] = [np.empty(0, np.uint16)]
        for name, prompt in prompts:
            if not self._names or self._names[-1] != name:
                self._names.append(name)
            for text in user_texts(prompt):
                found = grams(words(text), WORDS)
                hashes.append(found)
                owners.append(np.full(len(found), len(self._names) - 1, np.uint16))
        self._hashes, first = np.unique(np.concatenate(hashes), return_index=True)
        self._owners = np.concatenate(owners)[first]

    def shared(self, prompt: Prompt) -> tuple[str, str] | None:
        """The first passage of a prompt's user turns that a file has too, as words, and that file's name."""
        if not len(self._hashes):
            return None
        for text in user_texts(prompt):
            parts = words(text)
            found = grams(parts, WORDS)
            spots = np.minimum(np.searchsorted(self._hashes, found), len(self._hashes) - 1)
            hits = np.flatnonzero(self._hashes[spots] == found)
            if len(hits):
                start = int(hits[0])
                return " ".join(parts[start : start + WORDS]), self._names[self._owners[spots[start]]]
        return None
