r"""The DeepSeek models.

Bars in the names of their special tokens are full-width (U+FF5C), blanks U+2581. R1: a prompt ends with `<|Assistant|><think>\n`; an answer is R `</think>` C, the newlines around the marker being parts of
these texts. V3 does not think: its prompt ends with `<|Assistant|>`. V3.1, V3.2 and V4: with `<|Assistant|><think>`, or
`<|Assistant|></think>` when not thinking. All end with `<|end of sentence|>`.

Templates: https://huggingface.co/deepseek-ai/DeepSeek-R1, -V3, -V3.1 (chat_template.jinja), -V3.2 (encoding_dsv32.py), and
-V4-Flash (encoding_dsv4.py). R1, V3 and V4 by way of `renderers`; V3.1 and V3.2, which it lacks, are written here. The
templates of R1, V3 and V3.1 have no place for tool declarations and servers write them in ways of their own; V3.2's way was
not seen whole. So tools and tool turns in the prompts of these four are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from eyas.families.base import Shift
from eyas.families.calls import DSML, bare, deepseek_mark, dsml, fenced
from eyas.families.content import plain_text
from eyas.families.grammar import Calls, Grammar, Marks, marks_of
from eyas.families.library import Renderer, Tokenizer, library
from eyas.families.rendered import REASONING_OFF, REASONING_ON, THINK_SHIFT, Described, Mode, hub_ids
from eyas.types import Message
from eyas.vocab import Vocab

_BOS, _EOS = deepseek_mark("begin of sentence"), deepseek_mark("end of sentence")
_USER, _ASSISTANT = deepseek_mark("User"), deepseek_mark("Assistant")

_NEEDS: Mapping[str, int | None] = {
    _BOS: 0,
    _EOS: 1,
    "<think>": 128798,
    "</think>": 128799,
    _USER: 128803,
    _ASSISTANT: 128804,
    deepseek_mark("tool calls begin"): 128806,
    deepseek_mark("tool calls end"): 128807,
    deepseek_mark("tool call begin"): 128808,
    deepseek_mark("tool call end"): 128809,
    deepseek_mark("tool sep"): 128814,
}
"""Special ids of V3, R1 and V3.1, from their `tokenizer.json`."""

_NEEDS_V32: Mapping[str, int | None] = dict.fromkeys([_BOS, _EOS, "<think>", "</think>", _USER, _ASSISTANT])
"""Those of V3.2 were not seen all, so only their names are asked for."""

_NEEDS_V4: Mapping[str, int | None] = dict.fromkeys([*_NEEDS_V32, DSML])

_BOS_SHIFT = Shift("BOS not counted", -1)


class _Plain:
    """A renderer that refuses tools, since the family's template does not say how they are written."""

    def __init__(self, inner: Renderer) -> None:
        self._inner = inner

    def render_ids(self, messages: list[Message], *, tools: list[Any] | None, add_generation_prompt: bool) -> list[int]:
        """Ids of a conversation.

        Raises:
            ValueError: there are tools in it.
        """
        if tools or any(each.get("role") == "tool" or each.get("tool_calls") for each in messages):
            raise ValueError("its chat template has no known form for tools")
        return self._inner.render_ids(messages, tools=None, add_generation_prompt=add_generation_prompt)


class _V31:
    """The prompts of V3.1: system turns first, then the turns, past answers behind `</think>`."""

    def __init__(self, vocab: Vocab, thinking: bool) -> None:
        self._encode = vocab.encode_special
        self._thinking = thinking

    def render_ids(self, messages: list[Message], *, tools: list[Any] | None, add_generation_prompt: bool) -> list[int]:
        """Ids of a conversation; tools are not written."""
        del tools
        texts = [_BOS, "\n\n".join(plain_text(each.get("content")) for each in messages if each["role"] == "system")]
        asked = False
        for message in messages:
            text = plain_text(message.get("content"))
            if message["role"] == "user":
                texts += [_USER, text]
                asked = True
            elif message["role"] == "assistant":
                texts += [f"{_ASSISTANT}</think>" if asked else "", text.split("</think>", 1)[-1], _EOS]
                asked = False
            elif message["role"] != "system":
                raise ValueError(f"it has no role {message['role']!r}")
        if add_generation_prompt and asked:
            texts += [_ASSISTANT, "<think>" if self._thinking else "</think>"]
        return self._encode("".join(texts))


