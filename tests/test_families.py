"""What each family says: how its prompts end, what it samples, what ends an answer, which modes it has."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from eyas.errors import UsageError
from eyas.families import FAMILIES, Channel, Loaded, Shift, by_name, guess
from eyas.families.arguments import Pair, pairs
from eyas.types import Completion, Finish, Message, ToolCall
from tests.vocabularies import SOURCES, bound, folder, modes, vocabulary

USER: Message = {"role": "user", "content": "hi"}
CALL = ToolCall("functions.add:0", "add", '{"a":2,  "b":"x y"}')
CLOSED = "<think>\n\n</think>\n\n"
ASSISTANT = "<\uff5cAssistant\uff5c>"

ENDS = [
    ("kimi-k2", False, "<|im_assistant|>assistant<|im_middle|>"),
    ("kimi-k2-thinking", True, "<|im_assistant|>assistant<|im_middle|>"),
    *((name, True, "<|im_assistant|>assistant<|im_middle|><think>") for name in ("kimi-k2.5", "kimi-k2.6")),
    *((name, False, "<|im_assistant|>assistant<|im_middle|><think></think>") for name in ("kimi-k2.5", "kimi-k2.6")),
    ("deepseek-r1", True, f"hi{ASSISTANT}<think>\n"),
    ("deepseek-v3", False, f"hi{ASSISTANT}"),
    *((name, True, f"hi{ASSISTANT}<think>") for name in ("deepseek-v3.1", "deepseek-v3.2", "deepseek-v4")),
    *((name, False, f"hi{ASSISTANT}</think>") for name in ("deepseek-v3.1", "deepseek-v3.2", "deepseek-v4")),
    ("qwen3", True, "hi<|im_end|>\n<|im_start|>assistant\n"),
    ("qwen3", False, f"hi<|im_end|>\n<|im_start|>assistant\n{CLOSED}"),
    ("qwen3-thinking-2507", True, "<|im_start|>assistant\n<think>\n"),
    ("qwen3-instruct-2507", False, "hi<|im_end|>\n<|im_start|>assistant\n"),
    ("qwen3.5", True, "<|im_start|>assistant\n<think>\n"),
    ("qwen3.5", False, f"<|im_start|>assistant\n{CLOSED}"),
    *((name, True, "<|user|>\nhi<|assistant|>") for name in ("glm-4.5", "glm-4.6")),
    *((name, False, "<|user|>\nhi/nothink<|assistant|>\n<think></think>") for name in ("glm-4.5", "glm-4.6")),
    ("glm-5", True, "<|user|>hi<|assistant|><think>"),
    ("glm-5", False, "<|user|>hi<|assistant|></think>"),
    ("gpt-oss", True, "<|start|>user<|message|>hi<|end|><|start|>assistant"),
]

SAMPLED = {
    "kimi-k2-thinking": "<think>R</think>C<|im_end|>",
    "kimi-k2.5": "R</think>C<|im_end|>",
    "kimi-k2": "C<|im_end|>",
    "deepseek-r1": "R</think>C<\uff5cend\u2581of\u2581sentence\uff5c>",
    "deepseek-v3": "C<\uff5cend\u2581of\u2581sentence\uff5c>",
    "deepseek-v3.1": "R</think>C<\uff5cend\u2581of\u2581sentence\uff5c>",
    "deepseek-v4": "R</think>C<\uff5cend\u2581of\u2581sentence\uff5c>",
    "qwen3": "<think>R</think>C<|im_end|>",
    "qwen3-thinking-2507": "R</think>C<|im_end|>",
    "qwen3-instruct-2507": "C<|im_end|>",
    "qwen3.5": "R</think>C<|im_end|>",
    "glm-4.5": "\n<think>R</think>C<|user|>",
    "glm-4.6": "\n<think>R</think>C<|user|>",
    "glm-5": "R</think>C<|user|>",
    "gpt-oss": "<|channel|>analysis<|message|>R<|end|><|start|>assistant<|channel|>final<|message|>C<|return|>",
}

CALLED = {
    "qwen3": '<tool_call>\n{"name": "add", "arguments": {"a":2,  "b":"x y"}}\n</tool_call><|im_end|>',
    "qwen3.5": "<tool_call>\n<function=add>\n<parameter=a>\n2\n</parameter>\n<parameter=b>\nx y\n</parameter>\n"
    "</function>\n</tool_call><|im_end|>",
    "glm-4.6": "<tool_call>add\n<arg_key>a</arg_key>\n<arg_value>2</arg_value>\n<arg_key>b</arg_key>\n"
    "<arg_value>x y</arg_value>\n</tool_call><|observation|>",
    "glm-5": "<tool_call>add<arg_key>a</arg_key><arg_value>2</arg_value><arg_key>b</arg_key>"
    "<arg_value>x y</arg_value></tool_call><|observation|>",
    "gpt-oss": '<|channel|>commentary to=functions.add <|constrain|>json<|message|>{"a":2,  "b":"x y"}<|call|>',
}


@pytest.fixture
def load(request: pytest.FixtureRequest) -> Any:
    """Load a family by its name."""
    return lambda name: bound(name, request)


def _text(family: Loaded, completion: Completion, *, thinking: bool) -> str:
    return "".join(part.text for part in family.parts(completion, thinking))


@pytest.mark.parametrize(("name", "thinking", "end"), ENDS)
def test_prompts_end_where_the_model_begins(load: Any, name: str, thinking: bool, end: str) -> None:
    """The prompt's end by mode; its markers are special ids."""
    family: Loaded = load(name)
    ids = family.prompt_ids([USER], [], thinking)
    assert family.vocab.decode(ids).endswith(end)
    assert family.vocab.encode_special(family.vocab.decode(ids)) == ids
    assert family.count_prompt([USER], [], thinking) == len(ids)


