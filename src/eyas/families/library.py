"""The library `renderers`, which writes the prompts of most families: what it wants of a vocabulary, and what it gives."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol, cast

from eyas.types import Message
from eyas.vocab import Vocab

_SHORT = 32


class Renderer(Protocol):
    """What writes prompts: a renderer of the library, or one of ours where it has none."""

    def render_ids(self, messages: list[Message], *, tools: list[Any] | None, add_generation_prompt: bool) -> list[int]:
        """Ids of a conversation."""
        ...


class Tokenizer:
    """A vocabulary as `renderers` wants it; it asks for markers by `encode`, so spelled specials become their ids."""

    unk_token_id = None

    def __init__(self, vocab: Vocab, name: str, end: str) -> None:
        self.name_or_path = name
        self.eos_token_id = vocab.specials[end]
        self._vocab = vocab
        self._short = lru_cache(maxsize=4096)(vocab.encode_special)

    def encode(self, text: str, **_: Any) -> list[int]:
        """Ids of a text, spelled specials as their ids."""
        return list(self._short(text)) if len(text) <= _SHORT else self._vocab.encode_special(text)

    def decode(self, token_ids: Sequence[int], **_: Any) -> str:
        """The text of ids."""
        return self._vocab.decode(token_ids)

    def convert_tokens_to_ids(self, tokens: str) -> int | None:
        """The id of a special by its spelling."""
        return self._vocab.specials.get(tokens)


def library(module: str, name: str, tokenizer: Tokenizer, **config: Any) -> Renderer:
    """A renderer of the library with its configuration.

    The import waits until a prompt is rendered: it takes a second, since it brings an OpenAI client along.

    Args:
        module: the module of `renderers`.
        name: its class without `Renderer`, which is also that of its configuration.
        tokenizer: the vocabulary.
        **config: the template's switches.
    """
    made: Any = importlib.import_module(f"renderers.{module}")
    configs: Any = importlib.import_module("renderers.configs")
    settings = getattr(configs, f"{name}RendererConfig")(**config)
    return cast("Renderer", getattr(made, f"{name}Renderer")(tokenizer, settings))


def whole(vocab: Vocab, ids: list[int], messages: Sequence[Message]) -> list[int]:
    """Ids of a conversation encoded as one text, as a server encodes it.

    The library encodes some stretches of past answers and of tool turns apart, so that a newline becomes a token of its
    own where a server has one token of two.
    """
    if any(message.get("role") in ("assistant", "tool") for message in messages):
        return vocab.encode_special(vocab.decode(ids))
    return ids
