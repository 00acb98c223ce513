"""Traces: past answers, tool calls and results as data sets write them become the history that the API takes."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyas.families.history import reasoned
from eyas.prompts.columns import Reading
from eyas.prompts.history import without_thoughts
from eyas.prompts.shape import DEFAULT, prompt_id
from tests.shapekit import ANSWER, SYSTEM, TEXTS, TOOL, USER, found, make, refusal

LAST = Reading(DEFAULT.columns, "last")
AUTO = Reading(DEFAULT.columns)
NAMES = st.from_regex("[a-z_]{1,8}", fullmatch=True)


def called(name: str, arguments: str, number: str, content: str = "") -> dict:
    """An answer that calls a function, as the API takes it."""
    function = {"name": name, "arguments": arguments}
    return {
        "role": "assistant",
        "content": content,
        "tool_calls": [{"id": number, "type": "function", "function": function}],
    }


def result(number: str, content: str) -> dict:
    """What a tool gave, as the API takes it."""
    return {"role": "tool", "tool_call_id": number, "content": content}


def human(turns: list[tuple[str, str]]) -> dict:
    """A row in ShareGPT's form."""
    return {"conversations": [{"from": name, "value": value} for name, value in turns]}


@given(asked=TEXTS, name=NAMES, arguments=st.dictionaries(NAMES, TEXTS, max_size=1), gave=TEXTS)
@settings(deadline=None)
def test_a_trace_is_one_prompt_in_every_shape(asked, name, arguments, gave):
    """OpenAI's calls, its older form, ShareGPT's, Hermes' and glaive's give the same messages and the same id."""
    call = {"name": name, "arguments": arguments}
    expected = (
        {"role": "user", "content": asked},
        called(name, json.dumps(arguments, ensure_ascii=False), f"functions.{name}:0"),
        result(f"functions.{name}:0", gave),
    )
    user, tool = {"role": "user", "content": asked}, {"role": "tool", "content": gave}
    old = {"role": "function", "name": name, "content": gave}
    text = json.dumps(call, ensure_ascii=False)
    glaive = f'{{"name": "{name}", "arguments": \'{json.dumps(arguments, ensure_ascii=False)}\'}}'
    rows = [
        {"messages": [user, {"role": "assistant", "content": None, "tool_calls": [{"function": call}]}, tool]},
        {"messages": [user, {"role": "assistant", "tool_calls": json.dumps([call])}, tool, ANSWER]},
        {"messages": [user, {"role": "assistant", "function_call": call}, old]},
        human([("human", asked), ("function_call", text), ("observation", gave), ("gpt", "So.")]),
        human([("human", asked), ("gpt", f"<tool_call>\n{text}\n</tool_call>"), ("tool", gave)]),
        human(
            [
                ("human", asked),
                ("gpt", f"<tool_call>{call}</tool_call>"),
                ("tool", f"<tool_response>\n{gave}\n</tool_response>"),
            ]
        ),
        {"chat": f"USER: {asked}\n\nASSISTANT: <functioncall> {text} <|endoftext|>\n\nFUNCTION RESPONSE: {gave}"},
        {"chat": f"USER: {asked}\n\nASSISTANT: <functioncall> {glaive} <|endoftext|>\n\nFUNCTION RESPONSE: {gave}"},
    ]
    for row in rows:
        made = found(row, None)
        assert made.messages == expected
        assert made.id == prompt_id(expected, [])
        assert made.turns == ()


def test_text_beside_calls_and_reasoning_stay():
    """What the answer says beside its calls stays, reasoning in a field of its own too; an empty one is none."""
    answer = {
        "role": "assistant",
        "content": "I look.",
        "reasoning_content": "Hm.",
        "tool_calls": [{"id": "c", "function": {"name": "f"}}],
    }
    made = make({"messages": [USER, answer, result("c", "1"), {**ANSWER, "reasoning": ""}, USER]}, reading=LAST)
    assert made.messages == (
        USER,
        {**called("f", "{}", "c", "I look."), "reasoning_content": "Hm."},
        result("c", "1"),
        ANSWER,
        USER,
    )


