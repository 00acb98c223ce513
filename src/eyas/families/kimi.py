"""Kimi K2.5 (Moonshot AI).

Template: a prompt ends with `<|im_assistant|>assistant<|im_middle|><think>` when thinking and with `…<think></think>`
when not, so `<think>` is never sampled; an answer is R `</think>` C, tool calls, `<|im_end|>`, with no newlines between.
"""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, cast

from eyas.errors import UsageError
from eyas.families.base import Channel, Loaded, Part, Shift
from eyas.types import Completion, Finish, Message, ToolCall
from eyas.vocab import Layout, Vocab

SPECIALS: Mapping[str, int] = {
    "[BOS]": 163584,
    "[EOS]": 163585,
    "<|im_end|>": 163586,
    "<|im_user|>": 163587,
    "<|im_assistant|>": 163588,
    "<|start_header_id|>": 163590,
    "<|end_header_id|>": 163591,
    "[EOT]": 163593,
    "<|im_system|>": 163594,
    "<|tool_calls_section_begin|>": 163595,
    "<|tool_calls_section_end|>": 163596,
    "<|tool_call_begin|>": 163597,
    "<|tool_call_argument_begin|>": 163598,
    "<|tool_call_end|>": 163599,
    "<|im_middle|>": 163601,
    "<|media_begin|>": 163602,
    "<|media_content|>": 163603,
    "<|media_end|>": 163604,
    "<|media_pad|>": 163605,
    "<think>": 163606,
    "</think>": 163607,
    "[UNK]": 163838,
    "[PAD]": 163839,
}
"""Named special ids, from `tokenizer_config.json` of the K2.5 family."""

_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
_LEAD = r"[^\r\n\p{L}\p{N}]?"
_CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"

PATTERN = "|".join(
    (
        r"[\p{Han}]+",
        f"{_LEAD}{_UPPER}*{_LOWER}+{_CONTRACTION}",
        f"{_LEAD}{_UPPER}+{_LOWER}*{_CONTRACTION}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)
"""`pat_str` of the official `tokenization_kimi.py`."""

LAYOUT = Layout(PATTERN, ranks=163_584, reserved=256, unnamed="<|reserved_token_{}|>", named=SPECIALS)

_SAMPLED_STOP = (Finish.STOP, Finish.TOOL_CALLS)

# Brackets are left out: [PAD] or [EOS] in an answer is ordinary prose about tokenizers, since servers skip the real ones.
# The singular section marker is no token of the model: it writes it as text when it fails to call a tool.
_LEAK = re.compile(
    "|".join(map(re.escape, sorted(name for name in SPECIALS if name.startswith("<"))))
    + r"|<\|reserved_token_\d+\|>|<\|tool_call_section_(?:begin|end)\|>"
)

_RENDER_ERRORS = (AttributeError, ImportError, LookupError, RuntimeError, TypeError, ValueError)

_SHORT = 32


class KimiK25:
    """Kimi K2.5 before its tokenizer is loaded."""

    name = "kimi-k2.5"
    models = ("moonshotai/kimi-k2.5*",)
    tokenizer = "moonshotai/Kimi-K2.5"

    def sampling(self, thinking: bool) -> Mapping[str, float]:
        """Moonshot's recommendation: temperature 1.0 thinking, 0.6 instant; top_p 0.95."""
        return {"temperature": 1.0 if thinking else 0.6, "top_p": 0.95}

    def body(self, thinking: bool) -> Mapping[str, Any]:
        """OpenRouter's switch between thinking and instant mode."""
        return {"reasoning": {"enabled": thinking}}

    def load(self, folder: Path) -> Loaded:
        """Load the tokenizer in a folder and check that it is Kimi's.

        Raises:
            UsageError: it is not; the message says what does not fit.
        """
        vocab = Vocab.load(folder, LAYOUT)
        wrong = [f"{vocab.ranks:,} entries instead of {LAYOUT.ranks:,}"] if vocab.ranks != LAYOUT.ranks else []
        wrong += [f"{name} is not {i}" for name, i in SPECIALS.items() if vocab.specials.get(name) != i]
        if wrong:
            raise UsageError(
                f"the tokenizer in {folder} does not fit family kimi-k2.5: {'; '.join(wrong[:4])}. "
                f"Use the one of {self.tokenizer}, or another family."
            )
        return LoadedKimi(vocab)


class LoadedKimi:
    """Kimi K2.5 with its tokenizer."""

    name = KimiK25.name

    def __init__(self, vocab: Vocab) -> None:
        self.vocab = vocab
        self.stop = SPECIALS["<|im_end|>"]
        self._renderers: dict[bool, _Renderer] = {}
        self._lock = threading.Lock()

    def prompt_ids(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], thinking: bool) -> list[int]:
        """Ids of the prompt as the template gives them, generation prompt included.

        Keys of tool declarations are sorted first, as `tokenization_kimi.py` sorts them.

        Raises:
            UsageError: the template cannot say these messages (images, an empty list, a broken tool schema).
        """
        if not all(_is_text(message.get("content")) for message in messages):
            raise UsageError("the prompt cannot be rendered: it holds something else than text; remove it.")
        renderer = self._renderers.get(thinking) or self._renderer(thinking)
        declared = [_sorted(tool) for tool in tools] or None
        try:
            return renderer.render_ids(list(messages), tools=declared, add_generation_prompt=True)
        except _RENDER_ERRORS as error:
            raise UsageError(f"the prompt cannot be rendered for kimi-k2.5 ({error}): correct or remove it.") from error

    def count_prompt(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], thinking: bool) -> int:
        """How many ids the prompt has."""
        return len(self.prompt_ids(messages, tools, thinking))

    def shifts(self, thinking: bool) -> tuple[Shift, ...]:
        """Moonshot AI counts `<think>` as the answer's, though the template gives it (recorded exchange)."""
        return (Shift("<think> counted in the completion", -1, 1),) if thinking else ()

    def parts(self, completion: Completion, thinking: bool) -> tuple[Part, ...]:
        """What the model sampled: R `</think>` C, the tool section, `<|im_end|>`; without thinking from C on.

        An answer without STOP or TOOL_CALLS ends where its text ends: markers after the last text are not known.
        """
        ended = completion.finish in _SAMPLED_STOP
        parts: list[Part] = []
        if thinking:
            if completion.reasoning:
                parts.append(Part(completion.reasoning, Channel.REASONING))
            if ended or completion.content or completion.tool_calls:
                parts.append(_special("</think>"))
        if completion.content:
            parts.append(Part(completion.content, Channel.CONTENT))
        if completion.tool_calls:
            parts.extend(_tool_section(completion.tool_calls, ended))
        if ended:
            parts.append(_special("<|im_end|>"))
        return tuple(parts)

    def leaks(self, text: str) -> bool:
        """Whether `<|…|>` or think markers stand in a text of an answer."""
        return "<" in text and _LEAK.search(text) is not None

    def _renderer(self, thinking: bool) -> _Renderer:
        with self._lock:
            if thinking not in self._renderers:
                # Importing renderers takes a second: it brings an OpenAI client along.
                module: Any = importlib.import_module("renderers.kimi_k25")
                config: Any = importlib.import_module("renderers.configs").KimiK25RendererConfig(thinking=thinking)
                self._renderers[thinking] = cast("_Renderer", module.KimiK25Renderer(_Tokenizer(self.vocab), config))
            return self._renderers[thinking]


