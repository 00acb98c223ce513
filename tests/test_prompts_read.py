"""Reading: any bytes in, rows and named bad rows out; only a broken file stops."""

import gzip
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eyas.prompts.source.opened as reading
from eyas.errors import UsageError
from eyas.prompts.read import MAX_DEPTH, TEXT_PREFIX, BadRow, Row, decode, rows
from tests.reading import read, until_error

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
ROWS = st.lists(st.dictionaries(st.text(), JSON, max_size=4), min_size=1, max_size=8)


@pytest.mark.parametrize("ending", ["", "\n", "\n\n  \r\n"])
def test_lines_keep_their_physical_numbers(tmp_path, ending):
    """Blank lines, CRLF and a missing last newline change no row and no line number."""
    got = read(tmp_path, ('{"a": 1}\r\n\n  \n{"a": 2}' + ending).encode())
    assert got == [Row({"a": 1}, "set.jsonl", 1), Row({"a": 2}, "set.jsonl", 4)]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", ["set.json", "set.jsonl", "set.gz", "set"])
def test_array_is_told_from_its_content(tmp_path, indent, name):
    """An array of objects is read whatever its file is called; the line is the element's number."""
    content = json.dumps([{"a": 1}, {"a": [{"b": "],{"}, 2]}], indent=indent).encode()
    assert read(tmp_path, content, name) == [Row({"a": 1}, name, 1), Row({"a": [{"b": "],{"}, 2]}, name, 2)]


def test_json_suffix_may_hold_lines(tmp_path):
    """A .json file of one object a line, as BFCL's, is read by line."""
    assert read(tmp_path, b'{"a": 1}\n{"a": 2}', "x.json") == [Row({"a": 1}, "x.json", 1), Row({"a": 2}, "x.json", 2)]


@pytest.mark.parametrize("content", [b'{"a": 1}\n', b'[{"a": 1}]'])
def test_byte_order_mark_is_no_text(tmp_path, content):
    """A UTF-8 byte order mark before lines or an array is passed over."""
    assert read(tmp_path, b"\xef\xbb\xbf" + content) == [Row({"a": 1}, "set.jsonl", 1)]


BAD = {
    "not JSON": b"nope",
    "cut": b'{"a": "b',
    "not an object": b"[1]",
    "a number": b"7",
    "null": b"null",
    "NaN": b'{"a": NaN}',
    "Infinity": b'{"a": -Infinity}',
    "overflow": b'{"a": 1e999}',
    "not UTF-8": b'{"a": "\xff"}',
    "encoded surrogate": b'{"a": "\xed\xa0\x80"}',
    "lone surrogate": b'{"a": "\\ud800"}',
    "lone surrogate in a name": b'{"\\udc00": 1}',
    "control character": b'{"a": "\x00"}',
    "two values": b'{"a": 1} {"a": 2}',
    "too deep": b'{"a": ' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}",
    "far too deep": b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "huge number": b'{"a": ' + b"1" * 10_000 + b"}",
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_bad_line_is_named_and_passed_over(tmp_path, bad, place):
    """Each kind of bad line, first, amid or last, becomes a BadRow with its line and a remedy, and the others stand."""
    lines = [b'{"a": 1}', b'{"a": 2}']
    lines.insert(place, bad)
    got = read(tmp_path, b"\n".join(lines))
    assert [row.line for row in got] == [1, 2, 3]
    assert [row.data["a"] for row in got if isinstance(row, Row)] == [1, 2]
    named = got[place]
    assert isinstance(named, BadRow)
    assert named.file == "set.jsonl"
    assert ": " in named.reason
    assert len(named.text) <= TEXT_PREFIX
    assert bad.decode(errors="replace").startswith(named.text)


@pytest.mark.parametrize("bad", [bad for name, bad in BAD.items() if name not in {"cut", "two values"}])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_bad_element_spoils_only_itself(tmp_path, bad, place):
    """A bad element of an array becomes a BadRow; the elements around it stand."""
    parts = [b'{"a": 1}', b'{"a": 2}']
    parts.insert(place, bad)
    got = read(tmp_path, b"[" + b",\n".join(parts) + b"]")
    assert [row.line for row in got] == [1, 2, 3]
    assert [row.data["a"] for row in got if isinstance(row, Row)] == [1, 2]


def test_depth_at_the_limit_is_read(tmp_path):
    """A row of exactly MAX_DEPTH levels is good."""
    [row] = read(tmp_path, b'{"a": ' + b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1) + b"}")
    assert isinstance(row, Row)


def test_gzip_members_are_one_file(tmp_path):
    """Several gzip members, cut anywhere, read as one file, by content and not by suffix."""
    content = b'{"a": 1}\n{"a": 2}\n{"a": 3}'
    packed = b"".join(gzip.compress(part) for part in (content[:5], b"", content[5:12], content[12:]))
    assert [row.data for row in read(tmp_path, packed, "x.json") if isinstance(row, Row)] == [
        {"a": 1},
        {"a": 2},
        {"a": 3},
    ]


def test_gzip_array_opening_in_a_member_of_its_own(tmp_path):
    """The format is told from enough of the content even if the first gzip member holds one byte."""
    packed = b"".join(gzip.compress(part) for part in (b"[", b'\n{"a": 1},', b'{"a": 2}]\n'))
    assert [row.line for row in read(tmp_path, packed) if isinstance(row, Row)] == [1, 2]


