"""Columns: what a set's columns mean is guessed from their content, said in a sentence, and may be mapped."""

import json
import re
from pathlib import Path

import pytest

from eyas.errors import UsageError
from eyas.prompts.columns import Columns, Reading, columns_of, describe
from eyas.prompts.detect import detect
from eyas.prompts.names import is_answer
from tests.shapekit import ANSWER, SYSTEM, TOOL, USER, found, make, refusal

GPT = [{"from": "human", "value": "Why?"}, {"from": "gpt", "value": "So."}]
SENTENCES = {
    "sharegpt with tools": (
        [{"conversations": GPT, "tools": [TOOL]}],
        "messages = 'conversations' (role 'from', content 'value'), tools = 'tools': certain (1 of 1 row)",
    ),
    "some bad rows": (
        [{"messages": [USER]}] * 7 + [{"messages": [ANSWER]}] * 3,
        "messages = 'messages' (role 'role', content 'content'): likely (7 of 10 rows)",
    ),
    "two shapes": (
        [{"messages": [USER]}, {"conversations": GPT}, {"prompt": "Why?"}],
        (
            "messages = 'messages' or 'conversations' (role 'role' or 'from', content 'content' or 'value'), "
            "prompt = 'prompt': certain (3 of 3 rows)"
        ),
    ),
    "alpaca": (
        [{"instruction": "Add.", "input": "", "output": "3"}, {"instruction": "Add.", "input": "1, 2", "output": "3"}],
        "prompt = 'instruction', input = 'input': certain (2 of 2 rows)",
    ),
    "no input": ([{"instruction": "Add.", "response": "3"}], "prompt = 'instruction': certain (1 of 1 row)"),
    "system column": (
        [{"system_prompt": "Be brief.", "query": "Why?"}],
        "prompt = 'query', system = 'system_prompt': certain (1 of 1 row)",
    ),
    "unknown talk": (
        [{"verlauf": [{"rolle": "user", "inhalt": "Why?"}, {"rolle": "assistant", "inhalt": "So."}]}],
        "messages = 'verlauf' (role 'rolle', content 'inhalt'): likely (1 of 1 row)",
    ),
    "text": ([{"text": "Why?", "meta": {"a": 1}}], "prompt = 'text': likely (1 of 1 row)"),
    "one unknown text": ([{"frage": "Why?"}], "prompt = 'frage': a guess, map it if it is wrong (1 of 1 row)"),
    "longest unknown text": (
        [{"a": "b", "frage": "Why is it?", "response": "x" * 99, "url": "y" * 99}],
        "prompt = 'frage': a guess, map it if it is wrong (1 of 1 row)",
    ),
    "nothing": (
        [{"chosen": [USER, ANSWER], "rejected": [USER, ANSWER]}],
        "no column seems to hold a prompt (there is 'chosen', 'rejected'): map one, such as map = { prompt = \"…\" }",
    ),
    "no rows": ([], 'no column seems to hold a prompt (there is none at all): map one, such as map = { prompt = "…" }'),
    "tools by content": (
        [{"prompt": "Why?", "apis": '[{"name": "f", "parameters": {}}]', "function": "sum"}],
        "prompt = 'prompt', tools = 'apis': certain (1 of 1 row)",
    ),
    "lists that are no talk": (
        [{"path": ["a", "b"], "mails": [{"from": "ann@example.org", "content": "Hi"}], "question": "Why?"}],
        "prompt = 'question': certain (1 of 1 row)",
    ),
}


@pytest.mark.parametrize(("sample", "sentence"), SENTENCES.values(), ids=SENTENCES)
def test_the_guess_is_a_sentence(sample, sentence):
    """The sentence names the columns and fields that the rows are read from, how sure it is, and the rows it suits."""
    guess = detect(sample)
    assert guess.sentence == sentence
    assert (guess.confidence == 0) == sentence.startswith("no column")


ORDER = {
    "messages": [USER],
    "conversations": [USER],
    "conversation": [USER],
    "dialog": [USER],
    "turns": ["Why?"],
    "input": [USER],
    "prompt": "Why?",
    "question": "Why?",
    "instruction": "Why?",
    "query": "Why?",
    "problem": "Why?",
    "text": "Why?",
}


def test_the_order_of_known_names():
    """Of several columns that fit, the first in the documented order is read."""
    names = list(ORDER)
    for at, name in enumerate(names):
        row = {other: ORDER[other] for other in reversed(names[at:])}
        assert f" = '{name}'" in detect([row]).sentence
        assert found(row).messages == (USER,)


@pytest.mark.parametrize(
    "name",
    [
        "output",
        "response",
        "answers",
        "completion",
        "chosen",
        "response_a",
        "answer1",
        "model_output",
        "gpt4Answer",
        "Output",
        "assistant_text",
    ],
)
def test_an_answer_is_never_the_prompt(name):
    """Whatever an answer's column holds, it is not guessed to be the prompt; the user may still map it."""
    assert is_answer(name)
    for value in ([USER, ANSWER], "A long text.", ["Why?", "So."]):
        guess = detect([{name: value, "id": "7"}])
        assert guess.confidence == 0
    assert found({name: [USER, ANSWER]}, messages=name).messages == (USER,)


