"""The formats beside `rows`: what each carries, what it says that it cannot, and the same bytes for the same rows."""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eyas.errors import UsageError
from eyas.exporters import Format, Row
from eyas.exporters.messages import Messages
from eyas.exporters.parquet import Parquet, mask_runs
from eyas.exporters.specforge_text import SpecForgeText
from eyas.exporters.torchspec import TorchSpec
from eyas.types import (
    Billed,
    Completion,
    Failure,
    FailureKind,
    Finish,
    Label,
    Prompt,
    Record,
    Sequence,
    Source,
    ToolCall,
    Usage,
    Work,
)

FORMATS: tuple[Format, ...] = (Messages(), SpecForgeText(), TorchSpec(), Parquet())
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
ARGUMENTS = '{"b": 1,  "a": [2, 1.50]}'
"""Not what a JSON library would write: it has to come through as it is."""
CALL = ToolCall("functions.f:0", "f", ARGUMENTS)
QUESTION = {"role": "user", "content": "Why? 🚆"}


def _row(number: int = 1, *, tools: bool = False, prompt: tuple[dict[str, Any], ...] = (QUESTION,), **more: Any) -> Row:
    """An answer of three prompt ids and five of its own; its text is what a family would decode."""
    work = Work("B3", f"{number:016x}", sample=number % 2)
    asked = Prompt(work.prompt_id, "B3", prompt, (TOOL,) if tools else (), source=Source("b3.jsonl", number))
    plain: dict[str, Any] = {
        "reasoning": "R r",
        "content": " C\n",
        "finish": Finish.STOP,
        "usage": Usage(3, 5, reasoning_tokens=2),
        "provider": "P",
        "model": "m",
        "generation_id": f"gen-{number}",
        "seconds": 1.5,
    }
    completion = Completion(**{**plain, **more})
    calls = "".join(f"<call>{call.id}<arguments>{call.arguments}<end>" for call in completion.tool_calls)
    ended = "<|im_end|>" if completion.finish in (Finish.STOP, Finish.TOOL_CALLS) else ""
    text = f"<user>Why?<think>{completion.reasoning}</think>{completion.content}{calls}{ended}"
    ids = (number, 163_607, 12, 13, 163_586)
    sequence = Sequence((1, 2, 163_606), ids, (0, 0, 0, 1, 1, 0, 1, 1), Label.STREAMED, work.key)
    return Row(Record(work, asked, completion, tag="p/int4", cost=1_500, attempt=number), sequence, text)


def _lines(form: Format, *rows: Row) -> list[dict[str, Any]]:
    return [json.loads(line) for line in form.pack(rows).splitlines()]


@pytest.fixture(scope="module")
def pq() -> Any:
    """pyarrow.parquet."""
    try:
        return importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        pytest.skip(f"NO PYARROW, Parquet tests do not run: {error}; pip install 'eyas[parquet]'")


def _write(path: Path, *chunks: list[Row]) -> Path:
    form = Parquet()
    shard = form.open(path)
    for chunk in chunks:
        shard.write(form.pack(chunk))
    shard.close()
    return path


def _read(pq: Any, path: Path) -> list[dict[str, Any]]:
    return pq.read_table(path).to_pylist()


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_every_format_says_what_it_cannot_carry(form: Format) -> None:
    """Each has a name, a suffix, and plain sentences for the manifest."""
    assert form.suffix == (".jsonl" if form.text else ".parquet")
    assert form.cannot
    assert all(sentence[0].isupper() and sentence.endswith(".") for sentence in form.cannot)


@pytest.mark.parametrize("form", FORMATS[:3], ids=lambda form: form.name)
def test_chunks_of_text_join_to_the_same_bytes(form: Format, tmp_path: Path) -> None:
    """Rows packed at once or one by one are the same file."""
    rows = [_row(number) for number in range(5)]
    shard = form.open(tmp_path / "a")
    for row in rows:
        shard.write(form.pack([row]))
    shard.close()
    assert (tmp_path / "a").read_bytes() == form.pack(rows)


def test_messages_hold_the_answer_verbatim() -> None:
    """The last turn has reasoning, content and tool arguments as they came; tools are JSON text in every row."""
    with_tools, plain = _lines(Messages(), _row(tools=True, tool_calls=(CALL,), finish=Finish.TOOL_CALLS), _row(2))
    assert with_tools["messages"] == [
        QUESTION,
        {
            "role": "assistant",
            "content": " C\n",
            "reasoning_content": "R r",
            "tool_calls": [
                {"id": "functions.f:0", "type": "function", "function": {"name": "f", "arguments": ARGUMENTS}}
            ],
        },
    ]
    assert json.loads(with_tools["tools"]) == [TOOL]
    assert (plain["tools"], "tool_calls" in plain["messages"][-1]) == ("[]", False)
    assert plain["metadata"]["finish"] == "stop"
    assert list(plain) == ["id", "primary_id", "messages", "tools", "metadata"]


