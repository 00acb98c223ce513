"""Answers of every family and mode, back through the parser of `renderers`, which is independent of our grammar.

That parser strips texts, so stripped texts are compared. What it cannot read is read otherwise here: the tool calls of
DeepSeek V3.1, which it lacks, by a regular expression; the outer tag of V3.2, which it does not know, is taken off. Of
Qwen3.5 it reads `True` and `None` as texts. It searches some decoded texts for markers, so an answer whose text spells
markers is not given to it: such an answer must be flagged, and its text must still be ids of text.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

from eyas.families import FAMILIES, Loaded, Part
from eyas.families.library import Tokenizer, library
from eyas.types import Completion, Finish, ToolCall
from tests.generated import answer, call, conversation, text, tool
from tests.vocabularies import bound, modes

ANSWERS = 1000
USER = {"role": "user", "content": "Go on."}
FLAT = {"KimiK2": "enable_thinking", "KimiK25": "thinking", "DeepSeekR1": "", "DeepSeekV3": "", "GptOss": ""}
"""The name of a configuration's thinking switch, where it is not `enable_thinking`."""

PARSERS = {
    "kimi-k2.5": ("kimi_k25", "KimiK25"),
    "kimi-k2.6": ("kimi_k25", "KimiK25"),
    "kimi-k2-thinking": ("kimi_k2", "KimiK2"),
    "kimi-k2": ("kimi_k2", "KimiK2"),
    "deepseek-r1": ("deepseek_r1", "DeepSeekR1"),
    "deepseek-v3": ("deepseek_v3", "DeepSeekV3"),
    "deepseek-v3.1": ("deepseek_v3", "DeepSeekV3"),
    "deepseek-v4": ("deepseek_v4", "DeepSeekV4"),
    "qwen3": ("qwen3", "Qwen3"),
    "qwen3-thinking-2507": ("qwen3", "Qwen3"),
    "qwen3-instruct-2507": ("qwen3", "Qwen3"),
    "qwen3.5": ("qwen35", "Qwen35"),
    "glm-4.5": ("glm45", "GLM45"),
    "glm-4.6": ("glm45", "GLM45"),
    "glm-5": ("glm5", "GLM5"),
}
HARMONY = ("return", "call", "start", "end", "channel", "message", "constrain")
MODES = [(name, mode) for name, family in FAMILIES.items() for mode in modes(family)]
Read = Callable[[list[int], list[dict[str, Any]]], Any]


@pytest.fixture(params=MODES, ids=lambda each: f"{each[0]}-{'thinking' if each[1] else 'instant'}")
def case(request: pytest.FixtureRequest) -> tuple[Loaded, bool]:
    """A family with its vocabulary, and a mode."""
    name, thinking = request.param
    return bound(name, request), thinking


def _text(parts: Sequence[Part]) -> str:
    return "".join(part.text for part in parts)


def _ids(family: Loaded, parts: Sequence[Part]) -> list[int]:
    """Ids of an answer; no text of it may become a special id."""
    special = set(family.vocab.specials.values())
    ids: list[int] = []
    for part in parts:
        if part.token is None:
            text = family.vocab.encode(part.text)
            assert not special.intersection(text)
            ids += text
        else:
            assert family.vocab.specials[part.text] == part.token
            ids.append(part.token)
    return ids


def _reader(family: Loaded, thinking: bool) -> Read:
    """What reads the ids of an answer."""
    from renderers.parsing import parse_deepseek_v4, parse_gpt_oss

    specials = family.vocab.specials
    if family.name == "gpt-oss":
        tokenizer = Tokenizer(family.vocab, "", "<|return|>")
        marks = {f"{name}_id": specials[f"<|{name}|>"] for name in HARMONY}
        start = family.vocab.encode_special("<|start|>assistant")
        return lambda ids, tools: parse_gpt_oss(tokenizer, [*start, *ids], **marks)
    tokenizer = Tokenizer(family.vocab, "", next(name for name in specials if "end" in name))
    prompt = family.prompt_ids([USER], [], thinking)
    if family.name == "deepseek-v3.2":
        known: dict[str, Any] = {"think_end_id": specials["</think>"], "think_start_id": specials["<think>"]}
        known |= {"stop_ids": {family.stop}, "thinking_enabled": thinking}
        return lambda ids, tools: parse_deepseek_v4(tokenizer, ids, **known)
    module, name = PARSERS[family.name]
    switch = FLAT.get(name, "enable_thinking")
    renderer: Any = library(module, name, tokenizer, **({switch: thinking} if switch else {}))
    return lambda ids, tools: renderer.parse_response(ids, tools=tools or None, prompt_ids=prompt)


