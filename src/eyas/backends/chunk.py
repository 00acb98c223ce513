"""One chunk of a chat completion as it stands on the wire: only the fields that are used.

Source: https://openrouter.ai/docs/api-reference/overview and recorded exchanges (tests/data/recorded).
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

import msgspec

from eyas.ledger import nano_dollars
from eyas.types import Usage


class Function(msgspec.Struct):
    """A function call, as far as this chunk has it."""

    name: str | None = None
    arguments: Any = None


class Tool(msgspec.Struct):
    """A tool call, as far as this chunk has it."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None


class Detail(msgspec.Struct):
    """One entry of reasoning_details."""

    text: str | None = None


class Delta(msgspec.Struct):
    """What a chunk adds, or a whole message."""

    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    reasoning_details: list[Detail] | None = None
    tool_calls: list[Tool] | None = None


class Listed(msgspec.Struct):
    """One entry of a list of logprobs. `bytes` is null where a server knows no better than the text."""

    token: str = ""
    bytes: list[Annotated[int, msgspec.Meta(ge=0, le=255)]] | None = None


class Logprobs(msgspec.Struct):
    """Entries of the tokens of a chunk; some servers list those of the reasoning apart."""

    content: list[Listed] | None = None
    reasoning_content: list[Listed] | None = None
    reasoning: list[Listed] | None = None


class Choice(msgspec.Struct):
    """The one choice. `logprobs` is decoded apart, so that an odd list costs no text; ids come from engines that are asked."""

    delta: Delta | None = None
    message: Delta | None = None
    finish_reason: str | None = None
    native_finish_reason: str | None = None
    logprobs: msgspec.Raw = msgspec.Raw()
    token_ids: list[int] | None = None
    prompt_token_ids: list[int] | None = None
    error: Any = None


class Details(msgspec.Struct):
    """Parts of a token count."""

    reasoning_tokens: int | None = None
    cached_tokens: int | None = None


class WireUsage(msgspec.Struct):
    """Token counts and cost as the API spells them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: Decimal | None = None
    prompt_tokens_details: Details | None = None
    completion_tokens_details: Details | None = None


class Chunk(msgspec.Struct):
    """One event of a stream, or a whole body."""

    id: str | None = None
    model: str | None = None
    provider: str | None = None
    choices: list[Choice] | None = None
    usage: WireUsage | None = None
    prompt_token_ids: list[int] | None = None
    error: Any = None


decode = msgspec.json.Decoder(Chunk, strict=False).decode
"""A chunk's bytes as a Chunk; fields that are not known are skipped."""


class TextDelta(msgspec.Struct, gc=False):
    """A Delta that adds text and nothing else."""

    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    reasoning_details: msgspec.Raw = msgspec.Raw()
    tool_calls: None = None


class TextChoice(msgspec.Struct, gc=False):
    """A Choice that is nothing but its delta."""

    delta: TextDelta
    message: None = None
    finish_reason: None = None
    logprobs: None = None
    token_ids: list[int] | None = None
    prompt_token_ids: None = None
    error: None = None


class TextChunk(msgspec.Struct, gc=False):
    """A Chunk that only adds text, as nearly all do: those of a stream are decoded many at once, in half the time."""

    choices: tuple[TextChoice]
    id: str | None = None
    model: str | None = None
    provider: str | None = None
    usage: None = None
    prompt_token_ids: None = None
    error: None = None


decode_texts = msgspec.json.Decoder(TextChunk).decode_lines
"""Chunks, one a line; raises a DecodeError if any of them is more than text."""


_logprobs = msgspec.json.Decoder(Logprobs | None).decode


def token_bytes(raw: msgspec.Raw) -> list[bytes] | None:
    """The bytes of each token that a chunk lists, the reasoning's first; None if the list cannot be read."""
    try:
        found = _logprobs(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if found is None:
        return []
    entries = [*(found.reasoning_content or found.reasoning or ()), *(found.content or ())]
    return [each.token.encode(errors="surrogatepass") if each.bytes is None else bytes(each.bytes) for each in entries]


def usage_of(usage: WireUsage) -> Usage:
    """The same with the cost in nano-dollars; a cost that is no amount counts as not said."""
    reasoning = usage.completion_tokens_details.reasoning_tokens if usage.completion_tokens_details else None
    cached = usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details else None
    cost = None if usage.cost is None or not usage.cost.is_finite() or usage.cost < 0 else nano_dollars(usage.cost)
    return Usage(usage.prompt_tokens, usage.completion_tokens, reasoning, cached or 0, cost)
