"""What a source may name, and how its format is told: from the content, whatever the name says."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from eyas.errors import UsageError
from eyas.prompts.read import BadRow, Row, rows
from tests.reading import TALKS, data, read, until_error


def lines(talks: list[dict]) -> bytes:
    """JSON Lines."""
    return "".join(json.dumps(talk, ensure_ascii=False) + "\n" for talk in talks).encode()


def table(talks: list[dict]) -> bytes:
    """CSV as its writers make it: JSON in the cells, an empty cell for what is missing."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, sorted({name for talk in talks for name in talk}))
    writer.writeheader()
    for talk in talks:
        writer.writerow({k: json.dumps(v) if isinstance(v, list) else v for k, v in talk.items()})
    return text.getvalue().encode()


TEXTS: dict[str, Callable[[list[dict]], bytes]] = {
    "lines": lines,
    "array": lambda talks: json.dumps(talks, indent=1).encode(),
    "under a key": lambda talks: json.dumps({"version": 1, "data": talks}, indent=1).encode(),
    "under a key, on one line": lambda talks: json.dumps({"rows": talks, "version": 1}).encode(),
    "with a byte order mark": lambda talks: b"\xef\xbb\xbf" + lines(talks),
}
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor().compress,
    "xz": lzma.compress,
    "bzip2": bz2.compress,
}


@pytest.mark.parametrize("pack", PACKED.values(), ids=PACKED)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("name", ["set.jsonl", "set.csv.gz", "set"])
def test_every_text_is_told_from_its_content(tmp_path, text, pack, name):
    """The same rows come from each form of JSON, however it is packed and whatever it is called."""
    assert data(read(tmp_path, pack(text(TALKS)), name)) == TALKS


@pytest.mark.parametrize("pack", PACKED.values(), ids=PACKED)
def test_a_table_holds_the_same_rows(tmp_path, pack):
    """A CSV has them as text: cells of JSON are the shape's to decode, and an empty cell is no column."""
    cells = [{k: json.dumps(v) if isinstance(v, list) else str(v) for k, v in talk.items()} for talk in TALKS]
    assert data(read(tmp_path, pack(table(TALKS)), "x.csv.gz")) == cells


READER = """
import sys
from pathlib import Path
import msgspec
from eyas.prompts.read import rows
sys.stdout.buffer.write(msgspec.json.encode([(row.data, row.file) for row in rows("-", Path("."))]))
"""


def piped(content: bytes) -> list[tuple[dict, str]]:
    """Rows of standard input that is a pipe."""
    done = subprocess.run([sys.executable, "-c", READER], input=content, stdout=subprocess.PIPE, check=True)
    return [(row, file) for row, file in json.loads(done.stdout)]


def test_standard_input_is_read():
    """A dash is standard input, whose lines are streamed; what must be looked through first is spooled."""
    assert piped(zstandard.ZstdCompressor().compress(lines(TALKS))) == [(talk, "-") for talk in TALKS]
    talks = TALKS * 3000
    packed = gzip.compress(json.dumps({"version": 1, "train": talks}, indent=1).encode())
    assert piped(packed) == [(talk, "-#train") for talk in talks]


def test_a_named_pipe_is_read(tmp_path):
    """A FIFO, as a shell's `<(command)` makes one, is read like a file."""
    os.mkfifo(tmp_path / "pipe")
    writer = subprocess.Popen(["/bin/sh", "-c", f"echo '{{\"a\": 1}}' > '{tmp_path}/pipe'"])
    assert data(list(rows("pipe", tmp_path))) == [{"a": 1}]
    assert writer.wait() == 0


def test_rows_under_a_key_are_named_by_it(tmp_path):
    """Of several lists a usual name goes first, then the largest; rows say under which key they stood."""
    content = {"meta": [{"x": 1}], "info": [{"y": 1}, {"y": 2}], "version": 2}
    assert read(tmp_path, json.dumps(content, indent=2).encode()) == [
        Row({"y": 1}, "set.jsonl#info", 1),
        Row({"y": 2}, "set.jsonl#info", 2),
    ]
    assert {row.file for row in read(tmp_path, json.dumps({**content, "train": [{"z": 1}]}, indent=2).encode())} == {
        "set.jsonl#train"
    }


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    "row", [{"messages": [{"id": 1}], "data": [{"x": 1}]}, {"talk": [{"role": "user", "content": "hi"}]}, {"a": 1}]
)
def test_one_row_is_no_set(tmp_path, row, indent):
    """A file of one object with a column of a row, or a list of messages, is that row, on one line or several."""
    assert read(tmp_path, json.dumps(row, indent=indent).encode()) == [Row(row, "set.jsonl", 1)]


