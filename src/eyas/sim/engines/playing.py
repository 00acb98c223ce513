"""An answer read token by token, as a server's detokenizer gives it out: text waits until its characters are whole (pure)."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from eyas.sim.cutting import Texts, decoded
from eyas.sim.engines.author import Answer
from eyas.sim.text import Channel
from eyas.types import ToolCall


@dataclass(slots=True)
class Delta:
    """The next tokens.

    Attributes:
        channel: where their text belongs; None where a server does not tell channels apart.
        text: what became whole; may be empty.
        ids: the ids, sampled one after the other.
        heard: the ids that came with the text, as a server tells them that drops those which had no text yet.
        calls: the tool calls that are complete with these tokens.
    """

    channel: Channel | None
    text: str
    ids: Sequence[int]
    heard: Sequence[int]
    calls: tuple[ToolCall, ...] = ()


class Player(Protocol):
    """Reads an answer from its begin to its end."""

    def take(self, tokens: int) -> list[Delta]:
        """The next so many tokens, or what is left."""
        ...


Rest = Literal["drop", "replace"]
"""What becomes of the bytes of a character that never became whole: no text at all, or U+FFFD."""


class Detokenizer:
    """Text of ids, piece by piece."""

    def __init__(self, texts: Texts, silent: Collection[int]) -> None:
        """`silent` are ids without a text."""
        self._texts = texts
        self._silent = silent
        self._held = b""
        self._waiting: list[int] = []

    def feed(self, ids: Sequence[int]) -> tuple[str, list[int]]:
        """The text that becomes whole with these ids, and those of the ids at which some became whole."""
        texts, out, heard = self._texts, list[str](), list[int]()
        for number in ids:
            if number in self._silent:
                heard.append(number)
                continue
            text = None if self._held else texts.of(number)
            if text is None:
                self._held += texts.data(number)
                text = decoded(self._held)
                if text is None:
                    continue
                self._held = b""
            out.append(text)
            heard.append(number)
        return "".join(out), heard

    def rest(self) -> str:
        """What is left when no more comes."""
        held, self._held = self._held, b""
        return held.decode(errors="replace")


class Spelled:
    """The raw form as one text, without the stop token."""

    def __init__(self, answer: Answer, texts: Texts, silent: Collection[int], rest: Rest) -> None:
        self._ids = answer.ids
        self._at = 0
        self._rest = rest
        self._detokenizer = Detokenizer(texts, silent)
        self._stop = answer.stopped

    def take(self, tokens: int) -> list[Delta]:
        """See `Player`; always one delta."""
        ids = self._ids[self._at : self._at + tokens]
        self._at += len(ids)
        ended = self._at >= len(self._ids)
        stop = ended and self._stop
        text, heard = self._detokenizer.feed(ids[:-1] if stop else ids)
        if stop:
            heard.append(ids[-1])
        if ended and self._rest == "replace":
            text += self._detokenizer.rest()
        return [Delta(None, text, ids, heard)]


class Spoken:
    """What a chat server's parsers tell apart: reasoning, content, calls; markers have no text."""

    def __init__(self, answer: Answer, texts: Texts) -> None:
        self._parts = [part for part in answer.parts if part.ids]
        self._answer = answer
        self._texts = texts
        self._part = self._at = 0
        self._detokenizer = Detokenizer(texts, ())
        last = max((i for i, part in enumerate(self._parts) if part.channel in ("name", "arguments")), default=-1)
        self._calls_at = last if answer.calls else -1

    def take(self, tokens: int) -> list[Delta]:
        """See `Player`; a delta for each part that the tokens belong to."""
        deltas = list[Delta]()
        while tokens > 0 and self._part < len(self._parts):
            part = self._parts[self._part]
            ids: array[int] = part.ids[self._at : self._at + tokens]
            self._at += len(ids)
            tokens -= len(ids)
            text, heard = self._detokenizer.feed(ids) if part.channel in ("reasoning", "content") else ("", list(ids))
            ended, calls = self._at >= len(part.ids), ()
            if ended:
                calls = self._answer.calls if self._part == self._calls_at else ()
                text += self._detokenizer.rest()
                self._part, self._at = self._part + 1, 0
            deltas.append(Delta(part.channel, text, ids, heard, calls))
        return deltas
