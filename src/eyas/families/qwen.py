r"""The Qwen3 models (Alibaba).

Qwen3 (hybrid): a prompt ends with `<|im_start|>assistant\n` when thinking, and the model samples `<think>` R `</think>` C;
when not, with `<think>\n\n</think>\n\n` after it. Of July 2025 on there are models of one mode: Thinking-2507, whose prompt
ends with `<think>\n`, and Instruct-2507, which never thinks. Qwen3.5 is hybrid again, its prompt ending with `<think>\n` or
`<think>\n\n</think>\n\n`. The newlines around `</think>` and before `<tool_call>` belong to the texts beside them.

Templates: https://huggingface.co/Qwen/Qwen3-32B, Qwen3-235B-A22B-Thinking-2507 and -Instruct-2507, Qwen3.5-397B-A17B, by way
of `renderers`. Qwen3.5 gives booleans in tool calls as `True`, `False`, and null as `None`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from eyas.families.base import Shift
from eyas.families.calls import functions, hermes
from eyas.families.grammar import Calls, Grammar, Marks, marks_of
from eyas.families.library import Renderer, Tokenizer, library, whole
from eyas.families.rendered import REASONING_OFF, REASONING_ON, Described, Mode, hub_ids
from eyas.types import Message
from eyas.vocab import Vocab

_NEEDS: Mapping[str, int | None] = {
    "<|endoftext|>": 151643,
    "<|im_start|>": 151644,
    "<|im_end|>": 151645,
    "<tool_call>": 151657,
    "</tool_call>": 151658,
    "<tool_response>": 151665,
    "</tool_response>": 151666,
    "<think>": 151667,
    "</think>": 151668,
}
"""Special ids of Qwen3, from its `tokenizer_config.json`."""

_NEEDS_35: Mapping[str, int | None] = dict.fromkeys(
    [*_NEEDS, "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
)

_THINKING = {"temperature": 0.6, "top_p": 0.95, "top_k": 20, "min_p": 0.0}
_INSTANT = {"temperature": 0.7, "top_p": 0.8, "top_k": 20, "min_p": 0.0}
"""Recommended on https://huggingface.co/Qwen/Qwen3-32B, and the same for the models of July 2025."""

_SIZES = ("0.6b", "1.7b", "4b", "8b", "14b", "32b", "30b-a3b", "235b-a22b")

# The prompt gives <think> and a newline: two ids that a server without them in its template leaves to the model.
_OPENED = (Shift("<think> counted in the completion", -2, 2),)


class _Opened:
    """A renderer of conversations with a generation prompt of ours.

    The library's own one is that of the hybrid models. And with thinking off it closes `<think>` in past answers too, to
    keep them as they were sampled, which no server's template does.
    """

    def __init__(self, inner: Renderer, opening: str, vocab: Vocab) -> None:
        self._inner = inner
        self._opening = vocab.encode_special(opening)
        self._vocab = vocab

    def render_ids(self, messages: list[Message], *, tools: list[Any] | None, add_generation_prompt: bool) -> list[int]:
        """Ids of a conversation."""
        ids = self._inner.render_ids(messages, tools=tools, add_generation_prompt=False)
        ids = whole(self._vocab, ids, messages)
        return [*ids, *self._opening] if add_generation_prompt else ids


_CLOSED = "<think>\n\n</think>\n\n"


def _renderer(module: str, name: str, hub: str, ends: Mapping[bool, str]) -> Callable[[Vocab, bool], Renderer]:
    """A family's renderer; `ends` is what its prompts end with behind the role, by mode."""

    def made(vocab: Vocab, thinking: bool) -> Renderer:
        inner = library(module, name, Tokenizer(vocab, hub, "<|im_end|>"), enable_thinking=True)
        return _Opened(inner, f"<|im_start|>assistant\n{ends[thinking]}", vocab)

    return made


def _answers(
    syntax: Callable[[Marks], Calls], *, thinks: bool = True, opens: bool = False
) -> Callable[[Vocab], Grammar]:
    def made(vocab: Vocab) -> Grammar:
        marks = marks_of(vocab)
        closing, opening = (marks["</think>"] if thinks else None), (marks["<think>"],) if opens else ()
        return Grammar(stop=marks["<|im_end|>"], calls=syntax(marks), closing=closing, opening=opening)

    return made


QWEN3 = Described(
    name="qwen3",
    models=hub_ids(*(f"qwen3-{size}" for size in _SIZES)),
    tokenizer="Qwen/Qwen3-32B",
    modes={True: Mode(_THINKING, REASONING_ON), False: Mode(_INSTANT, REASONING_OFF)},
    renderer=_renderer("qwen3", "Qwen3", "Qwen/Qwen3-32B", {True: "", False: _CLOSED}),
    answers=_answers(hermes, opens=True),
    needs=_NEEDS,
)
QWEN3_THINKING_2507 = Described(
    name="qwen3-thinking-2507",
    models=hub_ids("qwen3-*-thinking-2507*", "qwen3-next-*-thinking*"),
    tokenizer="Qwen/Qwen3-235B-A22B-Thinking-2507",
    modes={True: Mode(_THINKING, REASONING_ON, _OPENED)},
    renderer=_renderer("qwen3", "Qwen3", "Qwen/Qwen3-235B-A22B-Thinking-2507", {True: "<think>\n"}),
    answers=_answers(hermes),
    needs=_NEEDS,
)
QWEN3_INSTRUCT_2507 = Described(
    name="qwen3-instruct-2507",
    models=hub_ids("qwen3-*-instruct-2507*", "qwen3-235b-a22b-2507*", "qwen3-next-*-instruct*"),
    tokenizer="Qwen/Qwen3-235B-A22B-Instruct-2507",
    modes={False: Mode(_INSTANT, {})},
    renderer=_renderer("qwen3", "Qwen3", "Qwen/Qwen3-235B-A22B-Instruct-2507", {False: ""}),
    answers=_answers(hermes, thinks=False),
    needs=_NEEDS,
)
QWEN35 = Described(
    name="qwen3.5",
    models=hub_ids("qwen3.5-*"),
    tokenizer="Qwen/Qwen3.5-397B-A17B",
    modes={
        True: Mode({"temperature": 1.0, "top_p": 0.95, "top_k": 20, "presence_penalty": 1.5}, REASONING_ON, _OPENED),
        False: Mode({"temperature": 0.7, "top_p": 0.8, "top_k": 20, "presence_penalty": 1.5}, REASONING_OFF),
    },
    renderer=_renderer("qwen35", "Qwen35", "Qwen/Qwen3.5-397B-A17B", {True: "<think>\n", False: _CLOSED}),
    answers=_answers(functions),
    needs=_NEEDS_35,
)
"""Sampling: https://huggingface.co/Qwen/Qwen3.5-35B-A3B, general tasks."""
