"""Readings of one answer: its ids, encoded whole or piece by piece (pure)."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import cast

import msgspec

from eyas.families import Channel, Loaded, Part
from eyas.types import Completion, Finish, Pieces
from eyas.vocab import Vocab

_UNREADABLE = re.compile("[\ufffd\ud800-\udfff]")

_TAIL = 4096
_LOOP = 40
"""A tail that packs so many times smaller says the same again and again; tables and code stay below a fifth of it."""


class Answer(msgspec.Struct, frozen=True):
    """An answer as ids, part by part. `pieces` and `singles` are 0 for texts encoded whole.

    `odd` counts pieces of ASCII that are no single vocabulary entry, `letters` those beyond ASCII, which may be several
    tokens held back until a character was whole.
    """

    parts: tuple[Part, ...]
    ids: list[list[int]]
    pieces: int = 0
    singles: int = 0
    odd: int = 0
    letters: int = 0

    @property
    def total(self) -> int:
        """How many ids it has."""
        return sum(map(len, self.ids))

    @property
    def proven(self) -> bool:
        """Whether every streamed piece is one vocabulary entry."""
        return 0 < self.pieces == self.singles

    @property
    def reasoning(self) -> int:
        """How many ids its reasoning has."""
        pairs = zip(self.parts, self.ids, strict=True)
        return sum(len(ids) for part, ids in pairs if part.channel is Channel.REASONING)


def ended(completion: Completion) -> bool:
    """Whether the model sampled its stop token."""
    return completion.finish in (Finish.STOP, Finish.TOOL_CALLS)


def closed(parts: tuple[Part, ...]) -> bool:
    """Whether anything follows the reasoning, which then was closed."""
    return bool(parts) and parts[-1].channel is not Channel.REASONING


def read_whole(parts: tuple[Part, ...], encode: Callable[[str], list[int]]) -> Answer:
    """The answer with each text encoded whole: its canonical ids."""
    return Answer(parts, [_whole(part, encode) for part in parts])


def read_pieces(parts: tuple[Part, ...], pieces: Pieces | None, vocab: Vocab) -> Answer | None:
    """The answer with reasoning and content encoded piece by piece, or None if the pieces are not known.

    On a stream that is cut at tokens these are the sampled ids, also where the sampler split a word non-canonically.
    """
    if pieces is None:
        return None
    lengths = {Channel.REASONING: pieces.reasoning, Channel.CONTENT: pieces.content}
    ids: list[list[int]] = []
    count = singles = odd = letters = 0
    for part in parts:
        cut = None if part.channel is None else lengths.get(part.channel)
        if cut is None:
            ids.append(_whole(part, vocab.encode))
            continue
        if sum(cut) != len(part.text):
            return None
        found, single, strange = _pieced(part.text, cut, vocab)
        ids.append(found)
        count += sum(length > 0 for length in cut)
        singles += single
        odd += strange
        letters += 0 if part.text.isascii() else _letters(part.text, cut)
    return Answer(parts, ids, count, singles, odd, letters)


def without_last_space(completion: Completion) -> Completion:
    """The answer without a space at the end of its reasoning; the same object if there is none."""
    if not completion.reasoning.endswith(" "):
        return completion
    pieces = completion.pieces
    if pieces is not None and any(pieces.reasoning):
        cut = [length for length in pieces.reasoning if length]
        pieces = msgspec.structs.replace(pieces, reasoning=(*cut[:-1], cut[-1] - 1))
    return msgspec.structs.replace(completion, reasoning=completion.reasoning[:-1], pieces=pieces)


def defect(completion: Completion, family: Loaded) -> str:
    """What makes an answer's text useless for training, or an empty string."""
    texts = (completion.reasoning, completion.content, *(call.arguments for call in completion.tool_calls))
    for text in texts:
        if not text.isascii() and _UNREADABLE.search(text):
            return "the text holds bytes that are no UTF-8"
        if family.leaks(text):
            return "the text holds markers that the server should have parsed"
    if completion.finish is Finish.CONTENT_FILTER:
        return "a content filter ended it"
    if not ended(completion) and _loops(texts[0] + texts[1]):
        return "it repeats itself until it was cut"
    return ""


def _whole(part: Part, encode: Callable[[str], list[int]]) -> list[int]:
    return encode(part.text) if part.token is None else [part.token]


def _pieced(text: str, lengths: Sequence[int], vocab: Vocab) -> tuple[list[int], int, int]:
    """Ids of a text piece by piece, how many pieces are one entry, and how many of ASCII are not."""
    bounds = accumulate(lengths, initial=0)
    pieces = [text[start:end] for start, end in pairwise(bounds) if start != end]
    found = list(map(vocab.id_of_text, pieces))
    if None not in found:
        return cast("list[int]", found), len(found), 0
    ids, odd = list[int](), 0
    for piece, number in zip(pieces, found, strict=True):
        ids += vocab.encode(piece) if number is None else (number,)
        odd += number is None and piece.isascii()
    return ids, len(found) - found.count(None), odd


def _letters(text: str, lengths: Sequence[int]) -> int:
    """How many pieces hold letters beyond ASCII."""
    bounds = accumulate(lengths, initial=0)
    return sum(not text[start:end].isascii() for start, end in pairwise(bounds))


def _loops(text: str) -> bool:
    tail = text[-_TAIL:].encode(errors="replace")
    return len(tail) >= _TAIL and len(zlib.compress(tail, 1)) * _LOOP < len(tail)
