"""A tokenizer in memory, the same whatever files it came from."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from eyas.errors import UsageError
from eyas.vocab.byte_level import FILE as JSON
from eyas.vocab.byte_level import read as read_json
from eyas.vocab.coder import Coder, Layout
from eyas.vocab.ranked import FILE as RANKED
from eyas.vocab.ranked import read as read_ranked


class Vocab:
    """A byte-pair vocabulary with its special ids. Safe to share between threads once loaded."""

    def __init__(self, ranks: dict[bytes, int], specials: Mapping[str, int], coder: Coder) -> None:
        self._coder = coder
        self._bytes = {number: data for data, number in ranks.items()}
        self._bytes.update((number, name.encode()) for name, number in specials.items())
        self._spelled = re.compile("|".join(map(re.escape, sorted(specials, key=len, reverse=True))) or r"(?!)")
        self.specials: Mapping[str, int] = dict(specials)
        """Special ids by spelling: every id that stands for no stretch of ordinary text, such as `<think>`."""
        self.ranks = len(ranks)
        """How many ordinary entries there are."""
        self.size = max(self._bytes, default=-1) + 1
        """One more than the highest id, special ones included."""
        self.id_of = ranks.get
        """`id_of(data)`: the ordinary entry that is exactly these bytes, or None."""

    @classmethod
    def load(cls, folder: Path, layout: Layout | None) -> Vocab:
        """Read the tokenizer in a folder of the hub's layout; takes half a second, from a `tokenizer.json` up to two.

        With a layout the `tiktoken.model` goes before a `tokenizer.json`; without one it cannot be read.

        Raises:
            UsageError: the folder holds no vocabulary that can be read.
        """
        ranked = (folder / RANKED).is_file()
        if ranked and layout is not None:
            return cls(*read_ranked(folder, layout))
        if (folder / JSON).is_file():
            return cls(*read_json(folder / JSON))
        if ranked:
            raise UsageError(
                f"{folder} holds a {RANKED} and no {JSON}: how that splits text and what its special "
                "ids are, only a family knows. Set [target] family, or give a folder with a tokenizer.json."
            )
        raise UsageError(
            f"{folder} holds no {RANKED} and no {JSON}: give the folder of the model's tokenizer, or its hub id."
        )

    def encode(self, text: str) -> list[int]:
        """Ids whose bytes are the text; nothing in it is special: a spelled `<|im_end|>` becomes ordinary ids."""
        return self._coder.encode(text)

    @cached_property
    def id_of_text(self) -> Callable[[str], int | None]:
        """`id_of_text(text)`: the ordinary entry that is exactly this text, or None; a tenth quicker than by bytes."""
        texts: dict[str, int] = {}
        for number, data in self._bytes.items():
            with contextlib.suppress(UnicodeDecodeError):
                texts[data.decode()] = number
        return {text: number for text, number in texts.items() if text not in self.specials}.get

    def encode_special(self, text: str) -> list[int]:
        """Ids of a text as the engine reads a rendered prompt: every spelled special becomes its id.

        Nothing is put before or after it (no BOS). Where the file normalises text (Qwen's: NFC), it does so here only.
        """
        if (text.isascii() or not self._coder.normalizes) and not self.spelled(text):
            return self._coder.encode(text)
        return self._coder.encode_special(text)

    def spelled(self, text: str) -> bool:
        """Whether a special id's spelling stands in the text."""
        return self._spelled.search(text) is not None

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, specials spelled out; bytes that are no UTF-8 become U+FFFD.

        Raises:
            KeyError: there is no such id.
        """
        return b"".join(map(self._bytes.__getitem__, ids)).decode(errors="replace")

    def token_bytes(self, number: int) -> bytes:
        """The bytes of one id, a special's spelling included.

        Raises:
            KeyError: there is no such id.
        """
        return self._bytes[number]
