"""What a run exports can be imported again: the same ids, the same masks, and no label that is surer than before."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyas.families import Loaded
from eyas.tokens import evidence
from eyas.types import Completion, Finish, Label, ToolCall, Work
from tests.importkit import Kit, Make, asked, forms, make_run, question, sampled

make = make_run


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), cuts=st.lists(st.integers(0, 30), max_size=3))
def test_any_split_of_a_runs_own_export_restores_the_same_ids(
    own: tuple[list[dict[str, Any]], Callable[[], Kit]], seed: int, cuts: list[int]
) -> None:
    """Shuffled rows in any files, conversations and samples among them: the export of what was imported is the same."""
    rows, empty = own
    order = random.Random(seed).sample(rows, len(rows))
    kit = empty()
    bounds = sorted({0, len(order), *(min(cut, len(order)) for cut in cuts)})
    files = [
        kit.write(f"{number}.jsonl", order[start:end]) for number, (start, end) in enumerate(itertools.pairwise(bounds))
    ]
    for name in files + files:  # a later turn waits for the answer before it, which may stand in a later file
        kit.bring(name)
    again = kit.export(kit.folder / "rows")
    keys = ("id", "input_ids", "loss_mask")
    assert [[row[key] for key in keys] for row in again] == [[row[key] for key in keys] for row in rows]
    assert not kit.quarantine()
    for row, before in zip(again, rows, strict=True):
        assert list(Label).index(row["metadata"]["label"]) >= list(Label).index(before["metadata"]["label"])


@pytest.fixture(scope="module")
def own(
    kimi: Loaded, kimi_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[dict[str, Any]], Callable[[], Kit]]:
    """The rows of a run with conversations and two samples, with labels of many kinds; and how to begin its like."""
    prompts = [
        {"messages": [*asked(question(n)), *asked("And twice?")] if n % 2 else asked(question(n))} for n in range(6)
    ]
    keys = 'samples = 2\nturns = "replay"\n'
    first = Kit(tmp_path_factory.mktemp("own") / "one", kimi, kimi_folder, prompts, keys)
    made: list[dict[str, Any]] = []
    for number in range(6):
        for sample in range(2):
            messages = asked(question(number))
            for turn in range(1 + number % 2):
                ids = sampled(kimi, content=f" Answer {sample}.{turn}\n")
                made.append(forms(kimi, messages, ids)["vllm chat"])
                history = kimi.history(first.kimi.said(ids, thinking=True))  # pyright: ignore[reportArgumentType]  # its fields
                messages = [*messages, history, *asked("And twice?")]
    first.bring(first.write("a.jsonl", made))
    rows = first.export(first.folder / "rows")
    assert len(rows) == 18
    for place, row in enumerate(rows):  # as answers whose ends are not sure
        if place % 3 == 0:
            answer = row["loss_mask"].index(1)
            row["loss_mask"][answer] = row["loss_mask"][-2] = 0
            row["metadata"]["label"] = "stripped"
        elif place % 3 == 1:
            row["metadata"]["label"] = "counted"
    return rows, lambda: Kit(tmp_path_factory.mktemp("again"), kimi, kimi_folder, prompts, keys)


def test_a_row_of_an_export_is_never_surer_than_its_label(make: Make, kimi: Loaded, tmp_path: Path) -> None:
    """Ids that were counted stay counted, ids that were masked stay masked."""
    kit = make()
    kit.bring(kit.write("a.jsonl", [forms(kimi, asked(question(0)), sampled(kimi))["nested"]]))
    (row,) = kit.export(tmp_path / "rows")
    row["metadata"]["label"] = "repaired"
    row["loss_mask"][-1] = 0
    other = make(name="two")
    assert other.bring(other.write("a.jsonl", [row])).taken == {Label.REPAIRED: 1}
    (again,) = other.export(tmp_path / "again")
    assert again["loss_mask"] == row["loss_mask"]
    assert again["metadata"]["label"] == "repaired"
    assert other.records().keys() == {Work("A", row["id"].split("/")[1])}


def test_the_format_messages_comes_back_as_text(make: Make, kimi: Loaded, tmp_path: Path) -> None:
    """Without ids an answer is rebuilt: the same texts and finish, and no label that its ids would have had."""
    one = make()
    rows = [forms(kimi, asked(question(n)), sampled(kimi))["vllm flat"] for n in range(3)]
    one.bring(one.write("a.jsonl", rows))
    lines = one.export(tmp_path / "rows", format="messages")
    assert {line["metadata"]["label"] for line in lines} == {"engine"}
    other = make(name="two")
    assert other.bring(other.write("a.jsonl", lines)).taken == {Label.UNCOUNTED: 3}
    again = other.export(tmp_path / "again", format="messages")
    assert [line["messages"] for line in again] == [line["messages"] for line in lines]
    assert {line["metadata"]["finish"] for line in again} == {"stop"}


def test_answers_with_tool_calls_come_back(make: Make, kimi: Loaded, tmp_path: Path) -> None:
    """A row found by its ids alone, its call read out of them; and its export, imported elsewhere."""
    tools: list[dict[str, Any]] = [
        {"type": "function", "function": {"name": "clock", "description": "Tells the time", "parameters": {}}}
    ]
    one = make(more=[{"messages": asked("How late is it?"), "tools": tools}])
    call = ToolCall("functions.clock:0", "clock", '{"zone": "CET"}')
    parts = kimi.parts(Completion(" Look.", "", (call,), Finish.TOOL_CALLS), thinking=True)
    ids = [n for part in parts for n in (kimi.vocab.encode(part.text) if part.token is None else [part.token])]
    prompt = kimi.prompt_ids(asked("How late is it?"), tools, thinking=True)
    row = {"input_ids": prompt + ids, "loss_mask": [0] * len(prompt) + [1] * len(ids)}
    assert one.bring(one.write("a.jsonl", [row])).taken == {Label.ENGINE: 1}
    (record,) = one.records().values()
    assert (record.completion.tool_calls, record.completion.finish) == ((call,), Finish.TOOL_CALLS)
    exported = one.export(tmp_path / "rows")
    other = make(name="two", more=[{"messages": asked("How late is it?"), "tools": tools}])
    assert other.bring(other.write("a.jsonl", exported)).taken == {Label.ENGINE: 1}
    assert [each["input_ids"] for each in other.export(tmp_path / "again")] == [row["input_ids"]]


def test_imported_answers_without_counts_teach_nothing_of_a_provider(make: Make, kimi: Loaded) -> None:
    """Neither ids nor bare text are evidence of how somebody counts."""
    one = make()
    said = {"role": "assistant", "content": " It is well.", "reasoning_content": " Hm."}
    rows = [
        forms(kimi, asked(question(0)), sampled(kimi))["vllm chat"],
        {"messages": [*asked(question(1)), said], "finish_reason": "stop"},
    ]
    assert one.bring(one.write("a.jsonl", rows)).taken.total() == 2
    assert [evidence(record, kimi, thinking=True) for record in one.records().values()] == [None, None]