class _Renderer(Protocol):
    """What is used of a renderer of the `renderers` library."""

    def render_ids(
        self, messages: list[Message], *, tools: list[Any] | None, add_generation_prompt: bool
    ) -> list[int]: ...


class _Tokenizer:
    """The tokenizer as `renderers` wants it; it asks for <think> by `encode`, so spelled specials become their ids."""

    name_or_path = KimiK25.tokenizer
    unk_token_id = None
    eos_token_id = SPECIALS["<|im_end|>"]

    def __init__(self, vocab: Vocab) -> None:
        self._vocab = vocab
        self._short = lru_cache(maxsize=4096)(vocab.encode_special)

    def encode(self, text: str, **_: Any) -> list[int]:
        return self._short(text) if len(text) <= _SHORT else self._vocab.encode_special(text)

    def decode(self, token_ids: Sequence[int], **_: Any) -> str:
        return self._vocab.decode(token_ids)

    def convert_tokens_to_ids(self, tokens: str) -> int | None:
        return self._vocab.specials.get(tokens)


def _special(name: str) -> Part:
    return _SPECIAL_PARTS[name]


def _tool_section(calls: tuple[ToolCall, ...], ended: bool) -> list[Part]:
    """The tool section; of an answer that did not end, the last call and the section stay open."""
    parts = [_special("<|tool_calls_section_begin|>")]
    for index, call in enumerate(calls):
        closed = ended or index < len(calls) - 1
        parts += [_special("<|tool_call_begin|>"), Part(call.id, Channel.TOOL_ID)]
        if closed or call.arguments:
            parts += [_special("<|tool_call_argument_begin|>"), Part(call.arguments, Channel.ARGUMENTS)]
        if closed:
            parts.append(_special("<|tool_call_end|>"))
    if ended:
        parts.append(_special("<|tool_calls_section_end|>"))
    return parts


def _is_text(content: Any) -> bool:
    """Whether a content is text alone; the renderer would fetch the images that it names."""
    if not isinstance(content, list):
        return content is None or isinstance(content, str)
    return all(isinstance(part, dict) and "text" in part for part in cast("list[Any]", content))


def _sorted(value: Any) -> Any:
    """A JSON value with the keys of its objects sorted, at every depth."""
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        return {key: _sorted(table[key]) for key in sorted(table)}
    if isinstance(value, list):
        return [_sorted(item) for item in cast("list[Any]", value)]
    return value


_SPECIAL_PARTS = {name: Part(name, token=number) for name, number in SPECIALS.items()}
