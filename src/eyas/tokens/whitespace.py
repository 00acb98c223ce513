"""How far whitespace that a server took off an end of a text changes the tokens there (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from eyas.vocab import Vocab

_FORMS = (" ", "\n", "\n\n")
_WINDOW = 64
"""Characters from an end within which tokens with and without whitespace are the same again."""


def changed_start(text: str, vocab: Vocab) -> int:
    """Bytes at the start of a text whose tokens may be others if whitespace stood before it."""
    window = text[:_WINDOW]
    bare = vocab.encode(window)[::-1]
    same = min(_common(bare, vocab.encode(white + window)[::-1]) for white in _FORMS)
    return _size(bare[same:], vocab)


def changed_end(text: str, vocab: Vocab) -> int:
    """Bytes at the end of a text whose tokens may be others if whitespace stood after it."""
    window = text[-_WINDOW:]
    bare = vocab.encode(window)
    same = min(_common(bare, vocab.encode(window + white)) for white in _FORMS)
    return _size(bare[same:], vocab)


def touched(ids: Sequence[int], size: int, vocab: Vocab) -> int:
    """How many of these ids, from the first on, lie within so many bytes."""
    starts = accumulate((len(vocab.token_bytes(number)) for number in ids), initial=0)
    return sum(start < size for start, _ in zip(starts, ids, strict=False))


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many ids two lists share from their first on."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _size(ids: Sequence[int], vocab: Vocab) -> int:
    return sum(len(vocab.token_bytes(number)) for number in ids)