def test_every_mode_of_every_family_is_told_how_it_ends() -> None:
    """The table above leaves none out."""
    told = {(name, thinking) for name, thinking, _ in ENDS}
    assert told == {(name, mode) for name, family in FAMILIES.items() for mode in modes(family)}


@pytest.mark.parametrize(("name", "text"), SAMPLED.items())
def test_what_is_sampled(load: Any, name: str, text: str) -> None:
    """A finished answer with reasoning and content; the stop is the family's."""
    family: Loaded = load(name)
    completion = Completion("R", "C", finish=Finish.STOP)
    parts = family.parts(completion, thinking=True in modes(FAMILIES[name]))
    assert "".join(part.text for part in parts) == text
    assert parts[-1].token == family.stop == family.vocab.specials[parts[-1].text]


@pytest.mark.parametrize(("name", "text"), CALLED.items())
def test_how_tools_are_called(load: Any, name: str, text: str) -> None:
    """A call by its syntax, the arguments' text as it came; GLM and gpt-oss have another stop behind it."""
    assert _text(load(name), Completion("R", "", (CALL,), finish=Finish.TOOL_CALLS), thinking=True).endswith(text)


def test_content_beside_a_call_of_gpt_oss_is_commentary(load: Any) -> None:
    """Each message of an answer is closed before the next one begins."""
    start = "<|end|><|start|>assistant<|channel|>commentary"
    said = f"<|channel|>analysis<|message|>R{start}<|message|>C{start} to=functions.f <|constrain|>json<|message|>{{}}<|call|>"
    called = Completion("R", "C", (ToolCall("", "f", "{}"),), finish=Finish.TOOL_CALLS)
    assert _text(load("gpt-oss"), called, thinking=True) == said


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_neighbouring_texts_are_one_text(load: Any, name: str) -> None:
    """No two parts of text follow each other inside tool calls, since a token may span both."""
    calls = (CALL, ToolCall("functions.f:1", "f", "{}"), CALL)
    parts = load(name).parts(Completion("R", "", calls, finish=Finish.TOOL_CALLS), thinking=True)
    assert not [(a, b) for a, b in pairwise(parts) if a.token is None and b.token is None]
    assert all((part.channel is None) == (part.token is not None) for part in parts)


def test_form_is_what_no_api_delivers(load: Any) -> None:
    """GLM's newline and gpt-oss's channel names are form; arguments are not, whatever stands around them."""
    answer = Completion("R", "C", finish=Finish.STOP)
    assert load("glm-4.6").parts(answer, thinking=True)[0].channel is Channel.FORM
    names = [part.text for part in load("gpt-oss").parts(answer, thinking=True) if part.channel is Channel.FORM]
    assert names == ["analysis", "assistant", "final"]
    called = load("qwen3").parts(Completion("", "", (CALL,), finish=Finish.TOOL_CALLS), thinking=True)
    assert [part.text for part in called if part.channel is Channel.ARGUMENTS] == [
        '\n{"name": "add", "arguments": {"a":2,  "b":"x y"}}\n'
    ]


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_a_mode_that_does_not_exist_is_refused(load: Any, name: str) -> None:
    """Presets, request body and prompt say so; a family with both modes has both."""
    family = by_name(name)
    for thinking in (True, False):
        if thinking in modes(family):
            assert family.sampling(thinking)["temperature"] > 0
            continue
        assert load(name).shifts(thinking) == ()
        for asked in (family.sampling, family.body, lambda mode: load(name).prompt_ids([USER], [], mode)):
            with pytest.raises(UsageError, match=f"{name} has no (thinking|instant) mode"):
                asked(thinking)


