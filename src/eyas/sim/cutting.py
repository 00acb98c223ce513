"""How a provider turns sampled tokens into streamed pieces of text: boundaries, whitespace, artefacts (pure, lazy)."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from itertools import islice

from eyas.sim.providers import CutStyle, Provider
from eyas.sim.text import Vocabulary

Piece = tuple[str, int]
"""A text, which may be empty, and the tokens that it took."""

_LONGEST_KEPT = 24


class Texts:
    """Texts of tokens and their JSON escapes, kept: a stream asks for the same few thousand again and again."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._texts: dict[int, str | None] = {}
        self._escapes: dict[str, bytes] = {}

    def of(self, token: int) -> str | None:
        """The token's text; None if its bytes are not whole characters."""
        try:
            return self._texts[token]
        except KeyError:
            text = decoded(self._vocabulary.token_bytes(token))
            self._texts[token] = text
            return text

    def data(self, token: int) -> bytes:
        """The token's bytes."""
        return self._vocabulary.token_bytes(token)

    def escape(self, text: str) -> bytes:
        """The text inside a JSON string, without the quotes."""
        found = self._escapes.get(text)
        if found is None:
            found = json.dumps(text, ensure_ascii=False)[1:-1].encode()
            if len(text) <= _LONGEST_KEPT:
                self._escapes[text] = found
        return found


def decoded(data: bytes) -> str | None:
    """The text, or None if the bytes are not whole characters."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def pieces(ids: Iterable[int], cut: CutStyle, texts: Texts, rng: random.Random) -> Iterator[Piece]:
    """Pieces as the style cuts them. Bytes of a character that never became whole are dropped, their tokens counted."""
    if cut == "block":
        return _blocks(ids, texts, rng)
    single = _by_token(ids, texts)
    if cut == "token":
        return single
    if cut == "word":
        return _words(single)
    return _bursts(single, rng) if cut == "burst" else _anywhere(single, rng)


def _by_token(ids: Iterable[int], texts: Texts) -> Iterator[Piece]:
    held, tokens = b"", 0
    for token in ids:
        text = texts.of(token)
        if text is not None and not held:
            yield text, 1
            continue
        held += texts.data(token)
        tokens += 1
        whole = decoded(held)
        if whole is not None:
            yield whole, tokens
            held, tokens = b"", 0
    if tokens:
        yield "", tokens


def _bursts(single: Iterator[Piece], rng: random.Random) -> Iterator[Piece]:
    texts, tokens, wanted = list[str](), 0, rng.randint(2, 5)
    for text, taken in single:
        texts.append(text)
        tokens += taken
        if len(texts) >= wanted:
            yield "".join(texts), tokens
            texts, tokens, wanted = [], 0, rng.randint(2, 5)
    if tokens:
        yield "".join(texts), tokens


def _blocks(ids: Iterable[int], texts: Texts, rng: random.Random) -> Iterator[Piece]:
    """Long pieces, for runs of millions of tokens: 40 times cheaper to play than tokens."""
    rest, held = iter(ids), b""
    while block := list(islice(rest, rng.randint(50, 150))):
        held += b"".join(map(texts.data, block))
        text = held.decode(errors="ignore")  # only a character that goes on in the next block can be left over
        held = held[len(text.encode()) :]
        yield text, len(block)


def _words(single: Iterator[Piece]) -> Iterator[Piece]:
    """Tokens of a word in one piece, as a gateway sends them that waits for the next word to begin."""
    text, tokens = "", 0
    for more, taken in single:
        if text and more and (more[0].isspace() or more[0].isalnum() != text[-1].isalnum()):
            yield text, tokens
            text, tokens = "", 0
        text += more
        tokens += taken
    if text or tokens:
        yield text, tokens


def _anywhere(single: Iterator[Piece], rng: random.Random) -> Iterator[Piece]:
    text, tokens, wanted = "", 0, rng.randint(3, 24)
    for more, taken in single:
        text += more
        tokens += taken
        while len(text) >= wanted:
            yield text[:wanted], tokens
            text, tokens, wanted = text[wanted:], 0, rng.randint(3, 24)
    if text or tokens:
        yield text, tokens


def stripped(source: Iterator[Piece], provider: Provider) -> Iterator[Piece]:
    """The pieces without the whitespace that the provider takes off; what follows more text is kept."""
    if provider.strip == "none":
        yield from source
        return
    started, held = False, ""
    for piece, tokens in source:
        text = held + piece if started else piece.lstrip()
        started = started or bool(text)
        held = ""
        if provider.strip == "both":
            body = text.rstrip()
            text, held = body, text[len(body) :]
        yield text, tokens