def _calls(family: Loaded, parsed: Any, text: str) -> list[tuple[str | None, Any]]:
    """Names and arguments of the calls."""
    if family.name == "deepseek-v3.1":
        mark = r"<\uff5ctool\u2581call\u2581begin\uff5c>(.*?)<\uff5ctool\u2581sep\uff5c>(.*?)<\uff5ctool\u2581call\u2581end\uff5c>"
        return [(name, json.loads(arguments)) for name, arguments in re.findall(mark, text, re.DOTALL)]
    return [(each.name, each.arguments) for each in parsed.tool_calls]


def _expected(family: Loaded, calls: Sequence[ToolCall]) -> list[tuple[str, Any]]:
    found = [(call.name, json.loads(call.arguments)) for call in calls]
    if family.name != "qwen3.5":
        return found
    python = {True: "True", False: "False", None: "None"}
    return [
        (name, {key: python[v] if v is None or isinstance(v, bool) else v for key, v in arguments.items()})
        for name, arguments in found
    ]


def _content(text: str) -> str:
    return re.sub("</?\uff5cDSML\uff5cfunction_calls>\n?", "", text or "").strip()


def _same(family: Loaded, parsed: Any, completion: Completion, thinking: bool, text: str) -> None:
    ended = completion.finish in (Finish.STOP, Finish.TOOL_CALLS)
    opened = thinking and not ended and not completion.content and not completion.tool_calls
    assert (parsed.reasoning_content or "").strip() == (completion.reasoning.strip() if thinking else "")
    assert _content(parsed.content) == completion.content.strip()
    if opened and completion.reasoning.strip():
        assert parsed.reasoning_complete is False
    closed = completion.tool_calls if ended else completion.tool_calls[:-1]
    found = _calls(family, parsed, text)
    assert found[: len(closed)] == _expected(family, closed)
    assert len(found) <= len(completion.tool_calls)


def _uncut(whole: Completion, cut: Completion) -> Completion:
    """The finished answer that a cut one is the start of; content in front of calls is another channel of gpt-oss."""
    return whole if cut.tool_calls else Completion(whole.reasoning, whole.content, finish=Finish.STOP)


def test_answers_come_back(case: tuple[Loaded, bool]) -> None:
    """1000 answers a family and mode: ids give the text back, and the parser gives reasoning, content and calls.

    Besides, a cut answer is the start of the whole one, and answers that spell markers are flagged.
    """
    family, thinking = case
    random, read = Random(f"{family.name} {thinking}"), _reader(family, thinking)
    markers = [name for name in family.vocab.specials if name.startswith("<") and name.endswith(">")]
    flagged = compared = cuts = 0
    while compared < ANSWERS:
        made = answer(random, markers, thinks=thinking)
        completion = made.cut or made.whole
        parts = family.parts(completion, thinking)
        text, ids = _text(parts), _ids(family, parts)
        assert family.vocab.decode(ids) == text
        if made.cut is not None:
            cuts += 1
            assert _text(family.parts(_uncut(made.whole, made.cut), thinking)).startswith(text)
        texts = (completion.reasoning, completion.content, *(call.arguments for call in completion.tool_calls))
        if any(marker in each for each in texts for marker in markers):
            flagged += 1
            assert any(map(family.leaks, texts))
            continue
        assert not any(map(family.leaks, texts))
        compared += 1
        _same(family, read(ids, made.tools), completion, thinking, text)
    assert flagged > 20
    assert cuts > 300


FRAMES: dict[str, tuple[str, str, str]] = {
    "qwen3": ("\n{}\n", "\n\n{}", "\n"),
    "qwen3-thinking-2507": ("{}\n", "\n\n{}", "\n"),
    "qwen3-instruct-2507": ("{}", "{}", "\n"),
    "qwen3.5": ("{}\n", "\n\n{}", "\n\n"),
    "glm-4.5": ("{}", "\n{}", "\n"),
    "glm-4.6": ("{}", "\n{}", "\n"),
    "deepseek-v4": ("{}", "{}", "\n\n"),
}
"""The newlines around reasoning and content, and behind content before a call, that a server's parser leaves in the texts."""