def test_request_bodies() -> None:
    """Models of one mode that never think are asked nothing; gpt-oss is asked for an effort."""
    assert by_name("qwen3").body(thinking=False) == {"reasoning": {"enabled": False}}
    assert by_name("deepseek-v3").body(thinking=False) == {}
    assert by_name("gpt-oss").body(thinking=True) == {"reasoning": {"effort": "medium"}}


def test_shifts_begin_with_the_plainest(load: Any) -> None:
    """Known ways of counting otherwise: `<think>` on the other side, a start that is left out."""
    assert load("kimi-k2.5").shifts(thinking=True) == (Shift("<think> counted in the completion", -1, 1),)
    assert load("deepseek-r1").shifts(thinking=True)[0] == Shift("<think> counted in the completion", -2, 2)
    assert load("deepseek-v3").shifts(thinking=False) == (Shift("BOS not counted", -1, 0),)
    assert load("glm-4.6").shifts(thinking=True) == (Shift("[gMASK]<sop> not counted", -2, 0),)
    assert load("qwen3").shifts(thinking=True) == ()


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("moonshotai/Kimi-K2-0905", "kimi-k2"),
        ("moonshotai/kimi-k2-thinking", "kimi-k2-thinking"),
        ("moonshotai/kimi-k2.6:free", "kimi-k2.6"),
        ("deepseek/deepseek-r1-0528:free", "deepseek-r1"),
        ("deepseek/deepseek-r1-distill-llama-70b", None),
        ("deepseek/deepseek-chat-v3-0324", "deepseek-v3"),
        ("deepseek/deepseek-chat-v3.1", "deepseek-v3.1"),
        ("deepseek/deepseek-v3.2-exp", "deepseek-v3.1"),
        ("deepseek/deepseek-v3.2", "deepseek-v3.2"),
        ("deepseek-ai/DeepSeek-V4-Flash-0731", "deepseek-v4"),
        ("qwen/qwen3-32b", "qwen3"),
        ("qwen/qwen3-235b-a22b-2507", "qwen3-instruct-2507"),
        ("qwen/qwen3-235b-a22b-thinking-2507", "qwen3-thinking-2507"),
        ("Qwen/Qwen3-Next-80B-A3B-Thinking", "qwen3-thinking-2507"),
        ("qwen/qwen3-coder", None),
        ("qwen/qwen3-vl-8b-instruct", None),
        ("qwen/qwen3.5-397b-a17b", "qwen3.5"),
        ("z-ai/glm-4.6:exacto", "glm-4.6"),
        ("z-ai/glm-4.5v", None),
        ("z-ai/glm-5-turbo", "glm-5"),
        ("z-ai/glm-5.1", None),
        ("openai/gpt-oss-120b", "gpt-oss"),
        ("openai/gpt-4o", None),
    ],
)
def test_guesses(model: str, family: str | None) -> None:
    """A model id leads to its family; models with another template or tokenizer lead to none."""
    assert guess(model) == family


@pytest.mark.parametrize("name", ["deepseek-r1", "deepseek-v3", "deepseek-v3.1", "deepseek-v3.2"])
def test_templates_without_a_form_for_tools_refuse_them(load: Any, name: str) -> None:
    """Tools in a prompt end in an error, never in a prompt that leaves them out."""
    thinking = modes(FAMILIES[name])[0]
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    turns = [USER, {"role": "assistant", "content": "", "tool_calls": [{}]}, {"role": "tool", "content": "4"}]
    for messages, tools in (([USER], [tool]), (turns, [])):
        with pytest.raises(UsageError, match="no known form for tools"):
            load(name).prompt_ids(messages, tools, thinking)