@pytest.mark.parametrize("form", ["lines", "array"])
@pytest.mark.parametrize("count", [3, 20_000])
def test_truncated_gzip_is_an_error_after_what_was_read(tmp_path, form, count):
    """Whole rows before the break are given as they were, and then an error names the file."""
    noise = random.Random(0)
    data = [{"n": n, "x": f"{noise.getrandbits(64):x}"} for n in range(count)]
    texts = [json.dumps(row) for row in data]
    content = "\n".join(texts) if form == "lines" else "[" + ",".join(texts) + "]"
    packed = gzip.compress(content.encode())
    got, error = until_error(tmp_path, packed[: len(packed) * 3 // 4])
    assert "set.jsonl" in error
    assert "gzip" in error
    assert [row.data for row in got if isinstance(row, Row)] == data[: len(got)]
    assert len(got) >= count // 2


def test_damaged_gzip_is_an_error(tmp_path):
    """Flipped bytes and garbage after the last member are named, not read past in silence."""
    packed = gzip.compress(b'{"a": 1}\n' * 50)
    for broken in (packed[:-6] + b"\x00\x01" + packed[-4:], packed + b"garbage", packed[:9]):
        assert "gzip" in until_error(tmp_path, broken)[1]


@pytest.mark.parametrize("tail", ["", ",", ', {"a": "x', ', {"a": [1'])
def test_array_that_breaks_off_is_an_error(tmp_path, tail):
    """An array without its end gives its whole elements and then an error: no silent loss."""
    got, error = until_error(tmp_path, ('[{"a": 1}, {"a": 2}' + tail).encode())
    assert [row.line for row in got if isinstance(row, Row)] == [1, 2][: len(got)]
    assert len(got) >= 1
    assert "breaks off" in error


def test_array_with_more_behind_it_is_an_error(tmp_path):
    """What stands behind the array's end is never dropped in silence."""
    for more in (b'{"a": 2}', b"[]", b"x"):
        got, error = until_error(tmp_path, b'[{"a": 1},\n{"a": 2}]\n' + more)
        assert len(got) == 2
        assert "after the end" in error


@pytest.mark.parametrize("content", [b"", b"\n \n", b"[]", b"[\n]\n", b"\xef\xbb\xbf", gzip.compress(b"", mtime=0)])
def test_empty_source_is_an_error(tmp_path, content):
    """A source without rows is refused with what to do."""
    got, error = until_error(tmp_path, content)
    assert got == []
    assert "set.jsonl: holds no rows: write" in error


def test_lines_may_begin_with_a_bracket(tmp_path):
    """A log line or a list at the top of JSON Lines is one bad row, not the start of an array."""
    for first in (b"[INFO] start", b'[{"a": 0}]', b"[]"):
        bad, good = read(tmp_path, first + b'\n{"a": 1}\n')
        assert isinstance(bad, BadRow)
        assert good == Row({"a": 1}, "set.jsonl", 2)


@pytest.mark.parametrize("name", ["missing.jsonl", "nul\0.jsonl", "a/b.jsonl"])
def test_unreadable_source_is_an_error(tmp_path, name):
    """A missing file and an impossible name are refused with the path and what to do."""
    (tmp_path / "a").write_text("a file where a folder should be")
    with pytest.raises(UsageError, match="name a file, a folder or a pattern") as caught:
        next(rows(name, tmp_path))
    assert name in str(caught.value)


def test_absolute_and_relative_paths(tmp_path):
    """A relative source starts from the base; an absolute one does not; rows carry the name as given."""
    (tmp_path / "in").mkdir()
    file = tmp_path / "in" / "x.jsonl"
    file.write_text("{}")
    assert [row.file for row in rows("in/x.jsonl", tmp_path)] == ["in/x.jsonl"]
    assert [row.file for row in rows(file, tmp_path / "elsewhere")] == [str(file)]


def test_reading_is_streamed(tmp_path):
    """The first row is there before a break far behind it is met."""
    (tmp_path / "x").write_bytes(gzip.compress(b'{"a": 1}\n' * 1_000_000)[:-20])
    assert next(rows("x", tmp_path)) == Row({"a": 1}, "x", 1)


@settings(deadline=None)
@given(
    data=ROWS, ascii_only=st.booleans(), indent=st.sampled_from([None, 1]), size=st.integers(1, 7), form=st.booleans()
)
def test_any_rows_come_back(tmp_path_factory, data, ascii_only, indent, size, form):
    """Whatever JSON allows comes back equal from lines and from an array, at any size of the chunks read."""
    folder = tmp_path_factory.mktemp("any")
    if form:
        content = json.dumps(data, ensure_ascii=ascii_only, indent=indent)
    else:
        content = "\n".join(json.dumps(row, ensure_ascii=ascii_only) for row in data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "CHUNK", size)
        got = read(folder, content.encode())
    assert got == [Row(row, "set.jsonl", number) for number, row in enumerate(data, 1)]


@settings(deadline=None)
@given(content=st.binary(max_size=200) | st.text('[]{},:"\\ \n1a', max_size=60).map(str.encode))
def test_any_bytes_give_rows_or_a_clear_error(tmp_path_factory, content):
    """No bytes bring anything but rows, bad rows and a UsageError, and good rows encode again."""
    folder = tmp_path_factory.mktemp("any")
    try:
        got = read(folder, content)
    except UsageError as error:
        got, said = [], str(error)
    else:
        said = ""
    assert got or "set.jsonl" in said
    for row in got:
        json.dumps(row.data if isinstance(row, Row) else row.text, allow_nan=False, ensure_ascii=False).encode()


def test_decode_names_what_is_wrong():
    """The strict decoder, which tools given as text go through too, raises ValueError only."""
    assert decode("[1]") == [1]
    for bad in BAD.values():
        if bad not in {b"[1]", b"7", b"null"}:
            with pytest.raises(ValueError, match=r"[a-z]"):
                decode(bad)