@pytest.mark.parametrize("name", ["prompt", "answer_prompt", "user_input", "Frage", "conversations", "question_text"])
def test_a_question_is_no_answer(name):
    """Names that ask are not taken for answers."""
    assert not is_answer(name)


def test_later_rows_may_have_columns_that_the_sample_lacks():
    """Known columns that first stand in a later row are read too: its tools, its system turn, its input."""
    reading = Reading(columns_of(detect([{"instruction": "Why?"}] * 3), {}))
    made = make({"instruction": "Add.", "input": "1", "tools": [TOOL], "system": "Be brief."}, reading=reading)
    assert made.messages == (SYSTEM, {"role": "user", "content": "Add.\n\n1"})
    assert made.tools == (TOOL,)
    assert make({"conversations": GPT}, reading=reading).messages == (USER,)


def test_a_rendered_conversation_does_not_stand_in():
    """Where a set has conversations, a row with an empty one is not asked from a column of text beside it."""
    sample = [{"messages": [USER], "text": "USER Why?"}, {"messages": [], "text": "USER Why?"}]
    assert (
        detect(sample).sentence
        == "messages = 'messages' (role 'role', content 'content'): a guess, map it if it is wrong (1 of 2 rows)"
    )


def test_columns_are_mapped():
    """A mapped column takes the place of the guessed ones; fields of its messages are found anew."""
    talk = [{"wer": "user", "was": "Why?"}, {"wer": "bot", "was": "So."}]
    row = {
        "messages": [{"role": "user", "content": "No."}],
        "log": talk,
        "frage": "Why?",
        "mehr": "Now.",
        "vor": "Be brief.",
    }
    assert found(row, messages="log").messages == (USER,)
    assert found(row, messages="log", role="wer", content="was", system="vor").messages == (SYSTEM, USER)
    assert found(row, prompt="frage").messages == (USER,)
    assert found(row, prompt="frage", input="mehr").messages == ({"role": "user", "content": "Why?\n\nNow."},)
    columns = columns_of(detect([row]), {"messages": "log", "system": "vor"})
    assert describe(columns) == "messages = 'log' (role 'wer', content 'was'), system = 'vor'"


def test_a_column_is_mapped_away():
    """An empty name says that there is no such column: another model's system prompt is left out."""
    row = {"prompt": "Why?", "system": "detailed thinking on", "tools": [TOOL]}
    made = found(row, system="", tools="")
    assert (made.system, made.tools) == (None, ())


MISMAPPED = {
    "column": (
        {"messages": "conversation"},
        "messages = 'conversation' is no column in the first row .*'conversations', 'id'",
    ),
    "field": ({"role": "rolle"}, "role = 'rolle' is no field in the messages of 'conversations' .*'from', 'value'"),
    "tools": ({"tools": "tool"}, "tools = 'tool' is no column"),
    "input alone": ({"messages": "conversations", "input": "id"}, "no prompt column is known"),
}


@pytest.mark.parametrize(("mapped", "reason"), MISMAPPED.values(), ids=MISMAPPED)
def test_what_no_row_has_is_not_mapped(mapped, reason):
    """A mapped name that the rows lack is an error that names those they have."""
    with pytest.raises(UsageError, match=reason):
        columns_of(detect([{"conversations": GPT, "id": "7"}]), mapped)


def test_mapped_columns_need_rows():
    """Without a row there is nothing to hold a map against."""
    assert columns_of(detect([]), {"messages": "log"}).messages == ("log",)
    assert (
        describe(Columns(messages=("log",))) == "messages = 'log' (role 'role' or 'from', content 'content' or 'value')"
    )


PAGE = Path(__file__).parent.parent / "docs" / "shapes.md"
EXAMPLES = re.findall(r"```json\n(.+?)\n```\n\n```text\n(.+?)\n```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
REASONS = {
    "role": {"conversations": [{"from": "narrator", "value": "x"}]},
    "start": {"messages": [ANSWER, USER]},
    "empty": {"messages": [{"role": "user", "content": ""}]},
    "result": {"messages": [USER, {"role": "tool", "content": "x"}]},
}


@pytest.mark.parametrize(("row", "sentence"), EXAMPLES)
def test_the_examples_of_the_page_are_real(row, sentence):
    """Each row on the page of shapes is read as it says there."""
    assert detect([json.loads(row)]).sentence == sentence


@pytest.mark.parametrize("row", REASONS.values(), ids=REASONS)
def test_the_reasons_of_the_page_are_real(row):
    """The reasons on the page are those that are given."""
    assert refusal(row, Reading(detect([row]).columns)) in PAGE.read_text(encoding="utf-8").splitlines()