def test_history(load: Any) -> None:
    """What templates keep of past answers, where the library is helped or replaced."""
    past = [USER, {"role": "assistant", "content": "A", "reasoning_content": "R"}, USER]
    plain = [USER, {"role": "assistant", "content": "A"}, USER]
    said = {
        name: load(name).vocab.decode(load(name).prompt_ids(past, [], mode))
        for name, mode in (("kimi-k2-thinking", True), ("deepseek-v3.1", True), ("qwen3", True), ("gpt-oss", True))
    }
    assert "<|im_middle|><think></think>A<|im_end|>" in said["kimi-k2-thinking"]
    assert "Moonshot AI.<|im_end|><|im_user|>" in said["kimi-k2-thinking"]
    assert f"hi{ASSISTANT}</think>A<" in said["deepseek-v3.1"]
    assert "assistant\nA<|im_end|>" in said["qwen3"]
    assert "<|channel|>final<|message|>A<|end|>" in said["gpt-oss"]
    for name in ("qwen3", "qwen3.5"):
        instant = load(name)
        assert "assistant\nA<|im_end|>" in instant.vocab.decode(instant.prompt_ids(plain, [], thinking=False))
    called = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}
    glm = load("glm-4.6")
    turns = [USER, called, {"role": "tool", "content": "4"}]
    assert "None" not in glm.vocab.decode(glm.prompt_ids(turns, [], thinking=True))


def test_a_date_of_its_own_makes_a_prompt_of_gpt_oss_the_same_every_day(load: Any) -> None:
    """The system turn names a fixed day and the effort."""
    text = load("gpt-oss").vocab.decode(load("gpt-oss").prompt_ids([USER], [], thinking=True))
    assert "Current date: 2025-06-28" in text
    assert "Reasoning: medium" in text


def test_another_tokenizer_is_refused(request: pytest.FixtureRequest) -> None:
    """A folder with other special tokens is refused, with the names of those that do not fit."""
    place: Path = folder("qwen3", request)
    with pytest.raises(UsageError, match=r"does not fit family deepseek-v4: it has no <.*Use the one of deepseek-ai"):
        by_name("deepseek-v4").load(place)
    with pytest.raises(UsageError, match=r"<\|endoftext\|> is not 151643"):
        by_name("qwen3").load(folder("glm4", request))


@pytest.mark.parametrize("source", [name for name in SOURCES if name != "deepseek_v4"])
def test_the_vocabularies_of_the_tests_encode_as_splintr_does(source: str, request: pytest.FixtureRequest) -> None:
    """Entries, merges and split patterns make the ids that an independent tokenizer gives."""
    splintr = pytest.importorskip("splintr")
    theirs = splintr.Tokenizer.from_pretrained(source)
    vocab = vocabulary({"deepseek_v3": "deepseek-v3", "glm4": "glm-4.5"}.get(source, source), request)
    for text in (
        "Hello world, it's 12345 tests!\n\n  日本語テスト 中文字符 naïve 👩‍👩‍👧 ไทย ελληνικά",
        "def f(x):\n    return x**2  # ok\n\t\t\r\n\r\nIT'S we'Ll /path//x ===> {\"a\": [1, 2]}",
    ):
        assert vocab.encode(text) == list(theirs.encode_ordinary(text))


@pytest.mark.parametrize(
    ("text", "whole", "found"),
    [
        ("", True, ()),
        ("{}", True, ()),
        (
            '{"a": "x\\n\\u00e9", "b": [1,2], "c": -1.5e3}',
            True,
            (Pair("a", "x\né", string=True), Pair("b", "[1,2]"), Pair("c", "-1.5e3")),
        ),
        ('{"a": 1', True, None),
        ("[1]", True, None),
        ('"x"', False, None),
        ('{"a": "x\\', False, (Pair("a", "x", string=True),)),
        ('{"a": "x\\u00', False, (Pair("a", "x", string=True),)),
        ('{"a": "x\\ud83d', False, (Pair("a", "x", string=True),)),
        ('{"a": 1.', False, (Pair("a", "1."),)),
        ('{"a": {"b": 1', False, (Pair("a", '{"b": 1'),)),
        ('{"a": 1, "b', False, (Pair("a", "1"), Pair("b"))),
        ("{", False, ()),
    ],
)
def test_arguments_in_pieces(text: str, whole: bool, found: tuple[Pair, ...] | None) -> None:
    """Strings are read, other values stay as they came, and a cut leaves what is known."""
    assert pairs(text, whole=whole) == found
