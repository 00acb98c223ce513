"""Shapes: rows as data sets write them become prompts, or say why not."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyas.prompts import BadShape, Row, prompt_id, to_prompt
from eyas.prompts.shape import _SHAPES
from eyas.types import Prompt, Source

USER = {"role": "user", "content": "Why?"}
SYSTEM = {"role": "system", "content": "Be brief."}
ANSWER = {"role": "assistant", "content": "Because."}
WORDS = st.text(min_size=1).filter(str.strip)
COLUMNS = st.sampled_from([*_SHAPES, "input", "tools", "system"])
KEYS = st.sampled_from(["role", "content", "from", "value", "type", "text", "function", "name", "parameters"])
VALUES = st.recursive(
    st.none() | st.text(max_size=5) | st.integers() | st.sampled_from(["user", "assistant", "text"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner),
    max_leaves=12,
)


def make(data: dict[str, Any], system: str | None = None) -> Prompt:
    """Makes the prompt of a row of these columns."""
    return to_prompt(Row(data, "f", 3), "B3", system)


def refusal(data: dict[str, Any]) -> str:
    """The reason why these columns are no prompt."""
    with pytest.raises(BadShape) as caught:
        make(data)
    return str(caught.value)


SAME = {
    "messages": {"messages": [USER]},
    "messages answered": {"messages": [USER, ANSWER, ANSWER]},
    "conversations role": {"conversations": [USER, ANSWER]},
    "conversations from": {"conversations": [{"from": "human", "value": "Why?"}, {"from": "gpt", "value": "So."}]},
    "turns": {"turns": ["Why?"]},
    "turns of messages": {"turns": [USER, ANSWER]},
    "prompt": {"prompt": "Why?"},
    "prompt of messages": {"prompt": [USER]},
    "question": {"question": "Why?"},
    "question nested": {"question": [[USER]]},
    "question of messages": {"question": [USER]},
    "instruction": {"instruction": "Why?"},
    "instruction, no input": {"instruction": "Why?", "input": ""},
    "instruction, null input": {"instruction": "Why?", "input": None},
    "other columns": {"prompt": "Why?", "answer": "So.", "id": 7, "reference": ["x"]},
    "null columns": {"messages": None, "conversations": [], "turns": None, "prompt": "", "question": "Why?"},
    "no tools": {"prompt": "Why?", "tools": None, "functions": [], "function": ""},
    "no tools as text": {"prompt": "Why?", "tools": "[]"},
    "parts": {"messages": [{"role": "user", "content": [{"type": "text", "text": "Why?"}]}]},
    "extra keys": {"messages": [{**USER, "weight": 1, "name": "Ann"}]},
    "empty system": {"messages": [{"role": "system", "content": ""}, USER], "system": " "},
}


@pytest.mark.parametrize("data", SAME.values(), ids=SAME)
def test_shapes_of_one_question_are_one_prompt(data):
    """The same question in any shape has the same messages and the same id."""
    assert make(data) == Prompt(prompt_id([USER], []), "B3", (USER,), source=Source("f", 3))


NOT_ASKED = ["gpt", "assistant", "chatgpt", "bing", "bard", "model", "function_call", "tool", "function"]


@pytest.mark.parametrize("role", NOT_ASKED)
def test_what_was_answered_is_not_asked(role):
    """Every name of the assistant and of a tool is left out, and the user's later turns follow."""
    talk = [("system", "Be brief."), ("human", "Why?"), (role, None), ("user", "And then?"), (role, "x")]
    made = make({"conversations": [{"from": name, "value": value} for name, value in talk]})
    assert made.messages == (SYSTEM, USER)
    assert made.turns == ("And then?",)
    assert made.system == "Be brief."


def test_history_may_hold_tool_calls():
    """Answers with tool calls and without text, tool results and reasoning are dropped from the history."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    called = {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "c", "content": [{"type": "image_url"}]}
    made = make({"messages": [USER, called, result, ANSWER, {"role": "user", "content": "Go on."}]})
    assert made.messages == (USER,)
    assert made.turns == ("Go on.",)


def test_nested_question_asks_one_list_a_turn():
    """BFCL's lists: the first is asked now with its system turn, the users' texts of the others follow."""
    later = [[{"role": "user", "content": "Two"}], [], [{"role": "user", "content": "Three"}]]
    made = make({"question": [[SYSTEM, USER], *later]})
    assert made.messages == (SYSTEM, USER)
    assert made.turns == ("Two", "Three")


def test_turns_of_text():
    """MT-Bench's list: the first string is asked now, the others follow."""
    made = make({"turns": ["Why?", "Sure?", "Really?"]})
    assert (made.messages, made.turns) == ((USER,), ("Sure?", "Really?"))


