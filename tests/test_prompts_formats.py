"""One conversation is one prompt, whatever the shape and the file format that it stands in."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyas.config import Dataset
from eyas.families import Loaded
from eyas.prompts import load
from eyas.prompts.columns import Reading
from eyas.prompts.detect import SAMPLE, detect
from eyas.prompts.read import Row
from eyas.prompts.shape import BadShape, prompt_id, to_prompt
from eyas.types import Prompt
from tests.shapekit import SHAPES, TEXTS, Chat, chats, found

MODES = ["first", "last", "replay", None]


@given(chat=chats(), shape=st.sampled_from(sorted(SHAPES)))
@settings(deadline=None, max_examples=400)
def test_a_conversation_is_one_prompt_in_every_shape(chat: Chat, shape: str):
    """The columns are found, the first question has the id of its messages, and the later ones follow."""
    made = found(SHAPES[shape](chat))
    system = [{"role": "system", "content": chat.system}] if chat.system else []
    asked = [*system, {"role": "user", "content": chat.asked[0]}]
    assert list(made.messages) == asked
    assert made.id == prompt_id(asked, [])
    assert made.turns == chat.asked[1:]
    assert made.system == chat.system


@given(chat=chats(), shape=st.sampled_from(sorted(set(SHAPES) - {"user turns"})))
@settings(deadline=None, max_examples=300)
def test_the_last_question_has_the_same_history_in_every_shape(chat: Chat, shape: str):
    """All turns up to the last question are asked as they were given."""
    made = found(SHAPES[shape](chat), "last")
    messages = chat.messages if len(chat.asked) > len(chat.answered) else chat.messages[:-1]
    assert list(made.messages) == messages
    assert made.turns == ()


def as_csv(data: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows after a way through CSV, in which lists and objects are JSON text; empty cells are left out."""
    names = list(dict.fromkeys(name for row in data for name in row))
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    cells = [[json.dumps(v) if isinstance(v, list | dict) else v for v in map(row.get, names)] for row in data]
    writer.writerows([names, *cells])
    file.seek(0)
    return [{name: cell for name, cell in row.items() if cell} for row in csv.DictReader(file)]


