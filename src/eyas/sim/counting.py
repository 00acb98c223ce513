"""How many tokens a provider says of a prompt and of an answer: its own template, a hidden turn, another tokenizer (pure)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from eyas.sim.providers import Provider
from eyas.sim.text import Vocabulary

CountPrompt = Callable[[list[dict[str, Any]], list[dict[str, Any]], bool], int]
"""Tokens of the rendered prompt: (messages, tools, thinking) -> count."""

Surplus = Callable[[Sequence[int]], int]
"""How many more tokens another tokenizer makes of ordinary ids."""

_RANKS = 16_384
"""The other tokenizer is the model's without the merges that were learned after this one."""

_DEFAULT_SYSTEM = 12


class Meter:
    """Counts prompts by the model's template, and what a provider makes of such a count."""

    def __init__(self, vocabulary: Vocabulary, count_prompt: CountPrompt | None) -> None:
        """Without `count_prompt` prompts are counted by an approximation."""
        self._vocabulary = vocabulary
        self._surpluses: dict[int, int] = {}
        self.prompt = count_prompt or self._about

    def shown(
        self, provider: Provider, prompt: int, messages: list[dict[str, Any]], tools: list[dict[str, Any]]
    ) -> int:
        """The provider's count of a prompt that the model's own template renders as `prompt` tokens."""
        shown = prompt + provider.hidden_prompt
        if provider.other_template:
            system = any(message.get("role") == "system" for message in messages)
            shown += len(messages) + 1 + (0 if system else _DEFAULT_SYSTEM)
        if provider.other_tokenizer:
            shown += sum(self.surplus(self._vocabulary.encode(text)) for text in _texts(messages, tools))
        return shown

    def surplus(self, ids: Sequence[int]) -> int:
        """How many more tokens the other tokenizer makes of ordinary ids."""
        surpluses, total = self._surpluses, 0
        for token in ids:
            if token not in surpluses:
                surpluses[token] = self._pieces(self._vocabulary.token_bytes(token)) - 1
            total += surpluses[token]
        return total

    def _pieces(self, data: bytes) -> int:
        """Into how many tokens the first merges alone leave these bytes."""
        parts = [data[place : place + 1] for place in range(len(data))]
        while True:
            ranks = [self._vocabulary.id_of(left + right) for left, right in pairwise(parts)]
            known = [(rank, place) for place, rank in enumerate(ranks) if rank is not None and rank < _RANKS]
            if not known:
                return len(parts)
            _, place = min(known)
            parts[place : place + 2] = [parts[place] + parts[place + 1]]

    def _about(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], thinking: bool) -> int:
        return 4 + thinking + sum(4 + len(self._vocabulary.encode(text)) for text in _texts(messages, tools))


def _texts(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> list[str]:
    return [str(message.get("content") or "") for message in messages] + [
        json.dumps(tool, ensure_ascii=False, separators=(",", ":")) for tool in tools
    ]
