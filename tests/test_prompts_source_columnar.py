"""Parquet and Arrow: the rows come out as they went in, by small batches, and damage is a clear error."""

from __future__ import annotations

import datetime
import decimal
import io
import math
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyas.errors import UsageError
from eyas.prompts.read import BadRow, Row, rows
from eyas.prompts.source import columnar, ipc, pages
from tests.reading import TALKS, data, read, until_error

pa = pytest.importorskip("pyarrow", reason="NO PYARROW, columns are not tested: pip install 'eyas[parquet]'")
pq = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")


def parquet(table: Any, **options: Any) -> bytes:
    """A table as Parquet."""
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def arrow_file(table: Any, compression: str = "uncompressed", rows: int = 1000) -> bytes:
    """A table as an Arrow file, which Feather is."""
    sink = io.BytesIO()
    feather.write_feather(table, sink, compression=compression, chunksize=rows)
    return sink.getvalue()


def arrow_stream(table: Any) -> bytes:
    """A table as an Arrow stream, as `datasets` keeps it."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table, max_chunksize=2)
    return sink.getvalue()


def table_of(talks: list[dict[str, Any]]) -> Any:
    """A table of rows; what one lacks is null in it, and in structs too."""
    names = dict.fromkeys(name for talk in talks for name in talk)
    return pa.Table.from_pylist([{name: talk.get(name) for name in names} for talk in talks])


FORMS = {
    "parquet": parquet,
    "parquet, zstd, plain": lambda table: parquet(table, compression="zstd", use_dictionary=False),
    "parquet, version 2 pages": lambda table: parquet(table, data_page_version="2.0", row_group_size=2),
    "feather, lz4": lambda table: arrow_file(table, "lz4", 2),
    "feather, zstd": lambda table: arrow_file(table, "zstd"),
    "arrow file": arrow_file,
    "arrow stream": arrow_stream,
}
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


@every_form
@pytest.mark.parametrize("name", ["set.parquet", "set.jsonl"])
def test_rows_come_out_as_they_went_in(tmp_path, form, name):
    """Nested rows, missing columns and missing fields are in each form what they are in JSON Lines; rows are numbered."""
    got = read(tmp_path, form(table_of(TALKS)), name)
    assert data(got) == TALKS
    assert [row.line for row in got] == [1, 2, 3]


CELL = st.none() | st.text(st.characters(exclude_categories=("Cs",)), max_size=5) | st.sampled_from(["same", "other"])
MESSAGE = st.fixed_dictionaries({"role": st.sampled_from("ab")}, optional={"text": CELL, "n": st.integers(-9, 9)})
RECORD = st.fixed_dictionaries(
    {"id": st.integers(-(2**63), 2**63 - 1)},
    optional={"text": CELL, "x": st.floats(), "turns": st.lists(CELL, max_size=3), "m": st.lists(MESSAGE, max_size=3)},
)
SCHEMA = {
    "id": "int64",
    "text": "string",
    "x": "float64",
    "turns": pa.list_(pa.string()),
    "m": pa.list_(pa.struct({"role": pa.string(), "text": pa.string(), "n": pa.int64()})),
}


def without_nulls(record: dict[str, Any]) -> dict[str, Any]:
    """A record as columns give it: null fields and numbers that are none left out, null elements of lists kept."""
    return {
        key: [without_nulls(each) if isinstance(each, dict) else each for each in value]
        if isinstance(value, list)
        else value
        for key, value in record.items()
        if value is not None and not (isinstance(value, float) and not math.isfinite(value))
    }


@every_form
@settings(deadline=None, max_examples=40)
@given(records=st.lists(RECORD, min_size=1, max_size=9))
def test_any_records_come_back(tmp_path_factory, form, records):
    """Whatever the columns hold, and wherever batches and row groups are cut, the records come back in order."""
    table = pa.Table.from_pylist(
        records, schema=pa.schema({k: pa.type_for_alias(v) if isinstance(v, str) else v for k, v in SCHEMA.items()})
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columnar, "_MOST_ROWS", 2)
        got = read(tmp_path_factory.mktemp("any"), form(table))
    assert data(got) == [without_nulls(record) for record in records]


@every_form
def test_other_types_are_text_numbers_or_left_out(tmp_path, form):
    """Times and decimals come as text, maps as objects, bytes as text if they are any; what has no JSON is left out."""
    day = datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    table = pa.table(
        {
            "when": pa.array([day], pa.timestamp("us", "UTC")),
            "day": [day.date()],
            "price": [decimal.Decimal("1.50")],
            "map": pa.array([[("k", "v"), ("n", None)]], pa.map_(pa.string(), pa.string())),
            "bytes": [b"text"],
            "picture": [b"\x89PNG\xff"],
            "label": pa.array(["x"]).dictionary_encode(),
            "flag": [True],
            "none": pa.nulls(1),
            "nothing": [float("nan")],
            "large": pa.array(["y"], pa.large_string()),
            "fixed": pa.array([[1, 2]], pa.list_(pa.int8(), 2)),
        }
    )
    [row] = data(read(tmp_path, form(table)))
    assert row.pop("when").startswith("2024-01-02 03:04:05")
    assert row == {
        "day": "2024-01-02",
        "price": "1.50",
        "map": {"k": "v", "n": None},
        "bytes": "text",
        "label": "x",
        "flag": True,
        "large": "y",
        "fixed": [1, 2],
    }


def test_text_that_is_not_utf8_spoils_its_row_only(tmp_path):
    """A string column may hold any bytes in Parquet: the row is named, the others stand."""
    garbled = pa.array([b"good", b"caf\xe9", b"fine"]).view(pa.string())
    for form in (parquet, FORMS["parquet, zstd, plain"]):
        got = read(tmp_path, form(pa.table({"prompt": garbled})))
        assert [row.data["prompt"] for row in got if isinstance(row, Row)] == ["good", "fine"]
        assert isinstance(got[1], BadRow)
        assert "UTF-8" in got[1].reason


def test_a_row_that_is_too_long_is_named(tmp_path):
    """A text longer than a row may be is not made at all, and its row is one bad row."""
    table = pa.table({"id": ["a", "b"], "prompt": ["x" * (17 << 20), "short"]})
    for form in (parquet, arrow_file):
        bad, good = read(tmp_path, form(table))
        assert isinstance(bad, BadRow)
        assert "longer than" in bad.reason
        assert good == Row({"id": "b", "prompt": "short"}, "set.jsonl", 2)


@every_form
def test_a_cut_file_is_an_error(tmp_path, form):
    """A file without its end is an error with file and count: Arrow gives the batches before the cut."""
    content = form(table_of(TALKS * 400))
    got, error = until_error(tmp_path, content[: len(content) * 2 // 3])
    assert data(got) == (TALKS * 400)[: len(got)]
    assert error.startswith("set.jsonl: ")
    assert f"({len(got)} rows were read before that)" in error


def test_rows_out_of_nothing_come_to_an_end(tmp_path, monkeypatch):
    """Null rows, of which a hundred bytes may claim any number, count like others towards what a file may unfold to."""
    monkeypatch.setattr(columnar, "FREE", 1 << 20)
    monkeypatch.setattr(columnar, "RATIO", 1)
    got, error = until_error(tmp_path, parquet(pa.table({"a": pa.nulls(20_000)})))
    assert data(got) == [{}] * 4096
    assert "which no set of prompts does" in error


@pytest.mark.parametrize("options", [{}, {"data_page_version": "2.0"}, {"compression": "zstd", "data_page_size": 512}])
@pytest.mark.parametrize("checksum", [False, True])
def test_page_headers_are_read_to_their_end(tmp_path, options, checksum):
    """The pages found by their headers fill each column's chunk, and unfold to what its writer counted."""
    talks = table_of([{**talk, "n": number} for number, talk in enumerate(TALKS * 300)])
    path = tmp_path / "x.parquet"
    path.write_bytes(parquet(talks, row_group_size=400, write_page_checksum=checksum, **options))
    metadata = pq.ParquetFile(path).metadata
    with path.open("rb") as file:
        found = pages.groups(file)
        assert [group.rows for group in found] == [400, 400, 100]
        for index, group in enumerate(found):
            each = [metadata.row_group(index).column(number) for number in range(metadata.num_columns)]
            assert [end - start for start, end in group.columns] == [one.total_compressed_size for one in each]
            load = pages.load(file, group)
            assert 0 < load.packed < sum(one.total_compressed_size for one in each)
            values = sum(one.num_values for one in each)
            assert load.unpacked <= sum(one.total_uncompressed_size for one in each) + pages.VALUE * values


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_batch_headers_are_read_to_the_end(compression):
    """The batches of an Arrow file are all found, with the size that they unfold to where they are packed."""
    table = table_of(TALKS * 400)
    found = list(ipc.loads(arrow_file(table, compression, 500), 8))
    assert len(found) == 3
    assert all(one.packed > 0 for one in found)
    unpacked = sum(one.unpacked for one in found)
    assert unpacked == 0 if compression == "uncompressed" else unpacked >= table.nbytes * 0.9


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    """Where pyarrow is not installed, the error says what to install."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"x\.parquet: is Parquet.*pip install 'eyas\[parquet\]'"):
        read(tmp_path, b"PAR1" + bytes(40), "x.parquet")


def test_a_folder_of_columns(tmp_path):
    """The files of a data set's snapshot are one set, each with rows numbered of its own."""
    (tmp_path / "data").mkdir()
    for name in ("train-0", "train-1"):
        (tmp_path / "data" / name).write_bytes(parquet(table_of(TALKS)))
    assert [(row.file, row.line) for row in rows("data", tmp_path)] == [
        (f"data/train-{part}", line) for part in (0, 1) for line in (1, 2, 3)
    ]


def test_standard_input_of_columns(tmp_path, monkeypatch):
    """Parquet from a pipe is spooled, since it is read from any place."""
    near, far = os.pipe()
    os.write(far, parquet(table_of(TALKS)))
    os.close(far)
    with os.fdopen(near, "rb") as pipe:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(pipe))
        assert data(list(rows("-", Path()))) == TALKS
