"""What a model family says about its prompts and its answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

import msgspec

from eyas.families.said import Said
from eyas.types import Completion, Message
from eyas.vocab import Vocab


class Channel(StrEnum):
    """What a text of an answer is."""

    REASONING = "reasoning"
    CONTENT = "content"
    TOOL_ID = "tool_id"
    ARGUMENTS = "arguments"
    FORM = "form"


class Shift(msgspec.Struct, frozen=True):
    """A known way in which an API counts otherwise than the template: what it adds to the prompt and to the answer."""

    name: str
    prompt: int = 0
    answer: int = 0


class Part(msgspec.Struct, frozen=True):
    """One stretch of what the model sampled: a text, or one special id.

    A text of tool calls may hold syntax and arguments together, where a token may span both; it counts as ARGUMENTS. So
    only where it equals a call's arguments does it have their pieces.

    Attributes:
        text: verbatim text, or the special's spelling.
        channel: None for a special id; FORM for text that the model samples and no API delivers, such as the name of
            a channel or a newline that the server's parser eats.
        token: the special id; None for a text.
    """

    text: str
    channel: Channel | None = None
    token: int | None = None


class Loaded(Protocol):
    """A family with its tokenizer. Its methods are pure and may be called from several threads."""

    @property
    def name(self) -> str:
        """The family's name."""
        ...

    @property
    def vocab(self) -> Vocab:
        """The tokenizer."""
        ...

    @property
    def stop(self) -> int:
        """The id that ends an answer."""
        ...

    @property
    def stops(self) -> tuple[int, ...]:
        """All ids that may end an answer."""
        ...

    @property
    def caveats(self) -> tuple[str, ...]:
        """What cannot be promised of this model, each a sentence."""
        ...

    def prompt_ids(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], thinking: bool) -> list[int]:
        """Ids of the prompt as the engine sees it, up to the first token that the model samples.

        Raises:
            UsageError: the template cannot say these messages, or the model has no such mode.
        """
        ...

    def count_prompt(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], thinking: bool) -> int:
        """How many ids `prompt_ids` gives.

        Raises:
            UsageError: as `prompt_ids` does, and where the API refuses these messages, see `refuses`.
        """
        ...

    def refuses(self, messages: Sequence[Message], thinking: bool) -> str:
        """Why the model's API refuses messages that its template can say, a sentence; an empty string if it does not."""
        ...

    def history(self, completion: Completion) -> Message:
        """A past answer as a turn of the history, as the API wants it back; reasoning only where the template keeps it."""
        ...

    def shifts(self, thinking: bool) -> tuple[Shift, ...]:
        """Ways of counting with a known cause, the plainest first: `<think>` on the other side, a BOS left out."""
        ...

    def parts(self, completion: Completion, thinking: bool) -> tuple[Part, ...]:
        """What the model sampled, in order; nothing is stripped or added."""
        ...

    def said(self, ids: Sequence[int], thinking: bool) -> Said:
        """What sampled ids say, a stop token at their end left out: the way back from `parts`."""
        ...

    def leaks(self, text: str) -> bool:
        """Whether markers that the server should have parsed stand in a text of an answer."""
        ...


class Family(Protocol):
    """A model family before its tokenizer is loaded."""

    @property
    def name(self) -> str:
        """As RUN.toml names it."""
        ...

    @property
    def models(self) -> tuple[str, ...]:
        """Globs of the model ids that belong to it, lower case."""
        ...

    @property
    def tokenizer(self) -> str:
        """Hub id of the default tokenizer."""
        ...

    def sampling(self, thinking: bool) -> Mapping[str, float]:
        """The maker's recommended sampling parameters.

        Raises:
            UsageError: the model has no such mode.
        """
        ...

    def body(self, thinking: bool) -> Mapping[str, Any]:
        """What OpenRouter's request body says to turn thinking on or off.

        Raises:
            UsageError: the model has no such mode.
        """
        ...

    def load(self, folder: Path) -> Loaded:
        """Load the tokenizer in a folder.

        Raises:
            UsageError: it does not belong to the family; the message says what does not fit.
        """
        ...
