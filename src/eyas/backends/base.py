"""What all backends have in common: how one request is to be made, and how its answer is taken in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from eyas.types import DraftText, Outcome


class Wire(StrEnum):
    """In which form answers come; a reader process is told it by name."""

    CHAT = "chat"
    VLLM = "vllm"
    SGLANG = "sglang"
    LLAMACPP = "llamacpp"


@dataclass(frozen=True, slots=True)
class Ask:
    """How one request is to be made: what the config, the family and the router say.

    Attributes:
        max_tokens: bound of the answer.
        provider: OpenRouter's `provider` object.
        family_body: what the family adds to a request of the API to get its mode.
        thinking: the mode, for servers of the user's that render the prompt themselves.
        sampling: sampling parameters.
        stream: whether the answer is to come piece by piece.
        mark: makes the body unique.
        session: the same for all turns of a conversation, and empty where there is one only.
        prompt_ids: the prompt as the family renders it; empty where the backend sends messages.
        stops: ids that end an answer.
    """

    max_tokens: int
    provider: Mapping[str, Any] = field(default_factory=dict[str, Any])
    family_body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    thinking: bool = True
    sampling: Mapping[str, float] = field(default_factory=dict[str, float])
    stream: bool = True
    mark: str = ""
    session: str = ""
    prompt_ids: tuple[int, ...] = ()
    stops: tuple[int, ...] = ()


class Answer(Protocol):
    """Takes the bytes of one response with status 200 and says what came of it. No I/O, no clock."""

    @property
    def done(self) -> bool:
        """Whether the answer ended as answers end."""
        ...

    @property
    def tokens(self) -> int:
        """Pieces or tokens that came."""
        ...

    @property
    def started(self) -> bool:
        """Whether any came."""
        ...

    def feed(self, data: bytes) -> None:
        """Take the next bytes, cut anywhere."""
        ...

    def end(self) -> None:
        """No more bytes will come."""
        ...

    def draft(self) -> DraftText | None:
        """What came since the last draft; None if nothing did, or nothing is to be kept of a part."""
        ...

    def outcome(self, broken: str | None = None) -> Outcome:
        """What came of it; `broken` says why the connection did not end cleanly."""
        ...
