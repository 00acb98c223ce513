"""Lists of logprobs: of every sampled token, of some of them, or with several tokens in one entry (pure, lazy)."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

from eyas.sim.cutting import Texts, decoded
from eyas.sim.providers import ListStyle
from eyas.sim.text import Part

_FOLDED = 0.02
"""How often an entry of a folded list takes the next token too."""


class Listing:
    """Entries of the tokens of one answer, in the order sampled; taken along with its pieces."""

    def __init__(self, style: ListStyle, parts: tuple[Part, ...], texts: Texts, rng: random.Random) -> None:
        self._style = style
        self._texts = texts
        self._rng = rng
        self._tokens = [(part.channel, token) for part in parts for token in part.ids]
        self._at = 0
        self._held = b""

    def take(self, tokens: int) -> list[bytes]:
        """Entries of the next so many tokens, as JSON."""
        taken = self._tokens[self._at : self._at + tokens]
        self._at += len(taken)
        found = list[bytes]()
        for channel, token in taken:
            data = self._texts.data(token)
            if self._style == "folded":
                data = self._fold(data, special=channel == "special")
            elif (self._style == "content" and channel != "content") or (
                self._style == "text" and channel == "special"
            ):
                data = b""
            if data:
                found.append(entry(data))
        return found

    def _fold(self, data: bytes, *, special: bool) -> bytes:
        """The entry that ends here: bytes of a character are held until it is whole, and sometimes a word is too."""
        held = self._held + data
        if not special and (decoded(held) is None or self._rng.random() < _FOLDED):
            self._held = held
            return b""
        self._held = b""
        return held


def entry(data: bytes) -> bytes:
    """One entry of a list of logprobs."""
    token = data.decode(errors="replace")
    text = json.dumps({"token": token, "logprob": -0.25, "bytes": list(data), "top_logprobs": []}, ensure_ascii=False)
    return text.encode()


def listed(pieces: Iterator[tuple[int, bytes]], listing: Listing, last: bytes) -> Iterator[tuple[int, bytes]]:
    """The chunks of a stream with the entries of their tokens; those that are left come with the chunk `last`.

    Tokens that show nothing are listed with the next chunk.
    """
    waiting = list[bytes]()
    for tokens, data in pieces:
        waiting += listing.take(tokens)
        if data and waiting:
            yield tokens, _with(data, waiting)
            waiting = []
        else:
            yield tokens, data
    if waiting:
        yield 0, _with(last, waiting)


_PLACE = b',"finish_reason":null,"native_finish_reason":null}]}\n\n'


def _with(data: bytes, entries: list[bytes]) -> bytes:
    """A chunk with a list of logprobs in its choice."""
    return b"".join((data.removesuffix(_PLACE), b',"logprobs":{"content":[', b",".join(entries), b"]}", _PLACE))