def test_a_long_first_line_is_a_line(tmp_path):
    """JSON Lines whose first row is longer than what the format is told from are still lines."""
    talks = [{"data": [{"x": "y" * 90_000}]}, {"data": [{"x": "z"}]}]
    assert data(read(tmp_path, lines(talks))) == talks


def test_a_cut_object_gives_its_rows_first(tmp_path):
    """A set under a key that breaks off, plain or within gzip, is an error that says how many rows there were."""
    text = json.dumps({"data": TALKS * 500}, indent=1).encode()
    got, error = until_error(tmp_path, text[: len(text) * 2 // 3])
    assert data(got) == (TALKS * 500)[: len(got)]
    assert len(got) > 900
    assert f"breaks off in element {len(got) + 1}" in error
    got, error = until_error(tmp_path, gzip.compress(text)[:-9])
    assert f"({len(got)} rows were read before that)" in error
    assert len(got) > 1400


def test_objects_over_several_lines_one_after_another(tmp_path):
    """What `jq` prints is refused with the option that prints lines, not read as a thousand bad rows."""
    content = "\n".join(json.dumps(talk, indent=2) for talk in TALKS).encode()
    assert "jq -c" in until_error(tmp_path, content)[1]


def test_a_cut_first_row_does_not_hide_the_others(tmp_path):
    """JSON Lines whose first row breaks off within brackets are lines: one bad row, and the others stand."""
    bad, *good = read(tmp_path, b'{"messages": [{"role": "user"},\n' + lines(TALKS))
    assert isinstance(bad, BadRow)
    assert data(good) == TALKS


def test_a_folder_is_all_its_files(tmp_path):
    """Files of rows below a folder, in order of their names; what is hidden or holds no rows is passed over."""
    inside = tmp_path / "set"
    (inside / "more" / "deep").mkdir(parents=True)
    (inside / ".cache").mkdir()
    (inside / "b.jsonl").write_text('{"a": 2}\n')
    (inside / "a.json.gz").write_bytes(gzip.compress(b'[{"a": 1}]'))
    (inside / "more" / "deep" / "part-0").write_bytes(PACKED["zstd"](b'{"a": 3}\n'))
    (inside / "empty.jsonl").touch()
    for name in ("README.md", ".hidden.jsonl", ".cache/x.jsonl", "dataset_info.json", "picture.png", "more/tool.py"):
        (inside / name).write_text('{\n"a": 0}\n')
    got = list(rows("set", tmp_path))
    assert [(row.data["a"], row.file) for row in got if isinstance(row, Row)] == [
        (1, "set/a.json.gz"),
        (2, "set/b.jsonl"),
        (3, "set/more/deep/part-0"),
    ]


def test_a_pattern_is_the_files_that_fit(tmp_path):
    """A glob, relative or absolute, names files in order; a file that is called like one is itself."""
    for name in ("b1", "b2", "c1"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"name": name}))
    assert [row.file for row in rows("b*.jsonl", tmp_path)] == ["b1.jsonl", "b2.jsonl"]
    assert len(list(rows(tmp_path / "**" / "?1.jsonl", Path("/")))) == 2
    (tmp_path / "[b]1.jsonl").write_text('{"name": "itself"}')
    assert data(list(rows("[b]1.jsonl", tmp_path))) == [{"name": "itself"}]


@pytest.mark.parametrize("source", ["nothing*.jsonl", "empty"])
def test_a_source_that_names_no_file_is_an_error(tmp_path, source):
    """A pattern that fits nothing and a folder without rows are refused with what to do."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"names no file of rows: check the name"):
        next(rows(source, tmp_path))


FOREIGN = {
    "zip": b"PK\x03\x04" + bytes(40),
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "tar": b"name" + bytes(253) + b"ustar\x0000" + bytes(248),
    "SQLite": b"SQLite format 3\0" + bytes(40),
    "lz4": b"\x04\x22\x4d\x18" + bytes(9),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_not_read_is_named(tmp_path, name):
    """A known format that is not read is one sentence with the remedy, not a thousand bad rows; a packed one too."""
    for content in (FOREIGN[name], gzip.compress(FOREIGN[name])):
        got, error = until_error(tmp_path, content)
        assert got == []
        assert error.startswith("set.jsonl: is ")
        assert name in error
        assert ": " in error.removeprefix("set.jsonl: ")
