"""Shapes: rows as data sets write them become prompts, or say why not."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyas.prompts.columns import Reading
from eyas.prompts.detect import detect
from eyas.prompts.parts import BadShape, Skipped
from eyas.prompts.read import Row
from eyas.prompts.shape import DEFAULT, prompt_id, to_prompt
from eyas.types import Prompt, Source
from tests.shapekit import ANSWER, SYSTEM, TOOL, USER, make, refusal

WORDS = st.text(min_size=1).filter(str.strip)
COLUMNS = st.sampled_from([*DEFAULT.columns.messages, *DEFAULT.columns.prompt, "input", "tools", "system", "image"])
MODES = st.sampled_from(["first", "last", "replay", None])
KEYS = st.sampled_from(
    [
        *("role", "content", "from", "value", "type", "text", "function", "name", "parameters", "arguments"),
        *("tool_calls", "tool_call_id", "id", "reasoning_content"),
    ]
)
ODD = [
    "[",
    "[{",
    "SYSTEM: {",
    "USER: a\nASSISTANT: <functioncall> {",
    "<tool_call>{'a'</tool_call>",
    "</think>",
    "\x00",
]
VALUES = st.recursive(
    st.none() | st.text(max_size=5) | st.integers() | st.sampled_from(["user", "assistant", "tool", *ODD]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner),
    max_leaves=12,
)


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
    "part of a kind unknown": ({"messages": [{"role": "user", "content": [{"type": "hologram"}]}]}, "'hologram'"),
    "part of no text": ({"messages": [{"role": "user", "content": [{"type": "text", "text": 1}]}]}, "no text"),
    "part of no kind": ({"messages": [{"role": "user", "content": [7]}]}, "no text"),
    "no message": ({"messages": ["Why?", 5]}, "no message"),
    "mixed turns": ({"turns": ["Why?", USER]}, "no message"),
    "mixed question": ({"question": [[USER], USER]}, "no message"),
    "messages as text": ({"messages": "Why?"}, "no known shape"),
    "prompt of a number": ({"prompt": 5}, "no known shape"),
    "instruction of a list": ({"instruction": ["a"]}, "not both text"),
    "input of a list": ({"instruction": "a", "input": ["b"]}, "not both text"),
    "system of a list": ({"prompt": "a", "system": ["b"]}, "system column"),
    "no column": ({"text": "a", "label": 1}, "there is 'text', 'label'"),
    "strings as a prompt": ({"prompt": ["Why?", "How?"]}, "list of strings"),
    "nothing": ({}, "none at all"),
    "empty column": ({"prompt": "", "answer": "x"}, "'prompt' is empty"),
}


@pytest.mark.parametrize(("data", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_is_unclear_is_refused(data, reason):
    """Nothing unclear is guessed: the reason says what is wrong and, after a colon, what to do."""
    said = refusal(data)
    assert reason in said
    assert re.search(r": [a-z]", said)


PICTURED = {
    "image": {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
    "later image": {"messages": [USER, {"role": "user", "content": [{"type": "image"}]}]},
    "sound": {"messages": [{"role": "user", "content": [{"type": "input_audio"}, {"type": "text", "text": "?"}]}]},
    "column and mark": {"conversations": [{"from": "human", "value": "<image>\nWhat is it?"}], "image": "a/b.jpg"},
    "column of bytes": {"prompt": "What is it?", "images": [{"bytes": "aGk=", "path": None}]},
}


@pytest.mark.parametrize("data", PICTURED.values(), ids=PICTURED)
def test_pictures_are_no_bad_rows(data):
    """A row that asks about an image or a sound is skipped for a reason of its own kind."""
    with pytest.raises(Skipped, match="only text can be asked"):
        make(data)


def test_a_mark_or_a_name_alone_is_no_picture():
    """Text may speak of `<image>`, and a column `image` may name a container's."""
    assert make({"prompt": "What does <image> mean?"}).messages[0]["content"] == "What does <image> mean?"
    assert make({"prompt": "Why?", "image": "python:3.12"}).messages == (USER,)


def test_first_asks_nothing_later():
    """With `first` the later user turns are neither asked nor looked at, and the id is the same."""
    talk = {"messages": [SYSTEM, USER, ANSWER, {"role": "user", "content": [{"type": "image"}]}]}
    made = make(talk, reading=Reading(DEFAULT.columns, "first"))
    assert (made.messages, made.turns) == ((SYSTEM, USER), ())
    assert made.id == make({"messages": [SYSTEM, USER]}).id


def test_the_system_prompt_is_drawn_by_the_bare_id():
    """Rows without a system turn are given one by the id they have without it; the others ask for none."""
    drawn: list[str] = []

    def draw(bare: str) -> str:
        drawn.append(bare)
        return "Drawn."

    made = to_prompt(Row({"prompt": "Why?"}, "f", 1), "B3", DEFAULT, draw)
    assert drawn == [prompt_id([USER], [])]
    assert made.messages == ({"role": "system", "content": "Drawn."}, USER)
    assert made.id == prompt_id(made.messages, [])
    to_prompt(Row({"messages": [SYSTEM, USER]}, "f", 1), "B3", DEFAULT, draw)
    to_prompt(Row({"prompt": "Why?", "system": "Own."}, "f", 1), "B3", DEFAULT, draw)
    assert len(drawn) == 1
    assert to_prompt(Row({"prompt": "Why?"}, "f", 1), "B3", DEFAULT, lambda _: " ").messages == (USER,)


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


@given(data=st.dictionaries(COLUMNS, VALUES), mode=MODES)
@settings(deadline=None, max_examples=500)
def test_any_row_is_a_prompt_or_a_reason(data, mode):
    """No row, however odd, brings anything but a well-formed prompt or a BadShape, nor as JSON text in its cells."""
    for cells in (data, {name: json.dumps(value) for name, value in data.items()}):
        columns = detect([cells]).columns
        for reading in (Reading(DEFAULT.columns, mode), Reading(columns, mode)):
            try:
                made = make(cells, reading=reading)
            except BadShape:
                continue
            check(made, mode)


def check(made: Prompt, mode: str | None):
    """A prompt is well formed: it ends with what is to be answered, and each turn says something."""
    last = made.messages[-1]
    assert last["role"] == "user" or (last["role"] == "tool" and mode in ("last", None))
    assert made.turns == () or mode in ("replay", None)
    for message in made.messages:
        assert isinstance(message["content"], str)
        assert message["content"].strip() or message["role"] == "tool" or message.get("tool_calls")
    assert all(turn.strip() for turn in made.turns)
    assert all(tool["type"] == "function" and tool["function"]["name"] for tool in made.tools)
    assert made.id == prompt_id(made.messages, made.tools)