def _of_library(module: str, name: str, hub: str) -> Callable[[Vocab, bool], Renderer]:
    def made(vocab: Vocab, thinking: bool) -> Renderer:  # noqa: ARG001  # these have one mode
        return _Plain(library(module, name, Tokenizer(vocab, hub, _EOS)))

    return made


def _v31(vocab: Vocab, thinking: bool) -> Renderer:
    return _Plain(_V31(vocab, thinking))


def _v4(vocab: Vocab, thinking: bool) -> Renderer:
    tokenizer = Tokenizer(vocab, "deepseek-ai/DeepSeek-V4-Flash-0731", _EOS)
    return library("deepseek_v4", "DeepSeekV4", tokenizer, enable_thinking=thinking)


def _answers(syntax: Callable[[Marks], Calls], *, thinks: bool = True) -> Callable[[Vocab], Grammar]:
    def made(vocab: Vocab) -> Grammar:
        marks = marks_of(vocab)
        return Grammar(stop=marks[_EOS], calls=syntax(marks), closing=marks["</think>"] if thinks else None)

    return made


def _hybrid(temperature: float, top_p: float) -> Mapping[bool, Mode]:
    sampling = {"temperature": temperature, "top_p": top_p}
    return {
        True: Mode(sampling, REASONING_ON, (THINK_SHIFT, _BOS_SHIFT)),
        False: Mode(sampling, REASONING_OFF, (_BOS_SHIFT,)),
    }


DEEPSEEK_R1 = Described(
    name="deepseek-r1",
    models=hub_ids("deepseek-r1", "deepseek-r1-0528"),
    tokenizer="deepseek-ai/DeepSeek-R1-0528",
    modes={
        True: Mode(
            {"temperature": 0.6, "top_p": 0.95},
            REASONING_ON,
            (Shift("<think> counted in the completion", -2, 2), _BOS_SHIFT),
        )
    },
    renderer=_of_library("deepseek_r1", "DeepSeekR1", "deepseek-ai/DeepSeek-R1"),
    answers=_answers(fenced),
    needs=_NEEDS,
)
"""Sampling: https://huggingface.co/deepseek-ai/DeepSeek-R1. The distilled models are other families."""
DEEPSEEK_V3 = Described(
    name="deepseek-v3",
    models=hub_ids("deepseek-v3", "deepseek-v3-0324", "deepseek-chat", "deepseek-chat-v3*"),
    tokenizer="deepseek-ai/DeepSeek-V3-0324",
    modes={False: Mode({"temperature": 0.3}, {}, (_BOS_SHIFT,))},
    renderer=_of_library("deepseek_v3", "DeepSeekV3", "deepseek-ai/DeepSeek-V3"),
    answers=_answers(fenced, thinks=False),
    needs=_NEEDS,
)
"""Sampling: https://huggingface.co/deepseek-ai/DeepSeek-V3-0324."""
DEEPSEEK_V31 = Described(
    name="deepseek-v3.1",
    models=hub_ids("deepseek-v3.1*", "deepseek-chat-v3.1*", "deepseek-v3.2-exp"),
    tokenizer="deepseek-ai/DeepSeek-V3.1",
    modes=_hybrid(0.6, 0.95),
    renderer=_v31,
    answers=_answers(bare),
    needs=_NEEDS,
)
"""Sampling: `generation_config.json` of https://huggingface.co/deepseek-ai/DeepSeek-V3.1. V3.2-Exp has its template."""
DEEPSEEK_V32 = Described(
    name="deepseek-v3.2",
    models=hub_ids("deepseek-v3.2"),
    tokenizer="deepseek-ai/DeepSeek-V3.2",
    modes=_hybrid(1.0, 0.95),
    renderer=_v31,
    answers=_answers(lambda marks: dsml(marks, "function_calls")),
    needs=_NEEDS_V32,
    leaks=DSML,
)
"""Sampling: https://huggingface.co/deepseek-ai/DeepSeek-V3.2. Without tools its prompts are written as V3.1's."""
DEEPSEEK_V4 = Described(
    name="deepseek-v4",
    models=hub_ids("deepseek-v4*"),
    tokenizer="deepseek-ai/DeepSeek-V4-Flash",
    modes=_hybrid(1.0, 1.0),
    renderer=_v4,
    answers=_answers(lambda marks: dsml(marks, "tool_calls")),
    needs=_NEEDS_V4,
    leaks=DSML,
    remembers=True,
)
"""Sampling: https://huggingface.co/deepseek-ai/DeepSeek-V4-Flash. The effort is the encoder's default, `low`, which adds no text;
a server with another effort puts a text into the prompt, and its prompt counts will not agree."""