def test_empty_reasoning_beside_calls_is_no_missing_one():
    """A field that the source gives empty stays beside calls, where an API refuses a missing one; text goes before it."""
    answer = {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f"}}]}
    for given_, kept in (
        ({}, {}),
        ({"reasoning_content": None}, {}),
        ({"reasoning_content": ""}, {"reasoning_content": ""}),
        ({"reasoning_content": "", "reasoning": "Hm."}, {"reasoning_content": "Hm."}),
    ):
        made = make({"messages": [USER, {**answer, **given_}, result("c", "1")]}, reading=LAST)
        assert made.messages == (USER, {**called("f", "{}", "c"), **kept}, result("c", "1"))
        assert bool(reasoned(made.messages, True)) is not bool(kept)


def test_results_find_their_calls():
    """A result goes by its id, else by its name, else by its place; what it holds besides text becomes JSON."""
    calls = [{"function": {"name": name, "arguments": {"b": 1, "a": None}}} for name in ("f", "g", "f")]
    told = [
        {"role": "tool", "name": "g", "content": {"b": [1], "a": "é", "c": None}},
        {"role": "tool", "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]},
        {"role": "tool", "tool_call_id": "unknown", "content": None},
    ]
    made = make({"messages": [USER, {"role": "assistant", "content": "", "tool_calls": calls}, *told]}, reading=AUTO)
    assert [call["function"]["arguments"] for call in made.messages[1]["tool_calls"]] == ['{"b": 1}'] * 3
    assert made.messages[2:] == (
        result("functions.g:1", '{"a": "é", "b": [1]}'),
        result("functions.f:0", "x\ny"),
        result("functions.f:2", ""),
    )


def test_hermes_results_in_one_turn_are_several():
    """Hermes writes the results of parallel calls into one turn."""
    calls = "".join(f"<tool_call>{json.dumps({'name': 'f', 'arguments': {'a': at}})}</tool_call>\n" for at in (1, 2))
    gave = "<tool_response>\none\n</tool_response>\n<tool_response>\ntwo\n</tool_response>"
    made = make(human([("human", "Why?"), ("gpt", f"Sure. {calls}"), ("tool", gave), ("gpt", "So.")]), reading=AUTO)
    assert made.messages[1]["content"] == "Sure."
    assert [call["id"] for call in made.messages[1]["tool_calls"]] == ["functions.f:0", "functions.f:1"]
    assert made.messages[2:] == (result("functions.f:0", "one"), result("functions.f:1", "two"))


def test_calls_of_a_whole_conversation_are_counted_on():
    """Numbers go on over the turns, as Kimi counts them."""
    turn = [{"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}, {"role": "tool", "content": "x"}]
    made = make({"messages": [USER, *turn, *turn]}, reading=AUTO)
    assert [m["tool_call_id"] for m in made.messages if m["role"] == "tool"] == ["functions.f:0", "functions.f:1"]


def test_unless_told_traces_ask_the_last_turn_and_talks_all():
    """With no mode a row with tools or tool turns is a trace; any other is asked turn by turn."""
    talk = [SYSTEM, USER, ANSWER, {"role": "user", "content": "And?"}, ANSWER]
    assert make({"messages": talk}, reading=AUTO).turns == ("And?",)
    trace = make({"messages": talk, "tools": [TOOL]}, reading=AUTO)
    assert (trace.messages, trace.turns) == (tuple(talk[:4]), ())
    replayed = make({"messages": talk, "tools": [TOOL]}, reading=Reading(DEFAULT.columns, "replay"))
    assert (replayed.messages, replayed.turns) == ((SYSTEM, USER), ("And?",))


THOUGHTS = {
    "<think>Hm.</think>\n\nSo.": "So.",
    "<think>Hm.</think>So. <think>Again.</think>\nYes.": "So. Yes.",
    "Hm.\n</think>\n\nSo.": "So.",
    "<|begin_of_thought|>Hm.<|end_of_thought|>\n\n<|begin_of_solution|>\nSo.\n<|end_of_solution|>": "So.",
    " It ends with `</think>` always. ": " It ends with `</think>` always. ",
    " I think. ": " I think. ",
}


@pytest.mark.parametrize(("said", "left"), THOUGHTS.items())
def test_thoughts_in_past_answers_are_dropped(said, left):
    """Chat templates drop them too; text that only names the marks stays as it is."""
    assert without_thoughts(said) == left
    made = make({"messages": [USER, {**ANSWER, "content": said}, USER]}, reading=LAST)
    assert made.messages[1]["content"] == left


REFUSED = {
    "no call before": ([{"role": "tool", "content": "x"}], "answers no call"),
    "one result too many": ([called("f", "{}", "a"), result("a", "1"), result("a", "2")], "answers no call"),
    "another id": ([called("f", "{}", "a"), result("b", "1")], "answers no call"),
    "call without name": ([{"role": "assistant", "tool_calls": [{"id": "a"}]}], "names no function"),
    "call of a number": ([{"role": "assistant", "tool_calls": [5]}], "names no function"),
    "arguments of a list": ([{"role": "assistant", "tool_calls": [{"name": "f", "arguments": [1]}]}], "are no object"),
    "call turn of prose": ([{"role": "function_call", "content": "f(x)"}], "no call in JSON"),
    "empty answer": ([{"role": "assistant", "content": " "}], "is empty"),
    "thoughts only": ([{"role": "assistant", "content": "<think>Hm."}], "thoughts only"),
}


@pytest.mark.parametrize(("turns", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_history_that_is_unclear_is_refused(turns, reason):
    """A broken history is not asked; with `first` the same rows are prompts."""
    row = {"messages": [USER, *turns, USER]}
    assert reason in refusal(row, LAST)
    assert make(row, reading=Reading(DEFAULT.columns, "first")).messages == (USER,)


GLAIVE = """SYSTEM: You are a helpful assistant with access to the following functions. Use them if required -
{
    "name": "get_time",
    "description": "The time",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}
}
{"name": "stop", "description": "Stops"}
"""
CHAT = "USER: What time is it? \n\n\nASSISTANT: Where?\n <|endoftext|>\n\n\nUSER: Oslo.\n\n\nASSISTANT: Noon. <|endoftext|>"


@pytest.mark.parametrize("row", [{"sample": GLAIVE + CHAT}, {"system": GLAIVE, "chat": CHAT}], ids=["v1", "v2"])
def test_glaives_functions_become_tools(row):
    """The functions in the system text are declared as tools, and the sentence before them stays."""
    made = found(row, None)
    assert [tool["function"]["name"] for tool in made.tools] == ["get_time", "stop"]
    assert made.system == "You are a helpful assistant with access to the following functions. Use them if required"
    assert [each["content"] for each in made.messages[1:]] == ["What time is it?", "Where?", "Oslo."]
    assert found({**row, "chat": CHAT, "system": "SYSTEM: Be {brief}."}).system in ("Be {brief}.", made.system)


def test_a_trace_renders_in_kimis_template(kimi):
    """What is read from a row without ids is what Kimi's template writes: its own form of ids, and each result below one."""
    call = json.dumps({"name": "f", "arguments": {"a": 1}})
    made = make(human([("human", "Why?"), ("function_call", call), ("observation", "42")]), reading=AUTO)
    text = kimi.vocab.decode(kimi.prompt_ids(made.messages, made.tools, thinking=True))
    assert '<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a": 1}<|tool_call_end|>' in text
    assert "## Return of functions.f:0\n42" in text