def test_specforge_text_is_id_and_text() -> None:
    """A row is the text of its ids; ids that end inside a character are refused, for no text says them."""
    row = _row()
    assert _lines(SpecForgeText(), row) == [{"id": row.sequence.record_id, "text": row.text}]
    assert not SpecForgeText().refuses(row)
    assert SpecForgeText().refuses(replace(row, text="half a character \ufffd"))


@pytest.mark.parametrize(
    ("changes", "content"),
    [
        ({}, "<think>R r</think> C\n"),
        ({"content": ""}, "<think>R r</think>"),
        ({"content": "", "finish": Finish.LENGTH}, "<think>R r"),
        ({"finish": Finish.LENGTH}, "<think>R r</think> C\n"),
        ({"reasoning": ""}, " C\n"),
    ],
)
def test_torchspec_has_the_reasoning_inline(changes: dict[str, Any], content: str) -> None:
    """`<think>` is closed unless the answer stopped in it; without reasoning the parser adds the empty block itself."""
    row = _lines(TorchSpec(), _row(**changes))[0]
    assert row["conversations"] == [QUESTION, {"role": "assistant", "content": content}]


def test_torchspec_carries_calls_and_refuses_what_it_would_change() -> None:
    """Arguments stay text; a prompt with tools, or one that spells its image marker, cannot be carried."""
    turn = _lines(TorchSpec(), _row(tool_calls=(CALL,), finish=Finish.TOOL_CALLS))[0]["conversations"][-1]
    assert turn["tool_calls"][0]["function"]["arguments"] == ARGUMENTS
    form = TorchSpec()
    assert not form.refuses(_row(prompt=({"role": "user", "content": [{"type": "text", "text": "Why?"}]},)))
    assert "tools" in form.refuses(_row(tools=True))
    for content in ("an <|image|>", [{"type": "text", "text": "an <|image|>"}]):
        assert "image" in form.refuses(_row(prompt=({"role": "user", "content": content},)))


@given(st.lists(st.integers(0, 1)))
def test_mask_runs_are_torchspecs(mask: list[int]) -> None:
    """The packed form alternates prompt and response lengths, begins with prompt, and gives the mask back."""
    packed = mask_runs(bytes(mask))
    lengths = [int(part) for part in packed.split(",")] if packed else []
    expected = [len(list(run)) for _, run in groupby(mask)]
    assert lengths == ([0, *expected] if mask[:1] == [1] else expected)
    assert [place % 2 for place, length in enumerate(lengths) for _ in range(length)] == mask


def test_parquet_has_the_documented_schema_and_values(pq: Any, tmp_path: Path) -> None:
    """int32 ids, int8 mask, arguments as text, and null where nothing is known."""
    cut = Failure(FailureKind.CUT, Billed.UNKNOWN, "closed")
    known = _row(1, tools=True, tool_calls=(CALL,), finish=Finish.TOOL_CALLS, first_token=0.25)
    unknown = _row(2, usage=None, finish=None, cut=cut)
    unknown = replace(unknown, record=replace(unknown.record, cost=None))
    path = _write(tmp_path / "a.parquet", [known, unknown])
    schema = {field.name: str(field.type).replace("element:", "item:") for field in pq.read_schema(path)}
    assert {schema[name] for name in ("prompt_ids", "completion_ids", "input_ids")} == {"list<item: int32>"}
    assert schema["loss_mask"] == "list<item: int8>"
    first, second = _read(pq, path)
    assert first == {
        "schema_version": 1,
        "id": "B3/0000000000000001/t0/s1",
        "primary_id": "B3/0000000000000001",
        "dataset": "B3",
        "turn": 0,
        "sample": 1,
        "source": {"file": "b3.jsonl", "line": 1},
        "messages": '[{"role":"user","content":"Why? 🚆"}]',
        "tools": json.dumps([TOOL], separators=(",", ":")),
        "reasoning": "R r",
        "content": " C\n",
        "tool_calls": [{"id": "functions.f:0", "type": "function", "function": {"name": "f", "arguments": ARGUMENTS}}],
        "finish": "tool_calls",
        "cut": "",
        "prompt_ids": [1, 2, 163_606],
        "completion_ids": [1, 163_607, 12, 13, 163_586],
        "input_ids": [1, 2, 163_606, 1, 163_607, 12, 13, 163_586],
        "loss_mask": [0, 0, 0, 1, 1, 0, 1, 1],
        "mask_runs": "3,2,1,2",
        "length": 8,
        "supervised": 4,
        "eot_supervised": True,
        "label": "streamed",
        "reason": "",
        "text": known.text,
        "prompt_tokens": 3,
        "completion_tokens": 5,
        "reasoning_tokens": 2,
        "cached_tokens": 0,
        "provider": "P",
        "tag": "p/int4",
        "model": "m",
        "generation_id": "gen-1",
        "usd": 0.0000015,
        "attempt": 1,
        "first_token": 0.25,
        "seconds": 1.5,
    }
    assert (second["finish"], second["cut"], second["tool_calls"], second["tools"]) == ("", "cut", [], "[]")
    empty = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens", "usd", "first_token")
    assert [name for name, value in second.items() if value is None] == list(empty)


