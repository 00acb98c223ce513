"""The way back from sampled ids to texts, for every family and mode, held against the way there."""

from __future__ import annotations

import json
from itertools import chain
from random import Random

import pytest

from eyas.families import FAMILIES, Loaded
from eyas.families.said import read_calls
from eyas.tokens.engine import CALLS_UNREAD, ENGINE_TEXT, read_ids
from eyas.types import Completion, Finish, ToolCall, Usage
from tests.generated import answer
from tests.vocabularies import bound, modes

MODES = [(name, mode) for name, family in FAMILIES.items() for mode in modes(family)]
ANSWERS = 200
TAGGED = ("qwen3.5", "glm-4.5", "glm-4.6", "glm-5", "deepseek-v3.2", "deepseek-v4")
"""Families that write the values of a call in tags, with or without their types."""


@pytest.fixture(params=MODES, ids=lambda each: f"{each[0]}-{'thinking' if each[1] else 'instant'}")
def case(request: pytest.FixtureRequest) -> tuple[Loaded, bool]:
    """A family with its vocabulary, and a mode."""
    name, thinking = request.param
    return bound(name, request), thinking


def sampled(completion: Completion, family: Loaded, thinking: bool) -> tuple[int, ...]:
    """The ids of an answer's parts."""
    parts = family.parts(completion, thinking)
    return tuple(chain.from_iterable([p.token] if p.token is not None else family.vocab.encode(p.text) for p in parts))


def test_every_family_reads_back_what_it_says(case: tuple[Loaded, bool]) -> None:
    """Reasoning, content and the calls of whole answers come back out of their ids, texts byte for byte."""
    family, thinking = case
    random = Random(7)
    for _ in range(ANSWERS):
        made = answer(random, (), thinks=thinking).whole
        if family.name == "gpt-oss" and made.tool_calls and made.content:
            continue  # its content beside a call is commentary, which reads as content too
        said = family.said(sampled(made, family, thinking), thinking)
        assert (said.reasoning, said.content) == (made.reasoning, made.content)
        assert said.calls_read
        assert [call.name for call in said.tool_calls] == [call.name for call in made.tool_calls]
        if family.name not in TAGGED:
            assert [c.arguments.strip() for c in said.tool_calls] == [c.arguments.strip() for c in made.tool_calls]
        else:
            keys = [list(json.loads(call.arguments)) for call in made.tool_calls]
            assert [list(json.loads(call.arguments)) for call in said.tool_calls] == keys


def test_a_call_section_that_is_no_familys_reads_as_no_call() -> None:
    """Nothing is guessed of calls that are broken off or written in another way."""
    assert read_calls("<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{") == ()
    assert read_calls("<tool_call>") == ()
    call = read_calls('<tool_call>\n{"name": "f", "arguments": {"a": "}"}}\n</tool_call>')
    assert call == (ToolCall("call_0", "f", '{"a": "}"}'),)


def of(kimi: Loaded, text: str, **more: object) -> Completion:
    """An answer as an engine gives it: R, C and the stop token of Kimi K2.5, and its text in one piece."""
    ids = sampled(Completion("I see.", "Yes.", finish=Finish.STOP), kimi, thinking=True)
    fields = {"finish": Finish.STOP, "usage": Usage(9, len(ids)), "token_ids": ids, **more}
    return Completion(content=text, **fields)  # type: ignore[arg-type]  # a test's shorthand


@pytest.mark.parametrize("text", ["I see.</think>Yes.", "I see.Yes.", "I see.</think>Yes.<|im_end|>"])
def test_an_engines_text_may_show_or_hide_specials(kimi: Loaded, text: str) -> None:
    """VLLM and SGLang show `</think>`, llama.cpp hides what is a control token; all of them agree with the ids."""
    read = read_ids(of(kimi, text), kimi, thinking=True)
    assert (read.reasoning, read.content, read.extra) == ("I see.", "Yes.", {})


def test_an_engine_whose_text_is_another_says_so(kimi: Loaded) -> None:
    """A server with another tokenizer gives ids that decode to something else: its text is kept beside them."""
    read = read_ids(of(kimi, "I see.</think>No."), kimi, thinking=True)
    assert read.extra == {ENGINE_TEXT: "I see.</think>No."}
    assert read.content == "Yes."


def test_a_stop_token_that_was_counted_and_not_listed_is_put_back(kimi: Loaded) -> None:
    """Older engines leave it out of the ids; the count says that it was sampled. Without that count nothing is added."""
    ids = of(kimi, "").token_ids or ()
    bare = of(kimi, "I see.</think>Yes.", token_ids=ids[:-1])
    assert read_ids(bare, kimi, thinking=True).token_ids == ids
    other = of(kimi, "I see.</think>Yes.", token_ids=ids[:-1], usage=Usage(9, len(ids) - 1))
    assert read_ids(other, kimi, thinking=True).token_ids == ids[:-1]


def test_calls_that_are_broken_off_stay_text(kimi: Loaded) -> None:
    """An answer cut within its calls has no call, and its content holds all of it."""
    vocab = kimi.vocab
    begun = (vocab.specials["</think>"], *vocab.encode("Hm."), vocab.specials["<|tool_calls_section_begin|>"])
    cut = Completion(content="", finish=Finish.LENGTH, usage=Usage(9, len(begun)), token_ids=begun)
    read = read_ids(cut, kimi, thinking=True)
    assert read.tool_calls == ()
    assert read.content == "Hm.<|tool_calls_section_begin|>"
    assert read.extra[CALLS_UNREAD] is True


def test_ids_that_the_vocabulary_lacks_are_left_as_they_came(kimi: Loaded) -> None:
    """They are no error here, and no text agrees with them: the label, and the trial before a run, say what they are worth."""
    odd = of(kimi, "x", token_ids=(10_000_000,), usage=Usage(9, 1), finish=Finish.LENGTH)
    read = read_ids(odd, kimi, thinking=True)
    assert (read.token_ids, read.extra) == ((10_000_000,), {ENGINE_TEXT: "x"})
