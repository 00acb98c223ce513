"""A chat request as the world reads it, and the requests that it refuses at once (pure)."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import msgspec

from eyas.sim.providers import Route


class Reasoning(msgspec.Struct, frozen=True):
    """The `reasoning` block, as far as it decides whether the model thinks."""

    enabled: bool | None = None
    effort: str | None = None


class Chat(msgspec.Struct, frozen=True):
    """The fields of a chat body that the world obeys; unknown ones are ignored, as the API does."""

    messages: list[dict[str, Any]]
    model: str = ""
    stream: bool = False
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    tools: list[dict[str, Any]] | None = None
    logprobs: bool | None = None
    reasoning: Reasoning | None = None
    provider: Route = Route()

    @property
    def thinking(self) -> bool:
        """Whether the model is to think: yes unless it is told not to."""
        asked = self.reasoning or Reasoning()
        return asked.enabled is not False and asked.effort != "none"

    @property
    def limit(self) -> int | None:
        """The most tokens it may sample, if the body says."""
        return self.max_completion_tokens or self.max_tokens

    @property
    def calls_before(self) -> int:
        """Tool calls in the history: the native counter goes on from there."""
        return sum(len(message.get("tool_calls") or ()) for message in self.messages)


_METADATA = re.compile(rb',"metadata":\{[^{}]*\}')


class Ask(msgspec.Struct, frozen=True):
    """A chat request with its identities: the key, and sha256 of the body and of canonical [messages, tools].

    `fate` is sha256 of the body without its metadata: it seeds what befalls the request, so that a mark that a client
    puts there changes nothing.
    """

    chat: Chat
    key: str
    body_sha256: str
    fate: str
    prompt_key: str
    cache_ttl: float | None = None


def prompt_key(messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None) -> str:
    """sha256 of the canonical JSON of [messages, tools]: sorted keys, no spaces, no escapes; no tools are []."""
    text = json.dumps([messages, tools or []], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def parse(raw: bytes, key: str, cache_ttl: float | None) -> Ask | str:
    """The request, or what is wrong with it."""
    try:
        chat = msgspec.json.decode(raw, type=Chat)
    except msgspec.DecodeError as error:
        return f"Input validation failed: {error}"
    if not chat.messages:
        return "Input validation failed: messages must not be empty"
    if chat.limit is not None and chat.limit < 1:
        return "Input validation failed: max_tokens must be at least 1"
    fate = hashlib.sha256(_METADATA.sub(b"", raw)).hexdigest()
    return Ask(chat, key, hashlib.sha256(raw).hexdigest(), fate, prompt_key(chat.messages, chat.tools), cache_ttl)