def as_parquet(data: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows after a way through Parquet, which fills the missing fields of structs with nulls."""
    file = io.BytesIO()
    names = list(dict.fromkeys(name for row in data for name in row))
    pq.write_table(pa.table({name: [row.get(name) for row in data] for name in names}), file)
    return pq.read_table(file).to_pylist()


def as_lines(data: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows after a way through JSON Lines."""
    return [json.loads(line) for line in [json.dumps(row) for row in data]]


NAMES = st.sampled_from(["look_up", "add"])
ARGUMENTS = st.fixed_dictionaries({"a": TEXTS}, optional={"b": st.integers(0, 9)})


@st.composite
def traces(draw: st.DrawFn) -> dict[str, Any]:
    """Rows with tools, calls with or without ids and texts, and their results."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": draw(TEXTS)}]
    for at in range(draw(st.integers(0, 3))):
        call: dict[str, Any] = {"function": {"name": draw(NAMES), "arguments": draw(ARGUMENTS)}}
        result: dict[str, Any] = {"role": "tool", "content": draw(TEXTS)}
        if draw(st.booleans()):
            call, result = {"id": f"c{at}", **call}, {"tool_call_id": f"c{at}", **result}
        said = draw(st.fixed_dictionaries({}, optional={"content": TEXTS, "reasoning_content": st.just("") | TEXTS}))
        messages += [{"role": "assistant", **said, "tool_calls": [call]}, result]
    number = draw(st.fixed_dictionaries({"type": st.just("long")}, optional={"default": st.none() | st.integers(0, 9)}))
    parameters = {"type": "object", "properties": {"a": {"type": draw(st.sampled_from(["str", "any"]))}, "b": number}}
    tools = [{"type": "function", "function": {"name": name, "parameters": parameters}} for name in ("look_up", "add")]
    return {"messages": messages, "tools": tools if draw(st.booleans()) else json.dumps(tools)}


SETS = st.one_of(
    st.lists(traces(), min_size=1, max_size=4).filter(lambda data: len({type(row["tools"]) for row in data}) == 1),
    st.sampled_from(sorted(SHAPES)).flatmap(lambda name: st.lists(chats().map(SHAPES[name]), min_size=1, max_size=4)),
)


def prompts(data: list[dict[str, Any]], mode: Any) -> list[Any]:
    """What each row is read as, with the columns guessed from all of them."""
    reading = Reading(detect(data).columns, mode)
    return [to_prompt(Row(row, "f", at), "B3", reading) for at, row in enumerate(data)]


@given(data=SETS, mode=st.sampled_from(MODES))
@settings(deadline=None, max_examples=200)
def test_the_file_format_does_not_matter(data: list[dict[str, Any]], mode: Any):
    """CSV with JSON in its cells, Parquet's lists of structs and JSON Lines give the same prompts and ids."""
    expected = prompts(as_lines(data), mode)
    assert prompts(as_csv(data), mode) == expected
    assert prompts(as_parquet(data), mode) == expected


def test_a_null_in_a_declaration_is_left_out():
    """Parquet fills in what is missing, so a null default is none in every format; only a constant may be null."""
    schema = {"type": "object", "properties": {"a": {"type": "string", "default": None, "enum": None}, "b": None}}
    schema["properties"]["c"] = {"const": None}
    made = found({"prompt": "Why?", "tools": [{"name": "f", "description": None, "parameters": schema}]})
    fixed = {"type": "object", "properties": {"a": {"type": "string"}, "c": {"const": None}}}
    assert made.tools[0]["function"] == {"name": "f", "parameters": fixed}


FILES = {
    "BFCL_v4_live_simple.jsonl": (
        258,
        0,
        258,
        "messages = 'question' (role 'role', content 'content'), tools = 'function'",
    ),
    "BFCL_v4_multi_turn_base.jsonl": (200, 1, 0, "messages = 'question' (role 'role', content 'content')"),
    "eagle_alpaca_question.jsonl": (80, 0, 0, "messages = 'turns'"),
    "eagle_gsm8k_question.jsonl": (80, 0, 0, "messages = 'turns'"),
    "eagle_qa_question.jsonl": (80, 0, 0, "messages = 'turns'"),
    "fastchat_dummy_conversation_sharegpt.json": (
        500,
        448,
        0,
        "messages = 'conversations' (role 'from', content 'value')",
    ),
    "gsm8k_test.jsonl": (1319, 0, 0, "prompt = 'question'"),
    "mt_bench_question.jsonl": (80, 0, 0, "messages = 'turns'"),
    "specforge_tool_use_conversation.jsonl": (
        1,
        0,
        1,
        "messages = 'conversations' (role 'role', content 'content'), tools = 'tools'",
    ),
}
"""Rows, duplicates, prompts with tools and the guess of each public file."""


@pytest.mark.skipif(
    "EYAS_PROMPTS" not in os.environ, reason="EYAS_PROMPTS names no folder with the public prompt files"
)
@pytest.mark.parametrize("name", FILES)
def test_public_files_are_loaded_whole(name: str, kimi: Loaded):
    """No row of the public files is left out but duplicates: the target can be asked each, thinking, and the guess is certain."""
    count, duplicates, tools, said = FILES[name]

    def tokens(prompt: Prompt) -> int:
        return kimi.count_prompt(prompt.messages, prompt.tools, True)

    found = load([Dataset(name="B3", source=name)], Path(os.environ["EYAS_PROMPTS"]), 0, tokens).sets["B3"]
    looked_at = min(count, SAMPLE)
    assert found.guess == f"{said}: certain ({looked_at} of {looked_at} row{'s' if count > 1 else ''})"
    assert (found.rows, found.duplicates, list(found.quarantined)) == (count, duplicates, [])
    assert (len(found.prompts), found.images, found.removed) == (count - duplicates, 0, {})
    assert sum(bool(prompt.tools) for prompt in found.prompts) == tools


@given(
    data=st.lists(st.dictionaries(st.sampled_from(["prompt", "data", "x", "tools"]), st.integers() | TEXTS), max_size=3)
)
@settings(deadline=None)
def test_detection_never_raises(data: list[dict[str, Any]]):
    """Whatever the sample is, there is a guess; its confidence is a share, and 0 says that no prompt was found."""
    guess = detect(data)
    assert 0 <= guess.confidence <= 1
    assert guess.rows == len(data)
    for row in data:
        try:
            to_prompt(Row(row, "f", 1), "B3", Reading(guess.columns))
        except BadShape:
            continue
        assert guess.confidence > 0
