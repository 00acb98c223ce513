"""Core types of a run; imports nothing of eyas.

All are frozen msgspec Structs: frozen dataclasses with slots that also encode to the journal's bytes without a second
definition. Money is integer nano-dollars (1 USD = 10**9), prices are nano-dollars per million tokens, times are seconds.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

NANO = 1_000_000_000
"""Nano-dollars in a US dollar."""

Message = dict[str, Any]
"""One chat message as the API takes it: role, content, and for tool turns tool_calls, tool_call_id, name."""


class Work(msgspec.Struct, frozen=True, order=True):
    """What is owed: one answer to one prompt. It stays the same when max_tokens, providers or prices change."""

    dataset: str
    prompt_id: str
    turn: int = 0
    sample: int = 0

    @property
    def key(self) -> str:
        """The id that rows and commands show: DATASET/PROMPTID16/tTURN/sSAMPLE."""
        return f"{self.dataset}/{self.prompt_id}/t{self.turn}/s{self.sample}"

    @property
    def primary(self) -> str:
        """The id shared by all answers to one prompt: DATASET/PROMPTID16."""
        return f"{self.dataset}/{self.prompt_id}"


class Source(msgspec.Struct, frozen=True):
    """Where a prompt was read: file and line (1-based; for a JSON array the element's number)."""

    file: str
    line: int


class Prompt(msgspec.Struct, frozen=True):
    """A question for the target.

    Attributes:
        id: 16 hex digits: hash of canonical (messages, tools); file names and order never matter.
        dataset: the set it belongs to.
        messages: what is asked now, a system turn included; the last one is never the assistant's.
        tools: OpenAI tool declarations.
        turns: user turns still to come; turn k+1 is owed only when turn k is durable.
        system: the text of the system turn in `messages`, if there is one.
        source: file and line.
    """

    id: str
    dataset: str
    messages: tuple[Message, ...]
    tools: tuple[dict[str, Any], ...] = ()
    turns: tuple[str, ...] = ()
    system: str | None = None
    source: Source | None = None


class Prices(msgspec.Struct, frozen=True):
    """Undiscounted prices, rounded up: nano-dollars per million tokens; `request` is nano-dollars a request."""

    prompt: int
    completion: int
    request: int = 0

    @property
    def free(self) -> bool:
        """Whether nothing is billed."""
        return not (self.prompt or self.completion or self.request)


class Endpoint(msgspec.Struct, frozen=True):
    """One provider's offer of the model. Identity = tag + provider + quantization + context: tags alone are not unique.

    `slots`: how many requests a server of the user's answers at once, where it tells.
    """

    model: str
    provider: str
    slug: str
    tag: str
    prices: Prices
    quantization: str | None = None
    context: int | None = None
    max_output: int | None = None
    status: int | None = None
    uptime: float | None = None
    parameters: tuple[str, ...] = ()
    slots: int | None = None


class Usage(msgspec.Struct, frozen=True):
    """What the API says was used. `cost` is nano-dollars, None if the API did not say; the other fields are tokens."""

    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int | None = None
    cached_tokens: int = 0
    cost: int | None = None


class Finish(StrEnum):
    """Why the model stopped. Only STOP and TOOL_CALLS mean that it sampled its stop token."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    ERROR = "error"
    OTHER = "other"


class ToolCall(msgspec.Struct, frozen=True):
    """One tool call; `arguments` is the text as it came, never parsed and dumped again."""

    id: str
    name: str
    arguments: str


class Pieces(msgspec.Struct, frozen=True):
    """Lengths in characters of the streamed text pieces, by channel: token boundaries on most open-weight providers."""

    reasoning: tuple[int, ...] = ()
    content: tuple[int, ...] = ()
    arguments: tuple[tuple[int, ...], ...] = ()


class FailureKind(StrEnum):
    """What went wrong, once classified; each row of the table in the design is one or two of these."""

    CONNECT = "connect"
    RATE_LIMIT = "rate_limit"
    IN_FLIGHT_BUDGET = "in_flight_budget"
    UPSTREAM = "upstream"
    EMPTY = "empty"
    LOST = "lost"
    CUT = "cut"
    REFUSED = "refused"
    NO_ENDPOINT = "no_endpoint"
    KEY = "key"
    CREDITS = "credits"
    MISSERVED = "misserved"
    LENGTH = "length"


class Billed(StrEnum):
    """Whether the failed attempt costs money."""

    NO = "no"
    YES = "yes"
    UNKNOWN = "unknown"


class Failure(msgspec.Struct, frozen=True):
    """An attempt without a usable answer. `retry_after` is seconds; `detail` is for people and holds no secret."""

    kind: FailureKind
    billed: Billed
    detail: str
    retry_after: float | None = None
    status: int | None = None
    usage: Usage | None = None
    generation_id: str = ""
    provider: str = ""


class Completion(msgspec.Struct, frozen=True):
    """An answer, whole or cut.

    Attributes:
        reasoning, content: verbatim, never stripped.
        finish: None if the stream ended without one.
        usage: None if none came.
        cut: why the stream did not end cleanly; None for a complete answer.
        pieces: None for an answer that was not streamed.
        token_ids, prompt_ids: from an engine that returns them.
        token_bytes: bytes of each sampled token from a list of logprobs, in order, all channels as they came.
        first_token, seconds: seconds from the send to the first token and to the end.
        extra: what was not parsed, never the whole stream.
    """

    reasoning: str = ""
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish: Finish | None = None
    usage: Usage | None = None
    provider: str = ""
    model: str = ""
    generation_id: str = ""
    pieces: Pieces | None = None
    cut: Failure | None = None
    token_ids: tuple[int, ...] | None = None
    prompt_ids: tuple[int, ...] | None = None
    token_bytes: tuple[bytes, ...] | None = None
    first_token: float | None = None
    seconds: float = 0.0
    extra: dict[str, Any] = {}


Outcome = Completion | Failure


class Label(StrEnum):
    """How the token ids of an answer are known; the order is from the surest to the unusable."""

    ENGINE = "engine"
    LOGPROBS = "logprobs"
    STREAMED = "streamed"
    COUNTED = "counted"
    STRIPPED = "stripped"
    REPAIRED = "repaired"
    UNCOUNTED = "uncounted"
    NEAR = "near"
    MISMATCH = "mismatch"
    BROKEN = "broken"
    MISSERVED = "misserved"


STRICT = frozenset({Label.ENGINE, Label.LOGPROBS, Label.STREAMED, Label.COUNTED, Label.STRIPPED, Label.REPAIRED})
"""Labels whose ids agree with all that the API said: what `--labels strict` exports."""


class Record(msgspec.Struct, frozen=True):
    """A paid, durable answer. `cost` is nano-dollars, None while it is unknown; `tag` is the endpoint asked."""

    work: Work
    prompt: Prompt
    completion: Completion
    tag: str
    cost: int | None
    attempt: int


class Sequence(msgspec.Struct, frozen=True):
    """Training tokens of one record. `loss_mask` covers prompt_ids + completion_ids: 1 on what the model sampled."""

    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    loss_mask: tuple[int, ...]
    label: Label
    record_id: str
    reason: str = ""


class Verdict(StrEnum):
    """What an attempt's outcome means for its work. All but AGAIN end it."""

    DONE = "done"
    PARTIAL = "partial"
    AGAIN = "again"
    REFUSED = "refused"
    FAILED = "failed"
    UNKNOWN = "unknown"


class StopReason(StrEnum):
    """Why a session of a run ended."""

    COMPLETE = "complete"
    CAP = "cap"
    OWED = "owed"
    INTERRUPTED = "interrupted"
    KEY = "key"
    STORAGE = "storage"
    ALARM = "alarm"
    ERROR = "error"


class DraftText(msgspec.Struct, frozen=True):
    """What an answer in flight gained since its last draft; tool calls stand whole, as far as they have come.

    Drafts are no events: they are kept beside them until the attempt settles, and only a kill makes them matter.
    """

    reasoning: str = ""
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    pieces: Pieces = Pieces()
    provider: str = ""
