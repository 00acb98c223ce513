"""How one provider counts, cuts and keeps text; and what one answer says of it. Plain values."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from eyas.families import Shift

PLAIN = Shift("as the template says")
"""The counting in which the API counts what the template gives and what the model samples."""

HELD_BACK = 3
"""Tokens that a piece may hold beyond one: a character has at most four bytes, so at most four come as one piece."""

_INSTANT = " (instant)"


class Cut(StrEnum):
    """Where a provider cuts its stream: at each token, after some whole tokens, or anywhere in the text."""

    TOKEN = "token"  # noqa: S105  # no password
    BURST = "burst"
    ANYWHERE = "anywhere"
    UNKNOWN = "unknown"


class End(StrEnum):
    """An end of a text of an answer, where a server may take whitespace off."""

    REASONING_START = "reasoning_start"
    REASONING_END = "reasoning_end"
    CONTENT_START = "content_start"
    CONTENT_END = "content_end"


class Habits(msgspec.Struct, frozen=True):
    """How one provider counts and cuts, in one mode.

    Attributes:
        answers: how many answers it was learned from.
        explained: how many of them it explains exactly.
        counting: the known shift of its counts, if it has one: `<think>` on the other side, a BOS left out.
        stop_counted: whether completion_tokens counts the stop token.
        artefact_space: whether a space at the end of the reasoning was added by the server.
        cut: where the stream is cut.
        proves: whether pieces are tokens without exception, so that they prove ids also where no count came.
        stripped: ends of texts where the provider takes whitespace off, since other providers' answers have it there.
        open: ends of texts of which that is not known yet.
        keeps_arguments: whether tool arguments arrive as sampled; None: no tool call seen.
        prompt_form: the form in which it gives the history to the template, see `reading.forms`; empty: as sent.
        reasoning_count: what reasoning_tokens counts: "R", "R+1" (with `</think>`), "other" or "unknown".
        hidden: tokens that it counts in every prompt beyond the template, without a known cause: a hidden system prompt.
        trusted: False where most prompts or answers do not agree: another template, tokenizer or model.
    """

    answers: int = 0
    explained: int = 0
    counting: Shift = PLAIN
    stop_counted: bool = True
    artefact_space: bool = False
    cut: Cut = Cut.UNKNOWN
    proves: bool = False
    stripped: frozenset[End] = frozenset()
    open: frozenset[End] = frozenset(End)
    keeps_arguments: bool | None = None
    prompt_form: str = ""
    reasoning_count: str = "unknown"
    hidden: int = 0
    trusted: bool = True

    @property
    def at_tokens(self) -> bool:
        """Whether no token spans two pieces of its stream."""
        return self.cut in (Cut.TOKEN, Cut.BURST)

    @property
    def unsure(self) -> frozenset[End]:
        """Ends where whitespace may be missing."""
        return self.stripped | self.open

    def expected(self, total: int, *, stop: bool) -> int:
        """The completion_tokens that an answer of `total` ids has, the stop token (if `stop`) among them."""
        return total - (stop and not self.stop_counted) + self.counting.answer

    def reasoning_expected(self, total: int, *, closed: bool) -> int | None:
        """The reasoning_tokens of a reasoning of so many ids; None where the provider keeps no known rule.

        `closed` says whether its closing marker was sampled too.
        """
        return {"R": total, "R+1": total + closed}.get(self.reasoning_count)


class Size(msgspec.Struct, frozen=True):
    """Ids of an answer under one reading: all, and those of its reasoning."""

    total: int
    reasoning: int


class Evidence(msgspec.Struct, frozen=True):
    """What one answer says about its provider; all counts are tokens.

    Attributes:
        key: provider and mode, see `habit_key`.
        shifts: the ways of counting that the family knows.
        prompt_off: usage.prompt_tokens minus the rendered prompt.
        form: the form of the history that the prompt count shows; None where all forms count the same or none fits.
        counted: usage.completion_tokens.
        stop: whether the answer ended by its stop token.
        whole, pieced: the answer when its texts are encoded whole, or piece by piece; None: not tried.
        whole_trimmed, pieced_trimmed: the same without a space at the end of the reasoning.
        pieces, singles: streamed pieces, and how many of them are one vocabulary entry.
        odd: pieces of ASCII that are no vocabulary entry.
        letters: pieces beyond ASCII, where tokens may have been held back until a character was whole.
        edges: for each end of a text that is not empty, whether whitespace stands there.
        tools: whether it calls tools.
        spaced: whether a reasoning that was closed ends in a space; None: there is no such reasoning.
        reasoning_said: usage.reasoning_tokens of a reasoning that was closed; None: not said, or no such reasoning.
    """

    key: str
    prompt_off: int
    counted: int
    stop: bool
    whole: Size | None
    pieced: Size | None
    whole_trimmed: Size | None
    pieced_trimmed: Size | None
    pieces: int
    singles: int
    edges: dict[End, bool]
    tools: bool
    spaced: bool | None = None
    reasoning_said: int | None = None
    shifts: tuple[Shift, ...] = ()
    form: str | None = None
    odd: int = 0
    letters: int = 0


def habit_key(provider: str, *, thinking: bool) -> str:
    """The name under which habits are kept: the provider's display name; instant mode is counted apart."""
    return provider if thinking else provider + _INSTANT


def instant(key: str) -> bool:
    """Whether habits of that name are of instant mode."""
    return key.endswith(_INSTANT)


def habits_for(habits: Mapping[str, Habits], provider: str, *, thinking: bool) -> Habits:
    """The habits of a provider, the defaults if nothing was learned of it."""
    return habits.get(habit_key(provider, thinking=thinking), _DEFAULT)


_DEFAULT = Habits()
