"""The tool-call syntaxes of the model families, as the templates write them (pure).

An API gives a call as a name and JSON. Where the model samples that JSON, it is taken over byte for byte; where it
samples tags instead, strings are put in as they are and other values as the JSON has them. In an answer that did not
end, the last call has no marker after its last text. JSON that is no object goes in as it came: no syntax says how.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eyas.families.arguments import Pair, pairs
from eyas.families.base import Channel, Part
from eyas.families.grammar import Calls, Marks, arguments, form, merged
from eyas.types import ToolCall

_PYTHON = {"true": "True", "false": "False", "null": "None"}


def _python(value: str) -> str:
    """A JSON value with Python's word for a constant, a cut one too."""
    hits = (word[: len(value)] if value != name else word for name, word in _PYTHON.items() if name.startswith(value))
    return next(hits, value)


def _each(calls: Sequence[ToolCall], ended: bool, one: Callable[[ToolCall, bool], list[Part]], gap: str) -> list[Part]:
    """All calls with text between them; each is told whether it is closed."""
    parts: list[Part] = []
    for index, call in enumerate(calls):
        if index and gap:
            parts.append(form(gap))
        parts += one(call, ended or index < len(calls) - 1)
    return parts


def kimi(marks: Marks) -> Calls:
    """Kimi K2: a section of calls, each an id and its arguments between markers."""

    def one(call: ToolCall, closed: bool) -> list[Part]:
        parts = [marks["<|tool_call_begin|>"], Part(call.id, Channel.TOOL_ID)]
        if closed or call.arguments:
            parts += [marks["<|tool_call_argument_begin|>"], arguments(call.arguments)]
        return [*parts, marks["<|tool_call_end|>"]] if closed else parts

    def section(calls: tuple[ToolCall, ...], ended: bool) -> list[Part]:
        parts = [marks["<|tool_calls_section_begin|>"], *_each(calls, ended, one, "")]
        return [*parts, marks["<|tool_calls_section_end|>"]] if ended else parts

    return section


def hermes(marks: Marks) -> Calls:
    r"""Qwen3: `<tool_call>\n{"name": …, "arguments": …}\n</tool_call>`, a newline between calls."""

    def one(call: ToolCall, closed: bool) -> list[Part]:
        parts = [marks["<tool_call>"], form(f'\n{{"name": "{call.name}')]
        if closed or call.arguments:
            parts += [form('", "arguments": '), arguments(call.arguments)]
        return [*parts, form("}\n"), marks["</tool_call>"]] if closed else parts

    return lambda calls, ended: merged(_each(calls, ended, one, "\n"))


def functions(marks: Marks) -> Calls:
    r"""Qwen3.5: `<tool_call>\n<function=…>\n` and tags for each argument, all of it text but the outer markers."""

    def one(call: ToolCall, closed: bool) -> list[Part]:
        found = pairs(call.arguments, whole=closed)
        parts = [marks["<tool_call>"], form(f"\n<function={call.name}")]
        if found is None:
            parts += [form(">\n"), arguments(call.arguments)]
        elif closed or found:
            parts.append(form(">\n"))
            for index, pair in enumerate(found):
                parts += parameter(pair, closed or index < len(found) - 1)
        return [*parts, form("</function>\n"), marks["</tool_call>"]] if closed else parts

    def parameter(pair: Pair, closed: bool) -> list[Part]:
        parts = [form("<parameter="), arguments(pair.key)]
        if pair.value is not None:
            parts += [form(">\n"), arguments(pair.value if pair.string else _python(pair.value))]
        return [*parts, form("\n</parameter>\n")] if closed else parts

    return lambda calls, ended: merged(_each(calls, ended, one, "\n"))


