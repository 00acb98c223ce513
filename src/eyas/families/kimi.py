"""The Kimi K2 models (Moonshot AI).

K2.5 and K2.6: a prompt ends with `<|im_assistant|>assistant<|im_middle|><think>` when thinking and with `…<think></think>`
when not, so `<think>` is never sampled; an answer is R `</think>` C, tool calls, `<|im_end|>`, with no newlines between.
K2-Thinking samples `<think>` itself: its prompt ends with `<|im_middle|>`. K2-Instruct does not think: its answer is C.

Templates: https://huggingface.co/moonshotai/Kimi-K2-Instruct and -Thinking, Kimi-K2.5. K2.6 is taken to be as K2.5, as
`renderers` has it; its own template was not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from eyas.families.calls import kimi as calls
from eyas.families.content import plain_text
from eyas.families.grammar import Grammar, marks_of
from eyas.families.history import accepted, reasoned
from eyas.families.library import Renderer, Tokenizer, library, whole
from eyas.families.rendered import REASONING_OFF, REASONING_ON, THINK_SHIFT, Described, Mode, hub_ids
from eyas.types import Message
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

_SYSTEM: Message = {"role": "system", "content": "You are Kimi, an AI assistant created by Moonshot AI."}

# The singular section marker is no token of the model: it writes it as text when it fails to call a tool.
_SINGULAR = r"<\|tool_call_section_(?:begin|end)\|>"

_MODES = {
    True: Mode({"temperature": 1.0, "top_p": 0.95}, REASONING_ON, (THINK_SHIFT,)),
    False: Mode({"temperature": 0.6, "top_p": 0.95}, REASONING_OFF),
}
"""Recommended on https://huggingface.co/moonshotai/Kimi-K2.5. Moonshot AI itself counts `<think>` as the answer's, though
the template gives it (recorded exchange)."""


class _Sorted:
    """A renderer that gets the keys of tool declarations sorted, as `tokenization_kimi.py` sorts them."""

    def __init__(self, inner: Renderer, vocab: Vocab, turn: Callable[[list[Message]], list[Message]] = list) -> None:
        self._inner = inner
        self._vocab = vocab
        self._turn = turn

    def render_ids(self, messages: list[Message], *, tools: list[Any] | None, add_generation_prompt: bool) -> list[int]:
        """Ids of a conversation."""
        turned = self._turn(messages)
        declared = [_sorted(tool) for tool in tools or ()] or None
        ids = self._inner.render_ids(turned, tools=declared, add_generation_prompt=add_generation_prompt)
        return whole(self._vocab, ids, messages)


def _k25(vocab: Vocab, thinking: bool) -> Renderer:
    tokenizer = Tokenizer(vocab, "moonshotai/Kimi-K2.5", "<|im_end|>")
    return _Sorted(library("kimi_k25", "KimiK25", tokenizer, thinking=thinking), vocab)


def _k2(vocab: Vocab, thinking: bool) -> Renderer:  # noqa: ARG001  # the one mode
    return _Sorted(library("kimi_k2", "KimiK2", Tokenizer(vocab, "moonshotai/Kimi-K2-Instruct", "<|im_end|>")), vocab)


def _k2_thinking(vocab: Vocab, thinking: bool) -> Renderer:  # noqa: ARG001  # the one mode
    tokenizer = Tokenizer(vocab, "moonshotai/Kimi-K2-Thinking", "<|im_end|>")
    return _Sorted(library("kimi_k2", "KimiK2", tokenizer), vocab, _think_history)


def _think_history(messages: list[Message]) -> list[Message]:
    """Messages whose answers carry their reasoning in the content, as K2-Thinking's template writes it.

    It keeps the reasoning after the last answer without tool calls, and empties it up to there. Its default system turn
    has no newline after it, unlike that of K2-Instruct, so it is given here.
    """
    plain = [i for i, each in enumerate(messages) if each.get("role") == "assistant" and not each.get("tool_calls")]
    last = plain[-1] if plain else -1
    turned = [_thought(each, i > last) if each.get("role") == "assistant" else each for i, each in enumerate(messages)]
    return turned if messages[0].get("role") == "system" else [_SYSTEM, *turned]


def _thought(message: Message, kept: bool) -> Message:
    reasoning = message.get("reasoning_content") or "" if kept else ""
    return {**message, "content": f"<think>{reasoning}</think>{plain_text(message.get('content'))}"}


def _grammar(vocab: Vocab, *, thinks: bool, opens: bool) -> Grammar:
    marks = marks_of(vocab)
    return Grammar(
        stop=marks["<|im_end|>"],
        calls=calls(marks),
        closing=marks["</think>"] if thinks else None,
        opening=(marks["<think>"],) if opens else (),
    )


def _family(name: str, models: Sequence[str], tokenizer: str, modes: Mapping[bool, Mode], how: _How) -> Described:
    return Described(
        name=name,
        models=hub_ids(*models),
        tokenizer=tokenizer,
        modes=modes,
        renderer=how[0],
        answers=lambda vocab: _grammar(vocab, thinks=how[1], opens=how[2]),
        needs=SPECIALS if how[1] else _K2_SPECIALS,
        layout=LAYOUT,
        entries=LAYOUT.ranks,
        leaks=_SINGULAR,
        remembers=how[1],
        refuses=reasoned if how[1] else accepted,
    )


def _sorted(value: Any) -> Any:
    """A JSON value with the keys of its objects sorted, at every depth."""
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        return {key: _sorted(table[key]) for key in sorted(table)}
    if isinstance(value, list):
        return [_sorted(item) for item in cast("list[Any]", value)]
    return value


_How = tuple[Callable[[Vocab, bool], Renderer], bool, bool]
"""What writes the prompts; whether the model thinks; whether it samples `<think>` itself."""

_K2_SPECIALS = {name: number for name, number in SPECIALS.items() if "media" not in name and "think" not in name}
"""K2-Instruct's table has no names for media and thinking."""

KIMI_K25 = _family("kimi-k2.5", ["kimi-k2.5*"], "moonshotai/Kimi-K2.5", _MODES, (_k25, True, False))
KIMI_K26 = _family("kimi-k2.6", ["kimi-k2.6*"], "moonshotai/Kimi-K2.6", _MODES, (_k25, True, False))
KIMI_K2_THINKING = _family(
    "kimi-k2-thinking",
    ["kimi-k2-thinking*"],
    "moonshotai/Kimi-K2-Thinking",
    {True: Mode({"temperature": 1.0}, REASONING_ON)},
    (_k2_thinking, True, True),
)
"""Sampling: https://huggingface.co/moonshotai/Kimi-K2-Thinking."""
KIMI_K2 = _family(
    "kimi-k2",
    ["kimi-k2", "kimi-k2-0905", "kimi-k2-instruct*"],
    "moonshotai/Kimi-K2-Instruct",
    {False: Mode({"temperature": 0.6}, {})},
    (_k2, False, False),
)
"""Sampling: https://huggingface.co/moonshotai/Kimi-K2-Instruct."""
