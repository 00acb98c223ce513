"""Text of ids, twice as fast as looking each id up: the bytes of a vocabulary side by side in one array (pure)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eyas.vocab import Vocab


class Texts:
    """Decodes ids of one vocabulary, to the same text as `Vocab.decode`."""

    def __init__(self, vocab: Vocab) -> None:
        entries = [_entry(vocab, number) for number in range(vocab.size)]
        self._lengths = np.array(list(map(len, entries)), dtype=np.int32)
        self._starts = (np.cumsum(self._lengths) - self._lengths).astype(np.int32)
        self._data = np.frombuffer(b"".join(entries), dtype=np.uint8)

    def of(self, ids: Sequence[int]) -> str:
        """The text of ids, specials spelled out; bytes that are no UTF-8 become U+FFFD."""
        if not ids:
            return ""
        numbers = np.array(ids, dtype=np.int32)
        lengths = self._lengths[numbers]
        ends = np.cumsum(lengths, dtype=np.int32)
        # Where each id's bytes stand, less where they go: added to where every byte goes, it says where that stands.
        shifts = np.repeat(self._starts[numbers] - (ends - lengths), lengths)
        shifts += np.arange(len(shifts), dtype=np.int32)
        return self._data[shifts].tobytes().decode(errors="replace")


def _entry(vocab: Vocab, number: int) -> bytes:
    """The bytes of an id; none for a number that is no id."""
    try:
        return vocab.token_bytes(number)
    except KeyError:
        return b""