def test_precedence_of_columns():
    """Of several filled columns the first in the documented order is asked."""
    columns = {
        "messages": [{"role": "user", "content": "messages"}],
        "conversations": [{"from": "human", "value": "conversations"}],
        "turns": ["turns"],
        "prompt": "prompt",
        "question": "question",
        "instruction": "instruction",
    }
    names = list(columns)
    for at, name in enumerate(names):
        left = {other: columns[other] for other in reversed(names[at:])}
        assert make(left).messages == ({"role": "user", "content": name},)


def test_instruction_and_input_are_joined():
    """A filled input stands after the instruction and a blank line."""
    assert make({"instruction": "Add.", "input": "1, 2"}).messages[0]["content"] == "Add.\n\n1, 2"


def test_text_parts_are_flattened():
    """Text parts are joined by line ends, in the asked and in the later turns."""
    parts = [{"type": "text", "text": "a"}, "b", {"text": "c"}]
    made = make({"messages": [{"role": "user", "content": parts}, {"role": "user", "content": parts}]})
    assert (made.messages[0]["content"], made.turns) == ("a\nb\nc", ("a\nb\nc",))


def test_the_rows_own_system_turn_wins():
    """A system turn in the messages beats the row's column, and that beats the config's."""
    both = {"messages": [SYSTEM, USER], "system": "Column."}
    assert make(both, "Config.").messages == (SYSTEM, USER)
    for column in ("system", "system_prompt"):
        assert make({"prompt": "Why?", column: "Column."}, "Config.").system == "Column."
    made = make({"prompt": "Why?", "system": None}, "Config.")
    assert made.messages == ({"role": "system", "content": "Config."}, USER)
    assert made.system == "Config."
    assert make({"prompt": "Why?"}).system is None


def test_all_system_turns_before_the_question_stay():
    """Several system turns are all asked, and `system` has all their text."""
    made = make({"messages": [SYSTEM, {"role": "system", "content": "Be kind."}, USER]}, "Config.")
    assert len(made.messages) == 3
    assert made.system == "Be brief.\n\nBe kind."


REFUSED = {
    "unknown role": ({"conversations": [{"from": "narrator", "value": "x"}, USER]}, "'narrator' is not known"),
    "unknown role later": ({"messages": [USER, {"role": "critic", "content": "x"}]}, "'critic' is not known"),
    "no role": ({"messages": [{"content": "x"}]}, "None is not known"),
    "role of no text": ({"messages": [{"role": ["user"], "content": "x"}]}, "is not known"),
    "assistant first": ({"messages": [SYSTEM, ANSWER, USER]}, "starts with the assistant"),
    "call first": ({"conversations": [{"from": "function_call", "value": "x"}, USER]}, "starts with the assistant"),
    "tool first": ({"messages": [{"role": "tool", "content": "x"}, USER]}, "starts with the tool"),
    "no user": ({"messages": [SYSTEM]}, "no user turn"),
    "nested and empty": ({"question": [[]]}, "no user turn"),
    "empty content": ({"messages": [{"role": "user", "content": ""}]}, "is empty"),
    "blank content": ({"prompt": " \n"}, "is empty"),
    "blank later turn": ({"turns": ["Why?", " "]}, "is empty"),
    "no content": ({"messages": [{"role": "user"}]}, "not text"),
    "number": ({"messages": [{"role": "user", "content": 5}]}, "not text"),
    "no parts": ({"messages": [{"role": "user", "content": []}]}, "is empty"),
    "image": ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}, "'image_url'"),
    "later image": ({"messages": [USER, {"role": "user", "content": [{"type": "image"}]}]}, "'image'"),
    "part of no text": ({"messages": [{"role": "user", "content": [{"type": "text", "text": 1}]}]}, "no text"),
    "part of no kind": ({"messages": [{"role": "user", "content": [7]}]}, "no text"),
    "no message": ({"messages": ["Why?"]}, "no message"),
    "mixed turns": ({"turns": ["Why?", USER]}, "no message"),
    "mixed question": ({"question": [[USER], USER]}, "no message"),
    "messages as text": ({"messages": "Why?"}, "no known shape"),
    "prompt of a number": ({"prompt": 5}, "no known shape"),
    "instruction of a list": ({"instruction": ["a"]}, "not both text"),
    "input of a list": ({"instruction": "a", "input": ["b"]}, "not both text"),
    "system of a list": ({"prompt": "a", "system": ["b"]}, "system column"),
    "no column": ({"text": "a", "label": 1}, "there is 'text', 'label'"),
    "nothing": ({}, "none at all"),
    "empty column": ({"prompt": "", "answer": "x"}, "'prompt' is empty"),
    "tools of bad text": ({"prompt": "a", "tools": "[{"}, "not valid JSON"),
    "tools of NaN": ({"prompt": "a", "tools": "[NaN]"}, "not valid JSON"),
    "tools of a number": ({"prompt": "a", "tools": 5}, "not a function's declaration"),
    "tool of another kind": ({"prompt": "a", "tools": [{"type": "web_search", "name": "x"}]}, "not a function's"),
    "tool without a function": ({"prompt": "a", "tools": [{"type": "function"}]}, "not a function's"),
    "tool without a name": ({"prompt": "a", "tools": [{"function": {"description": "d"}}]}, "no name"),
    "tool with bad parameters": ({"prompt": "a", "tools": [{"name": "f", "parameters": ["x"]}]}, "of the tool 'f'"),
}


