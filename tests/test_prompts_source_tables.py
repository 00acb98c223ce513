"""Tables of text: a header, records as RFC 4180 has them, and bad ones named by the line where they start."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyas.prompts.read import BadRow, Row
from eyas.prompts.source import lines, opened, tables
from eyas.prompts.source.row import BrokenSource
from tests.reading import data, read, until_error

CELL = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0\r"), max_size=12)


def written(records: list[list[str]], delimiter: str = ",", end: str = "\r\n") -> bytes:
    """A table as the standard library writes it."""
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator=end).writerows(records)
    return text.getvalue().encode()


def lines_of(got: list[Row | BadRow]) -> list[int]:
    """The lines of the rows."""
    return [one.line for one in got]


@settings(deadline=None)
@given(
    cells=st.lists(st.tuples(CELL, CELL), min_size=1, max_size=8),
    delimiter=st.sampled_from(",;\t"),
    end=st.sampled_from(["\n", "\r\n"]),
    size=st.integers(1, 9),
)
def test_any_cells_come_back(tmp_path_factory, cells, delimiter, end, size):
    """Whatever stands in the cells comes back, at any delimiter and size of the chunks read; empty ones are no columns."""
    content = written(
        [["prompt", "n"], *([text, f"{n} {other}"] for n, (text, other) in enumerate(cells))], delimiter, end
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opened, "CHUNK", size)
        got = read(tmp_path_factory.mktemp("any"), content, "set.tsv")
    assert data(got) == [
        {name: cell for name, cell in (("prompt", text), ("n", f"{n} {other}")) if cell}
        for n, (text, other) in enumerate(cells)
    ]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("name", ["set.jsonl", "set.txt", "set.csv"])
def test_a_table_is_told_from_its_content(tmp_path, delimiter, name):
    """A header and records as wide make a table, whatever the file is called; the delimiter is found."""
    content = written([["id", "prompt", "x"], ["1", "a, b; c\td", ""], ["2", "line\nbreak", "y"]], delimiter)
    assert read(tmp_path, content, name) == [
        Row({"id": "1", "prompt": "a, b; c\td"}, name, 2),
        Row({"id": "2", "prompt": "line\nbreak", "x": "y"}, name, 3),
    ]


def test_one_column_is_a_table_by_name(tmp_path):
    """A single column is a table only where the file is called one: else it might be anything."""
    assert data(read(tmp_path, b'prompt\n"hello, you"\nagain\n', "x.csv")) == [
        {"prompt": "hello, you"},
        {"prompt": "again"},
    ]
    assert all(isinstance(one, BadRow) for one in read(tmp_path, b"prompt\nhello\n", "x.txt"))


def test_json_lines_called_csv(tmp_path):
    """JSON Lines in a file called .csv are JSON Lines."""
    assert data(read(tmp_path, b'{"a": "1,2"}\n{"a": "3,4"}\n', "x.csv")) == [{"a": "1,2"}, {"a": "3,4"}]


def test_lines_are_those_where_records_start(tmp_path):
    """Blank lines and line breaks within cells count as lines of the file, whose first is the header."""
    got = read(tmp_path, b'\na,b\n1,"x\n\ny"\n\n2,z\n', "x.csv")
    assert lines_of(got) == [3, 7]


BAD = {
    "too few": (b"1", "it has 1 cells and the header 2"),
    "too many": (b"1,2,3", "it has 3 cells and the header 2"),
    "not UTF-8": (b"1,caf\xe9", "not text in UTF-8"),
    "a quote inside": (b'1,"a "b" c"', "double each"),
    "an old line end": (b"1,x\r3,y", "line ends are wrong"),
}


@pytest.mark.parametrize(("bad", "reason"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_bad_record_is_named_and_passed_over(tmp_path, bad, reason, place):
    """Each kind of bad record becomes a BadRow with its line, its text and a remedy; the others stand."""
    records = [b"1,good", b"2,good"]
    records.insert(place, bad)
    got = read(tmp_path, b"id,prompt\n" + b"\n".join(records), "x.csv")
    assert lines_of(got) == [2, 3, 4]
    named = got.pop(place)
    assert isinstance(named, BadRow)
    assert reason in named.reason
    assert ": " in named.reason
    assert named.text == bad.decode(errors="replace").partition("\r")[0] or "\r" in bad.decode(errors="replace")
    assert data(got) == [{"id": "1", "prompt": "good"}, {"id": "2", "prompt": "good"}]


def test_an_endless_quote_is_an_error(tmp_path):
    """A quoted cell that never ends would take all further rows with it: it is an error with its line."""
    got, error = until_error(tmp_path, b'id,prompt\n1,x\n2,"open\n' + b"3,y\n" * 50, "x.csv")
    assert data(got) == [{"id": "1", "prompt": "x"}]
    assert "record at line 3 never ends: close its quotes (1 rows were read before that)" in error


@pytest.fixture
def short(monkeypatch):
    """A longest row of 100 bytes."""
    for module in (lines, tables):
        monkeypatch.setattr(module, "MAX_ROW", 100)


def chunked(content: bytes) -> Iterator[bytes]:
    """Chunks that are shorter than the longest row, as in earnest."""
    return (content[at : at + 16] for at in range(0, len(content), 16))


def test_a_record_that_is_too_long_is_passed_over(short):
    """A long line, a long cell of many lines and a long line that opens a quote each spoil one record only."""
    parts = [b"id,prompt", b"1,good", b"2," + b"x" * 200, b"3,good", b'4,"' + b"many\nlines\n" * 30 + b'",', b"5,good"]
    parts += [b'6,"' + b"y" * 300, b'still 6"', b"7,good"]
    got = list(tables.table(chunked(b"\n".join(parts)), "x.csv", ","))
    assert [one.data["id"] for one in got if isinstance(one, Row)] == ["1", "3", "5", "7"]
    bad = [one for one in got if isinstance(one, BadRow)]
    assert [one.line for one in bad] == [3, 5, 67]
    assert all("longer than" in one.reason for one in bad)
    assert [one.text[:4] for one in bad] == ["2,xx", '4,"m', '6,"y']


def test_a_long_endless_quote_is_an_error(short):
    """An open quote is an error too if the record has become too long before the end."""
    with pytest.raises(BrokenSource, match="record at line 3 never ends"):
        list(tables.table(chunked(b'id,prompt\n1,good\n2,"' + b"open\n" * 90), "x.csv", ","))


HEADERS = {
    "twice": (b"id,x,id\n1,2,3\n", "names the column 'id' twice"),
    "none": (b",\n1,2\n", "names no column"),
    "not UTF-8": (b"id,fran\xe7ais\n1,2\n", "header is not text in UTF-8"),
}


@pytest.mark.parametrize(("content", "reason"), HEADERS.values(), ids=HEADERS)
def test_a_header_that_cannot_be_used(tmp_path, content, reason):
    """Columns without a name of their own are an error, not guessed."""
    got, error = until_error(tmp_path, content, "x.csv")
    assert got == []
    assert reason in error


def test_a_column_without_name_is_left_out(tmp_path):
    """The index that pandas writes has no name, and is no column of a row."""
    assert data(read(tmp_path, b",prompt,n\n0,hello,1\n1,again,2\n", "x")) == [
        {"prompt": "hello", "n": "1"},
        {"prompt": "again", "n": "2"},
    ]