def test_parquet_tells_whether_the_stop_token_is_supervised(pq: Any, tmp_path: Path) -> None:
    """Only where the model finished, its last id has mask 1, and the text ends with a stop token of any family."""
    whole = _row()
    masked = replace(whole, sequence=replace(whole.sequence, loss_mask=(0, 0, 0, 1, 1, 1, 1, 0)))
    stops = ("<|im_end|>", "<｜end▁of▁sentence｜>", "<|return|>", "<|call|>", "<|observation|>", "</s>")  # noqa: RUF001
    cuts = ("", "a <b>", "<|tool_call_end|>", "<|tool_calls_section_end|>", "<｜tool▁calls▁end｜>", "</think>")  # noqa: RUF001
    rows = [replace(whole, text=f"Why?{end}") for end in (*stops, *cuts)]
    path = _write(tmp_path / "a.parquet", [whole, masked, _row(finish=Finish.LENGTH), *rows])
    told = [row["eot_supervised"] for row in _read(pq, path)]
    assert told == [True, False, False] + [True] * len(stops) + [False] * len(cuts)


def test_parquet_bytes_do_not_depend_on_the_chunks(pq: Any, tmp_path: Path) -> None:
    """The same rows give the same file, however they were cut; row groups end where the rows say."""
    rows = [_row(number, content="word " * (number % 7)) for number in range(2300)]
    files = [
        _write(tmp_path / "a", rows),
        _write(tmp_path / "b", *(rows[at : at + 64] for at in range(0, 2300, 64))),
        _write(tmp_path / "c", rows[:1999], rows[1999:]),
    ]
    assert len({hashlib.sha256(path.read_bytes()).hexdigest() for path in files}) == 1
    file = pq.ParquetFile(files[0])
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [1000, 1000, 300]
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    assert [row["id"] for row in _read(pq, files[0])] == [row.sequence.record_id for row in rows]


def test_long_rows_make_small_row_groups(pq: Any, tmp_path: Path) -> None:
    """A row group is closed at two million ids, so that memory is bounded."""
    long = _row()
    ids = (7,) * 900_000
    long = replace(long, sequence=replace(long.sequence, completion_ids=ids, loss_mask=(0, 0, 0) + (1,) * 900_000))
    file = pq.ParquetFile(_write(tmp_path / "a", [long] * 4))
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [3, 1]


def test_an_empty_parquet_shard_is_a_file_with_the_schema(pq: Any, tmp_path: Path) -> None:
    """A shard that is closed before a chunk came can be read."""
    assert _read(pq, _write(tmp_path / "a")) == []


def test_without_pyarrow_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The import is lazy, and a missing package is an error of use with the command to run."""
    for name in [name for name in sys.modules if name.split(".")[0] == "pyarrow"] + ["pyarrow"]:
        monkeypatch.setitem(sys.modules, name, None)
    for attempt in (lambda: Parquet().pack([_row()]), lambda: Parquet().open(tmp_path / "a")):
        with pytest.raises(UsageError, match=r"pip install 'eyas\[parquet\]'"):
            attempt()


def test_datasets_load_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`datasets.load_dataset("parquet", …)` gives every row with the types it was written with."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    try:
        datasets: Any = importlib.import_module("datasets")
    except ImportError as error:
        pytest.skip(f"NO DATASETS, its reader is not tried: {error}; pip install datasets")
    path = _write(tmp_path / "a.parquet", [_row(number) for number in range(70)])
    found = datasets.load_dataset("parquet", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache"))
    assert len(found) == 70
    assert (found.features["input_ids"].feature.dtype, found.features["loss_mask"].feature.dtype) == ("int32", "int8")
    assert found[3]["input_ids"][3] == 3