@pytest.mark.parametrize(("data", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_is_unclear_is_refused(data, reason):
    """Nothing unclear is guessed: the reason says what is wrong and, after a colon, what to do."""
    said = refusal(data)
    assert reason in said
    assert re.search(r": [a-z]", said)


FUNCTION = {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}
TOOL = {"type": "function", "function": FUNCTION}


@pytest.mark.parametrize(
    "columns",
    [
        {"tools": [TOOL]},
        {"tools": json.dumps([TOOL])},
        {"tools": json.dumps(TOOL)},
        {"tools": [{"function": FUNCTION}]},
        {"tools": [FUNCTION]},
        {"tools": [{"type": "function", **FUNCTION}]},
        {"functions": [FUNCTION]},
        {"function": FUNCTION},
        {"function": [FUNCTION]},
        {"tools": None, "functions": json.dumps([FUNCTION])},
    ],
)
def test_tools_of_all_forms_are_one(columns):
    """OpenAI's form, bare functions, the aliases and JSON text give the same declaration and the same id."""
    made = make({"prompt": "Why?", **columns})
    assert made.tools == (TOOL,)
    assert made.id == prompt_id([USER], [TOOL])


def test_tools_keep_their_order_and_extra_keys():
    """Tools stand as given, since the order is part of what is asked; `strict` and the like stay."""
    tools = [{"name": "b", "strict": True}, {"name": "a"}]
    made = make({"prompt": "Why?", "tools": tools})
    assert [tool["function"] for tool in made.tools] == tools
    assert made.id != make({"prompt": "Why?", "tools": tools[::-1]}).id


def test_types_become_those_of_json_schema():
    """BFCL's type names are put right wherever a schema stands, and nowhere else."""
    given_ = {
        "type": "dict",
        "required": ["type"],
        "properties": {
            "type": {"type": "float", "default": {"type": "dict"}, "enum": ["dict", "tuple"]},
            "rows": {"type": "tuple", "items": {"type": "dict", "properties": {"x": {"type": ["float", "null"]}}}},
            "any": {"type": "any", "description": "d"},
            "one": {"anyOf": [{"type": "bool"}, {"type": "string"}], "additionalProperties": False},
        },
    }
    kept = json.dumps(given_)
    made = make({"prompt": "Why?", "function": [{"name": "f", "parameters": given_}]})
    assert made.tools[0]["function"]["parameters"] == {
        "type": "object",
        "required": ["type"],
        "properties": {
            "type": {"type": "number", "default": {"type": "dict"}, "enum": ["dict", "tuple"]},
            "rows": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": ["number", "null"]}}}},
            "any": {"description": "d"},
            "one": {"anyOf": [{"type": "boolean"}, {"type": "string"}], "additionalProperties": False},
        },
    }
    assert json.dumps(given_) == kept


def test_prompt_id_is_fixed():
    """The id is a contract: journals of earlier versions must find their prompts again."""
    assert prompt_id([{"role": "user", "content": "Why? ☃"}], []) == "1315823b58ce6c51"
    assert prompt_id([{"content": "Why? ☃", "role": "user"}], ()) == "1315823b58ce6c51"
    assert prompt_id([USER], []) != prompt_id([USER], [TOOL])


@given(texts=st.lists(WORDS, min_size=1, max_size=5), system=st.none() | WORDS, answers=st.lists(st.integers(0, 2)))
@settings(deadline=None)
def test_user_texts_survive_verbatim(texts, system, answers):
    """Whatever was answered between them, the user's texts come out in order, unstripped, and nothing else does."""
    messages = [{"role": "system", "content": system}] if system else []
    for at, text in enumerate(texts):
        messages.append({"role": "user", "content": text})
        messages += [ANSWER] * (answers[at] if at < len(answers) else 0)
    made = make({"messages": messages})
    assert [made.messages[-1]["content"], *made.turns] == texts
    assert made.system == system
    assert made.messages[-1]["role"] == "user"
    assert made.id == prompt_id(made.messages, made.tools)


@given(data=st.dictionaries(COLUMNS, VALUES))
@settings(deadline=None, max_examples=300)
def test_any_row_is_a_prompt_or_a_reason(data):
    """No row, however odd, brings anything but a well-formed prompt or a BadShape."""
    try:
        made = make(data)
    except BadShape:
        return
    assert made.messages[-1]["role"] == "user"
    assert all(message["role"] == "system" for message in made.messages[:-1])
    assert all(message["content"].strip() for message in made.messages)
    assert all(turn.strip() for turn in made.turns)
    assert all(tool["type"] == "function" and tool["function"]["name"] for tool in made.tools)