def glm(marks: Marks, line: str) -> Calls:
    """GLM: name, then a key and a value between markers for each argument; `line` ends each line and parts the calls."""

    def one(call: ToolCall, closed: bool) -> list[Part]:
        found = pairs(call.arguments, whole=closed)
        parts = [marks["<tool_call>"], form(call.name)]
        if found is None:
            parts += [form(line), arguments(call.arguments)]
        elif closed or found:
            parts.append(form(line))
            for index, pair in enumerate(found):
                parts += argument(pair, closed or index < len(found) - 1)
        return [*parts, marks["</tool_call>"]] if closed else parts

    def argument(pair: Pair, closed: bool) -> list[Part]:
        parts = [marks["<arg_key>"], arguments(pair.key)]
        if pair.value is not None:
            parts += [marks["</arg_key>"], form(line), marks["<arg_value>"], arguments(pair.value)]
        return [*parts, marks["</arg_value>"], form(line)] if closed else parts

    return lambda calls, ended: merged(_each(calls, ended, one, line))


def fenced(marks: Marks) -> Calls:
    """DeepSeek V3 and R1: type, name and a fenced block of JSON; a newline between calls."""

    def one(call: ToolCall, closed: bool) -> list[Part]:
        parts = [
            marks[deepseek_mark("tool call begin")],
            form("function"),
            marks[deepseek_mark("tool sep")],
            form(call.name),
        ]
        if closed or call.arguments:
            parts += [form("\n```json\n"), arguments(call.arguments)]
        return [*parts, form("\n```"), marks[deepseek_mark("tool call end")]] if closed else parts

    return _deepseek(marks, one, "\n")


def bare(marks: Marks) -> Calls:
    """DeepSeek V3.1: name and JSON between markers, nothing between calls."""

    def one(call: ToolCall, closed: bool) -> list[Part]:
        parts = [marks[deepseek_mark("tool call begin")], form(call.name)]
        if closed or call.arguments:
            parts += [marks[deepseek_mark("tool sep")], arguments(call.arguments)]
        return [*parts, marks[deepseek_mark("tool call end")]] if closed else parts

    return _deepseek(marks, one, "")


def _deepseek(marks: Marks, one: Callable[[ToolCall, bool], list[Part]], gap: str) -> Calls:
    def section(calls: tuple[ToolCall, ...], ended: bool) -> list[Part]:
        parts = [marks[deepseek_mark("tool calls begin")], *_each(calls, ended, one, gap)]
        return merged([*parts, marks[deepseek_mark("tool calls end")]] if ended else parts)

    return section


def deepseek_mark(words: str) -> str:
    """The spelling of a DeepSeek special: full-width bars, and U+2581 between words."""
    return "<\uff5c" + words.replace(" ", "\u2581") + "\uff5c>"


DSML = "\uff5cDSML\uff5c"
"""The marker of DeepSeek's tags since V3.2; a special id where the tokenizer has it, else text."""


def dsml(marks: Marks, section: str) -> Calls:
    """DeepSeek V3.2 and V4: tags with names; `section` is the name of the outer one."""
    mark = marks.get(DSML) or form(DSML)

    def tag(text: str, close: bool = False) -> list[Part]:
        return [form("</" if close else "<"), mark, form(text)]

    def one(call: ToolCall, closed: bool) -> list[Part]:
        found = pairs(call.arguments, whole=closed)
        parts = tag(f'invoke name="{call.name}')
        if found is None:
            parts += [form('">\n'), arguments(call.arguments)]
        elif closed or found:
            parts.append(form('">\n'))
            for index, pair in enumerate(found):
                parts += parameter(pair, index > 0, closed or index < len(found) - 1)
        return [*parts, form("\n"), *tag("invoke>", close=True)] if closed else parts

    def parameter(pair: Pair, later: bool, closed: bool) -> list[Part]:
        parts = [form("\n" if later else ""), *tag('parameter name="'), arguments(pair.key)]
        if pair.value is not None:
            parts += [form(f'" string="{str(pair.string).lower()}">'), arguments(pair.value)]
        return [*parts, *tag("parameter>", close=True)] if closed else parts

    def all_of(calls: tuple[ToolCall, ...], ended: bool) -> list[Part]:
        parts = [*tag(f"{section}>\n"), *_each(calls, ended, one, "\n")]
        return merged([*parts, form("\n"), *tag(f"{section}>", close=True)] if ended else parts)

    return all_of
