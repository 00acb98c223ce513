"""What a user says, as words and as hashes of n words in a row: by these, texts are found in each other."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from eyas.types import Prompt

Hashes = npt.NDArray[np.uint64]
_ALONE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Kana and Han: written without spaces, so each character counts as a word."""
_WORD = re.compile(f"[{_ALONE}]|[^\\W_{_ALONE}]+")
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


def user_texts(prompt: Prompt) -> Iterator[str]:
    """The texts of all user turns of a prompt, those still to come too."""
    for message in prompt.messages:
        if message["role"] == "user":
            yield str(message["content"])
    yield from prompt.turns


def words(text: str) -> list[str]:
    """The words of a text: case-folded, in one spelling of accents and widths, without punctuation."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def grams(parts: Sequence[str], size: int) -> Hashes:
    """A hash for each `size` words in a row, at its place; of fewer words one, of them all.

    The hashes are the same in every process and on every machine.
    """
    codes = np.fromiter(map(_code, parts), np.uint64, len(parts))
    size = min(size, len(parts))
    if not size:
        return codes
    count = len(parts) - size + 1
    found = np.full(count, size, np.uint64)
    for offset in range(size):
        found = (found ^ (found >> _HALF)) * _PRIME + codes[offset : offset + count]
    return (found ^ (found >> _HALF)) * _PRIME


def gram_set(texts: Iterable[str], size: int) -> Hashes:
    """The distinct hashes of all texts, ascending; a text without a word counts as one word."""
    found = [grams(words(text) or [text.strip()], size) for text in texts]
    return np.unique(np.concatenate(found)) if found else np.empty(0, np.uint64)


@lru_cache(maxsize=1 << 16)
def _code(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")
