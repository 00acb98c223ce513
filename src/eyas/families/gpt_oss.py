"""gpt-oss (OpenAI).

A prompt ends with `<|start|>assistant`; the model samples the name of each channel itself: `<|channel|>analysis<|message|>` R
`<|end|><|start|>assistant<|channel|>final<|message|>` C `<|return|>`. A tool call stands in the channel `commentary` with its
recipient and ends the answer with `<|call|>`; content beside it is commentary too. It always thinks; how much, an effort in
the system turn says: medium here, in the request and in the prompt.

Source: https://cookbook.openai.com/articles/openai-harmony, by way of `openai_harmony`. A model may write the recipient of a
call before the channel instead, with the same meaning. The system turn names the day: servers write that of the request,
this family always the same one, so that a prompt has the same ids on every day. The ids of the date differ, their number not.
"""

from __future__ import annotations

import base64
import os
import re
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eyas.families.base import Channel, Part
from eyas.families.grammar import Marks, arguments, calling, ended, form, marks_of
from eyas.families.library import Renderer, Tokenizer, library
from eyas.families.rendered import Described, Mode, hub_ids
from eyas.families.said import Said
from eyas.types import Completion, Message, ToolCall
from eyas.vocab import Vocab

DATE = "2025-06-28"
"""The day in the system turn: the one of OpenAI's own examples."""

_NEEDS: Mapping[str, int | None] = {
    "<|return|>": 200002,
    "<|constrain|>": 200003,
    "<|channel|>": 200005,
    "<|start|>": 200006,
    "<|end|>": 200007,
    "<|message|>": 200008,
    "<|call|>": 200012,
}
"""Special ids of o200k_harmony, https://cookbook.openai.com/articles/openai-harmony."""

_RECIPIENT = re.compile(r"to=functions\.(?P<name>[^\s<]+)")

_VOCABULARY = "TIKTOKEN_ENCODINGS_BASE"
_FILE = "o200k_base.tiktoken"


class _Harmony:
    """Prompts up to `<|start|>assistant`; the library's own generation prompt goes on with a channel."""

    def __init__(self, inner: Renderer, opening: list[int]) -> None:
        self._inner = inner
        self._opening = opening

    def render_ids(self, messages: list[Message], *, tools: list[Any] | None, add_generation_prompt: bool) -> list[int]:
        """Ids of a conversation."""
        ids = self._inner.render_ids(messages, tools=tools, add_generation_prompt=False)
        return [*ids, *self._opening] if add_generation_prompt else ids


def _renderer(vocab: Vocab, thinking: bool) -> Renderer:  # noqa: ARG001  # the one mode
    tokenizer = Tokenizer(vocab, "openai/gpt-oss-120b", "<|return|>")
    with _vocabulary(vocab):
        inner = library("gpt_oss", "GptOss", tokenizer, conversation_start_date=DATE, reasoning_effort="medium")
    return _Harmony(inner, vocab.encode_special("<|start|>assistant"))


@contextmanager
def _vocabulary(vocab: Vocab) -> Generator[None]:
    """Give `openai_harmony` the vocabulary that is loaded: by itself it would fetch it from the network.

    It checks the file's hash, so another vocabulary is refused.
    """
    before = os.environ.get(_VOCABULARY)
    with tempfile.TemporaryDirectory() as folder:
        lines = (b"%s %d\n" % (base64.b64encode(vocab.token_bytes(i)), i) for i in range(vocab.ranks))
        (Path(folder) / _FILE).write_bytes(b"".join(lines))
        os.environ[_VOCABULARY] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ[_VOCABULARY]
            else:
                os.environ[_VOCABULARY] = before


class Harmony:
    """What gpt-oss samples."""

    def __init__(self, vocab: Vocab) -> None:
        self._marks: Marks = marks_of(vocab)
        self.stop = self._marks["<|return|>"]
        self.stops = (self.stop, self._marks["<|call|>"])

    def parts(self, completion: Completion, thinking: bool) -> tuple[Part, ...]:
        """What the model sampled, in order; an answer that did not end has no markers after its text."""
        del thinking  # there is one mode
        done, calls = ended(completion), completion.tool_calls
        messages: list[list[Part]] = []
        if completion.reasoning:
            messages.append([*self._channel("analysis"), Part(completion.reasoning, Channel.REASONING)])
        if completion.content or (done and not calling(completion)):
            channel = self._channel("commentary" if calls else "final")
            messages.append([*channel, *([Part(completion.content, Channel.CONTENT)] if completion.content else [])])
        parts: list[Part] = []
        for index, message in enumerate(messages):
            parts += [*(self._next() if index else ()), *message]
            if calls or index < len(messages) - 1:
                parts.append(self._marks["<|end|>"])
        for index, call in enumerate(calls):
            closed = done or index < len(calls) - 1
            parts += [*(self._next() if messages or index else ()), *self._call(call, closed)]
        if done and not calls:
            parts.append(self.stop)
        return tuple(parts)

    def said(self, ids: Sequence[int], vocab: Vocab, thinking: bool) -> Said:
        """What sampled ids, without the stop token, say: analysis, final or commentary, calls by their recipients."""
        del thinking  # there is one mode
        reasoning, content, calls = "", "", list[ToolCall]()
        for message in vocab.decode(ids).split("<|start|>"):
            head, _, text = message.partition("<|message|>")
            text = text.removesuffix("<|end|>").removesuffix("<|call|>")
            if call := _RECIPIENT.search(head):
                calls.append(ToolCall(f"call_{len(calls)}", call["name"], text))
            elif "analysis" in head:
                reasoning += text
            else:
                content += text
        return Said(reasoning, content, tuple(calls))

    def _channel(self, name: str) -> tuple[Part, ...]:
        return self._marks["<|channel|>"], form(name), self._marks["<|message|>"]

    def _next(self) -> tuple[Part, ...]:
        return self._marks["<|start|>"], form("assistant")

    def _call(self, call: ToolCall, closed: bool) -> list[Part]:
        marks = self._marks
        parts = [
            marks["<|channel|>"],
            form(f"commentary to=functions.{call.name}" + (" " if closed or call.arguments else "")),
        ]
        if closed or call.arguments:
            parts += [marks["<|constrain|>"], form("json"), marks["<|message|>"], arguments(call.arguments)]
        return [*parts, marks["<|call|>"]] if closed else parts


GPT_OSS = Described(
    name="gpt-oss",
    models=hub_ids("gpt-oss-*"),
    tokenizer="openai/gpt-oss-120b",
    modes={True: Mode({"temperature": 1.0, "top_p": 1.0}, {"reasoning": {"effort": "medium"}})},
    renderer=_renderer,
    answers=Harmony,
    needs=_NEEDS,
    remembers=True,
)
"""Sampling: https://github.com/openai/gpt-oss#recommended-sampling-parameters."""
