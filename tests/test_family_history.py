"""Answers of the past: which reasoning is sent back, and which histories are refused before they cost."""

from __future__ import annotations

from typing import Any

import pytest

from eyas.errors import UsageError
from eyas.families import FAMILIES, Loaded
from eyas.types import Completion, ToolCall
from tests.vocabularies import bound, modes

USER = {"role": "user", "content": "hi"}
MODES = [(name, mode) for name, family in FAMILIES.items() for mode in modes(family)]
NO_TOOLS = ("deepseek-r1", "deepseek-v3", "deepseek-v3.1", "deepseek-v3.2")
CALL = ToolCall("functions.add:0", "add", '{"a": 2}')
TOOL = {"type": "function", "function": {"name": "add", "description": "d", "parameters": {"type": "object"}}}
PLAIN = Completion(" R", " C \n")
CALLING = Completion(" R", "C", (CALL,))


def sent(completion: Completion, **more: Any) -> dict[str, Any]:
    """The turn of an answer as a history has it."""
    return {"role": "assistant", "content": completion.content, **more}


@pytest.mark.parametrize(("name", "thinking"), MODES)
def test_the_reasoning_that_a_template_keeps_is_sent_and_no_other(
    name: str, thinking: bool, request: pytest.FixtureRequest
) -> None:
    """Rendered with and without it: where the user spoke again, only tool calls of some families keep theirs."""
    family = bound(name, request)
    turn = family.history(PLAIN)
    assert turn == sent(PLAIN)
    bare = family.prompt_ids([USER, turn, USER], [], thinking)
    assert bare == family.prompt_ids([USER, {**turn, "reasoning_content": " R"}, USER], [], thinking)
    if name in NO_TOOLS:
        return
    turn = family.history(CALLING)
    reasoned = {**turn, "reasoning_content": " R"}
    assert family.prompt_ids([USER, turn, USER], [TOOL], thinking) == family.prompt_ids(
        [USER, reasoned, USER], [TOOL], thinking
    )


def test_calls_of_the_past_are_sent_as_they_came(kimi: Loaded) -> None:
    """Ids, names and arguments verbatim; reasoning beside them, also where it is empty: a missing one is refused."""
    call = {"id": CALL.id, "type": "function", "function": {"name": "add", "arguments": CALL.arguments}}
    assert kimi.history(CALLING) == sent(CALLING, reasoning_content=" R", tool_calls=[call])
    silent = kimi.history(Completion("", "", (CALL,)))
    assert silent["reasoning_content"] == ""
    assert kimi.refuses([USER, silent, USER], thinking=True) == ""


@pytest.mark.parametrize("name", ["kimi-k2.5", "kimi-k2.6", "kimi-k2-thinking"])
def test_a_call_without_its_reasoning_is_set_aside(name: str, request: pytest.FixtureRequest) -> None:
    """Kimi's API answers 400 to it while thinking is on: counting says so, rendering still does what it did."""
    family, call = bound(name, request), {"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]}
    call["tool_calls"] = family.history(CALLING)["tool_calls"]
    messages = [USER, call, {"role": "tool", "tool_call_id": CALL.id, "content": "4"}]
    with pytest.raises(
        UsageError, match=r"message 1 of its history calls tools and has no reasoning_content.*thinking ="
    ):
        family.count_prompt(messages, [TOOL], thinking=True)
    assert family.prompt_ids(messages, [TOOL], thinking=True)
    for field in ("reasoning_content", "reasoning", "reasoning_details"):
        assert family.count_prompt(
            [USER, {**call, field: "" if field != "reasoning_details" else []}], [TOOL], thinking=True
        )
    assert family.refuses(messages, thinking=False) == ""


@pytest.mark.parametrize("name", ["kimi-k2", "qwen3", "glm-4.5"])
def test_other_families_take_it(name: str, request: pytest.FixtureRequest) -> None:
    """Only of Kimi's thinking models such a refusal is known."""
    family = bound(name, request)
    assert family.refuses([USER, {"role": "assistant", "tool_calls": [{}]}], thinking=True) == ""