OPEN_CYCLE = [
    *(("kimi-k2.5", True), ("kimi-k2.6", True), ("kimi-k2-thinking", True), ("kimi-k2", False)),
    *(("qwen3", True), ("qwen3-thinking-2507", True), ("qwen3-instruct-2507", False), ("qwen3.5", True)),
    *(("glm-4.5", True), ("glm-4.6", True), ("glm-5", True), ("deepseek-v4", True), ("deepseek-v4", False)),
]
PAST = [
    *(("kimi-k2.5", False), ("kimi-k2", False), ("deepseek-v3", False), ("deepseek-v3.1", False)),
    *(("deepseek-v3.2", False), ("deepseek-v4", False), ("qwen3-instruct-2507", False)),
    *(("glm-4.5", False), ("glm-4.6", False), ("glm-5", False), ("gpt-oss", True)),
]


def _clean(made: str) -> str:
    """A text as a prompt keeps it: without brackets that Kimi reads as special ids, and composed as Qwen composes it."""
    return unicodedata.normalize("NFC", made.replace("[PAD]", "")).strip() or "ok"


def _dumped(made: ToolCall) -> ToolCall:
    """A call with its arguments as templates dump them."""
    return ToolCall(made.id, made.name, _clean(json.dumps(json.loads(made.arguments), ensure_ascii=False)))


@pytest.mark.parametrize(("name", "thinking"), OPEN_CYCLE)
def test_prompt_and_answer_are_the_start_of_the_next_prompt(
    name: str, thinking: bool, request: pytest.FixtureRequest
) -> None:
    """In an open tool cycle, where templates keep an answer whole, it is rendered to the ids that we give it.

    Not compared: R1, V3, V3.1 and V3.2, whose tool turns are refused; gpt-oss, whose history writes the recipient of a call
    elsewhere.
    """
    family, random = bound(name, request), Random(name)
    frame = FRAMES.get(name, ("{}", "{}", ""))
    for _ in range(100):
        reasoning, content = _clean(text(random, ())) if thinking else "", _clean(text(random, ()))
        calls = tuple(_dumped(call(random, (), index)) for index in range(random.randint(1, 2)))
        sampled = Completion(
            frame[0].format(reasoning), frame[1].format(content) + frame[2], calls, finish=Finish.TOOL_CALLS
        )
        turn: dict[str, Any] = {"role": "assistant", "content": content}
        turn["tool_calls"] = [
            {"id": each.id, "type": "function", "function": {"name": each.name, "arguments": each.arguments}}
            for each in calls
        ]
        turn |= {"reasoning_content": reasoning} if thinking else {}
        result = {"role": "tool", "tool_call_id": calls[0].id, "name": calls[0].name, "content": "4"}
        tools = [tool(each) for each in calls]
        ids = family.prompt_ids([USER], tools, thinking) + _ids(family, family.parts(sampled, thinking))
        after = family.prompt_ids([USER, turn, result], tools, thinking)
        assert family.vocab.decode(after[: len(ids)]) == family.vocab.decode(ids)
        assert after[: len(ids)] == ids


@pytest.mark.parametrize(("name", "thinking"), PAST)
def test_plain_answers_are_rendered_as_sampled_where_templates_keep_them(
    name: str, thinking: bool, request: pytest.FixtureRequest
) -> None:
    """A past answer without reasoning has our ids, but for the stop of gpt-oss, which history writes as `<|end|>`."""
    family, random = bound(name, request), Random(name)
    frame = FRAMES.get(name, ("{}", "{}", ""))
    for _ in range(100):
        content = _clean(text(random, ()))
        sampled = Completion("", frame[1].format(content), finish=Finish.STOP)
        ids = family.prompt_ids([USER], [], thinking) + _ids(family, family.parts(sampled, thinking))
        after = family.prompt_ids([USER, {"role": "assistant", "content": content}, USER], [], thinking)
        if name == "gpt-oss":
            ids.pop()
        assert after[: len(ids)] == ids


NO_TOOLS = ("deepseek-r1", "deepseek-v3", "deepseek-v3.1", "deepseek-v3.2")


def test_prompts_are_encoded_as_one_text(case: tuple[Loaded, bool]) -> None:
    """A server encodes a rendered conversation whole, and so do we: 100 conversations a family and mode, with tools.

    gpt-oss is left out: its own encoder, which servers use, encodes texts one by one and never reads a marker in them.
    """
    family, thinking = case
    if family.name == "gpt-oss":
        pytest.skip("its encoder is the reference")
    random = Random(family.name)
    for _ in range(100):
        messages, tools = conversation(random, tools=family.name not in NO_TOOLS)
        ids = family.prompt_ids(messages, tools, thinking)
        assert family.vocab.encode_special(family.vocab.decode(ids)) == ids
