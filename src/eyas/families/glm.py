r"""The GLM models (Z.ai).

An answer has no end marker of its own: the model samples the role that comes next, `<|user|>`, or `<|observation|>` after tool
calls. GLM-4.5 and 4.6: a prompt ends with `<|assistant|>` when thinking, and the model samples `\n<think>` R `</think>` C; the
newline is eaten by the server's parser. When not, it ends with `<|assistant|>\n<think></think>`, and the last user turn with
`/nothink`. GLM-5: it ends with `<|assistant|><think>`, or `<|assistant|></think>`.

Templates: https://huggingface.co/zai-org/GLM-4.5-Air, GLM-4.6, GLM-5, by way of `renderers`. A message without content is
rendered as an empty one, as servers do it; the bare template would write `None`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from eyas.families.base import Shift
from eyas.families.calls import glm as calls
from eyas.families.grammar import Grammar, form, marks_of
from eyas.families.library import Renderer, Tokenizer, library, whole
from eyas.families.rendered import REASONING_OFF, REASONING_ON, THINK_SHIFT, Described, Mode, hub_ids
from eyas.types import Message
from eyas.vocab import Vocab

_NEEDS: Mapping[str, int | None] = {
    "<|endoftext|>": 151329,
    "[gMASK]": 151331,
    "<sop>": 151333,
    "<|system|>": 151335,
    "<|user|>": 151336,
    "<|assistant|>": 151337,
    "<|observation|>": 151338,
    "<think>": 151350,
    "</think>": 151351,
    "<tool_call>": 151352,
    "</tool_call>": 151353,
    "<tool_response>": 151354,
    "</tool_response>": 151355,
    "<arg_key>": 151356,
    "</arg_key>": 151357,
    "<arg_value>": 151358,
    "</arg_value>": 151359,
}
"""Special ids of GLM-4.5 and 4.6, from their `tokenizer_config.json`."""

_START = Shift("[gMASK]<sop> not counted", -2)


class _Said:
    """A renderer that gets an empty text where a message has no content, and whose calls stand on lines of their own.

    Of several calls behind a content the library leaves out the newline between them, which GLM-4.5's template has.
    """

    def __init__(self, inner: Renderer, vocab: Vocab, line: str) -> None:
        self._inner = inner
        self._vocab = vocab
        self._between = vocab.specials["</tool_call>"], vocab.specials["<tool_call>"]
        self._line = vocab.encode(line)

    def render_ids(self, messages: list[Message], *, tools: list[Any] | None, add_generation_prompt: bool) -> list[int]:
        """Ids of a conversation."""
        said = [{**message, "content": ""} if message.get("content") is None else message for message in messages]
        ids = self._inner.render_ids(said, tools=tools, add_generation_prompt=add_generation_prompt)
        if self._line and any(message.get("tool_calls") for message in messages):
            ids = list(self._parted(ids))
        return whole(self._vocab, ids, messages)

    def _parted(self, ids: list[int]) -> Iterator[int]:
        last = -1
        for number in ids:
            if (last, number) == self._between:
                yield from self._line
            yield number
            last = number


def _glm45(vocab: Vocab, thinking: bool) -> Renderer:
    tokenizer = Tokenizer(vocab, "zai-org/GLM-4.5-Air", "<|endoftext|>")
    return _Said(library("glm45", "GLM45", tokenizer, enable_thinking=thinking), vocab, "\n")


def _glm5(vocab: Vocab, thinking: bool) -> Renderer:
    tokenizer = Tokenizer(vocab, "zai-org/GLM-5", "<|endoftext|>")
    return _Said(library("glm5", "GLM5", tokenizer, enable_thinking=thinking), vocab, "")


def _answers(line: str, *, opens: bool) -> Callable[[Vocab], Grammar]:
    def made(vocab: Vocab) -> Grammar:
        marks = marks_of(vocab)
        return Grammar(
            stop=marks["<|user|>"],
            calls=calls(marks, line),
            closing=marks["</think>"],
            opening=(form(line), marks["<think>"]) if opens else (),
            calls_stop=marks["<|observation|>"],
        )

    return made


def _modes(temperature: float, *thinking: Shift) -> Mapping[bool, Mode]:
    sampling = {"temperature": temperature, "top_p": 0.95}
    return {
        True: Mode(sampling, REASONING_ON, (*thinking, _START)),
        False: Mode(sampling, REASONING_OFF, (_START,)),
    }


GLM45 = Described(
    name="glm-4.5",
    models=hub_ids("glm-4.5", "glm-4.5-air", "glm-4.5-fp8", "glm-4.5-air-fp8"),
    tokenizer="zai-org/GLM-4.5",
    modes=_modes(0.6),
    renderer=_glm45,
    answers=_answers("\n", opens=True),
    needs=_NEEDS,
)
"""Sampling: https://docs.z.ai/guides/overview/concept-param."""
GLM46 = Described(
    name="glm-4.6",
    models=hub_ids("glm-4.6", "glm-4.6-fp8"),
    tokenizer="zai-org/GLM-4.6",
    modes=_modes(1.0),
    renderer=_glm45,
    answers=_answers("\n", opens=True),
    needs=_NEEDS,
)
"""Sampling: https://huggingface.co/zai-org/GLM-4.6 (top_p: its value for code)."""
GLM5 = Described(
    name="glm-5",
    models=hub_ids("glm-5", "glm-5-*"),
    tokenizer="zai-org/GLM-5",
    modes=_modes(1.0, THINK_SHIFT),
    renderer=_glm5,
    answers=_answers("", opens=False),
    needs=dict.fromkeys(_NEEDS),
)
"""Sampling: https://huggingface.co/zai-org/GLM-5."""
