"""From the ids that a model sampled to what it said: reasoning, content, tool calls (pure).

The way back from `parts`. Engines that are given ids give ids back and parse nothing: the ids are what is trained on, these
texts are for people, and for the next turn of a conversation. Values of calls that are written in tags come without their
types: what reads as JSON is taken as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec

from eyas.types import ToolCall
from eyas.vocab import Vocab

BEGINS = (
    "<|tool_calls_section_begin|>",
    "<\uff5ctool\u2581calls\u2581begin\uff5c>",
    "<tool_call>",
    "\uff5cDSML\uff5c",
)
"""Specials that a section of calls begins with, in the families' syntaxes (calls.py)."""


_TAG = f"<{BEGINS[3]}"


class Said(msgspec.Struct, frozen=True):
    """What an answer says. `calls_read`: False where the call section is not as the family writes it; it stands in `content`."""

    reasoning: str = ""
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    calls_read: bool = True


def without_stop(ids: Sequence[int], stops: Collection[int]) -> Sequence[int]:
    """Ids without the stop token at their end, where there is one."""
    return ids[:-1] if ids and ids[-1] in stops else ids


def after_reasoning(
    ids: Sequence[int], closing: int | None, opening: Sequence[int]
) -> tuple[Sequence[int], Sequence[int]]:
    """Ids of the reasoning, without what opens it, and those behind what closes it; all are reasoning if nothing does."""
    if closing is None:
        return (), ids
    end = ids.index(closing) if closing in ids else len(ids)
    start = len(opening) if tuple(ids[: len(opening)]) == tuple(opening) else 0
    return ids[start:end], ids[end + 1 :]


def plain(ids: Sequence[int], vocab: Vocab, reasoning: Sequence[int] = ()) -> Said:
    """An answer of content and tool calls, whose reasoning was cut off before."""
    begins = {vocab.specials[name] for name in BEGINS if name in vocab.specials}
    at = next((place for place, number in enumerate(ids) if number in begins), None)
    thought = vocab.decode(reasoning)
    text = vocab.decode(ids)
    if at is None:
        before, tag, _ = text.partition(_TAG)  # DeepSeek's tags where the tokenizer has no special for them
        section = text[len(before) :] if tag and BEGINS[3] not in vocab.specials else ""
    else:
        before = vocab.decode(ids[: at - (vocab.specials.get(BEGINS[3]) == ids[at])])  # its bracket stands before it
        section = text[len(before) :]
    if not section:
        return Said(thought, text)
    calls = read_calls(section)
    return Said(thought, before, calls) if calls else Said(thought, text, calls_read=False)


def read_calls(section: str) -> tuple[ToolCall, ...]:
    """The calls of a section; none where it is not as one of the families writes it."""
    for pattern, read in _SYNTAXES:
        found = list(pattern.finditer(section))
        if found:
            return tuple(read(index, match) for index, match in enumerate(found))
    return ()


def _named(index: int, match: re.Match[str]) -> ToolCall:
    return ToolCall(f"call_{index}", match["name"].strip(), match["arguments"].strip())


def _with_id(index: int, match: re.Match[str]) -> ToolCall:
    del index
    name = re.sub(r"^functions\.|:\d+$", "", match["id"].strip())
    return ToolCall(match["id"].strip(), name, match["arguments"])


def _tagged(pairs: str) -> Callable[[int, re.Match[str]], ToolCall]:
    inner = re.compile(pairs, re.DOTALL)

    def read(index: int, match: re.Match[str]) -> ToolCall:
        values = dict(_values(inner.finditer(match["arguments"])))
        return ToolCall(f"call_{index}", match["name"].strip(), json.dumps(values, ensure_ascii=False))

    return read


def _values(found: Iterator[re.Match[str]]) -> Iterator[tuple[str, object]]:
    for each in found:
        fields = each.groupdict()
        yield each["key"], each["value"] if fields.get("string") == "true" else _value(each["value"])


def _value(text: str) -> object:
    """A value as JSON has it; a text where it is none."""
    constants = {"True": True, "False": False, "None": None}
    if text in constants:
        return constants[text]
    try:
        return json.loads(text)
    except ValueError:
        return text


def _syntax(
    pattern: str, read: Callable[[int, re.Match[str]], ToolCall]
) -> tuple[re.Pattern[str], Callable[[int, re.Match[str]], ToolCall]]:
    return re.compile(pattern, re.DOTALL), read


_B, _S = "<\uff5ctool\u2581call\u2581begin\uff5c>", "<\uff5ctool\u2581sep\uff5c>"
_E, _D = "<\uff5ctool\u2581call\u2581end\uff5c>", "\uff5cDSML\uff5c"
_SYNTAXES = (
    _syntax(
        r"<\|tool_call_begin\|>(?P<id>.*?)<\|tool_call_argument_begin\|>(?P<arguments>.*?)<\|tool_call_end\|>", _with_id
    ),
    _syntax(f"{_B}function{_S}(?P<name>[^\n]*)\n```json\n(?P<arguments>.*?)\n```{_E}", _named),
    _syntax(f"{_B}(?P<name>.*?){_S}(?P<arguments>.*?){_E}", _named),
    _syntax(r'<tool_call>\s*\{"name": "(?P<name>[^"]*)", "arguments": (?P<arguments>.*?)\}\s*</tool_call>', _named),
    _syntax(
        r"<tool_call>\s*<function=(?P<name>[^>]*)>\n?(?P<arguments>.*?)</function>\s*</tool_call>",
        _tagged(r"<parameter=(?P<key>[^>]*)>\n(?P<value>.*?)\n</parameter>"),
    ),
    _syntax(
        r"<tool_call>(?P<name>[^<\n]*)\n?(?P<arguments>.*?)</tool_call>",
        _tagged(r"<arg_key>(?P<key>.*?)</arg_key>\n?<arg_value>(?P<value>.*?)</arg_value>"),
    ),
    _syntax(
        f'<{_D}invoke name="(?P<name>[^"]*)">\n?(?P<arguments>.*?)\n?</{_D}invoke>',
        _tagged(f'<{_D}parameter name="(?P<key>[^"]*)" string="(?P<string>true|false)">(?P<value>.*?)</{_D}parameter>'),
    ),
)
"""Kimi; DeepSeek V3 and R1, V3.1; Qwen3, Qwen3.5; GLM; DeepSeek V3.2 and later. The first that fits is taken."""
