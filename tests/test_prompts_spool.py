"""Values on disk: they come back as they went in, whatever their size and number, and the disk's end is told."""

import gc
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyas.errors import StorageError
from eyas.prompts import spool
from eyas.prompts.select import Chained
from eyas.prompts.spool import Spool
from eyas.types import Prompt, Source

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=50)


class Small(msgspec.Struct, frozen=True):
    """A value."""

    text: str
    number: int


def open_files() -> int:
    """Open files of this process; those that others have done with are closed first."""
    gc.collect()
    return sum(1 for _ in Path("/dev/fd").iterdir())


@settings(deadline=None)
@given(texts=st.lists(TEXT, max_size=30), block=st.sampled_from([1, 40, 1 << 20]), dice=st.randoms())
def test_values_come_back_as_they_went_in(texts, block, dice):
    """In any order of asking and wherever memory ends and the file begins; slices and negative numbers too."""
    values = [Small(text, at) for at, text in enumerate(texts)]
    found = Spool(Small)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spool, "_BLOCK", block)
        for value in values:
            found.add(value)
    numbers = list(range(-len(values), len(values)))
    dice.shuffle(numbers)
    assert [found[number] for number in numbers] == [values[number] for number in numbers]
    assert (list(found), found[1:4], found[::-2]) == (values, values[1:4], values[::-2])
    for number in (len(values), -len(values) - 1):
        with pytest.raises(IndexError):
            found[number]


def test_a_prompt_comes_back_whole(tmp_path):
    """Tools, history, integers beyond 64 bits and every character of Unicode are kept."""
    tools = ({"type": "function", "function": {"name": "f", "parameters": {"maximum": 10**30, "minimum": -0.5}}},)
    history = ({"role": "user", "content": "\u2028\x00é🙂"}, {"role": "assistant", "content": None, "tool_calls": []})
    prompt = Prompt("0" * 16, "A", history, tools, ("then", "and"), "s", Source("a b.jsonl", 7))
    found = Spool(Prompt, tmp_path)
    found.add(prompt)
    assert found[0] == prompt


def test_a_value_that_json_cannot_hold_adds_nothing():
    """The spool goes on after it as if it had not come."""
    found = Spool(Small)
    found.add(Small("a", 1))
    with pytest.raises(ValueError, match="surrogates"):
        found.add(Small("\ud800", 2))
    found.add(Small("b", 3))
    assert list(found) == [Small("a", 1), Small("b", 3)]


def test_the_file_has_no_name_and_ends_with_the_spool(tmp_path, monkeypatch):
    """Nothing lies in the folder while it is used, and nothing stays open after."""
    monkeypatch.setattr(spool, "_BLOCK", 10)
    before = open_files()
    found = Spool(Small, tmp_path)
    for number in range(100):
        found.add(Small("x", number))
    assert (open_files(), list(tmp_path.iterdir())) == (before + 1, [])
    assert found[50] == Small("x", 50)
    del found
    assert open_files() == before


def test_a_small_spool_makes_no_file():
    """Sets of a few rows leave the disk alone."""
    before = open_files()
    found = Spool(Small, Path("/nowhere"))
    found.add(Small("x", 1))
    assert (list(found), open_files()) == ([Small("x", 1)], before)


def test_a_disk_that_takes_no_more_is_a_storage_error(monkeypatch):
    """The folder is named, and the variable that names another one."""
    monkeypatch.setattr(spool, "_BLOCK", 1)
    with pytest.raises(StorageError, match=r"/nowhere: prompts cannot be kept .*TMPDIR"):
        Spool(Small, Path("/nowhere")).add(Small("x", 1))


@given(parts=st.lists(st.lists(st.integers(), max_size=4), max_size=6))
def test_chained_sequences_are_one(parts):
    """All values of all parts in order, by number too."""
    whole = [value for part in parts for value in part]
    found = Chained(parts)
    assert list(found) == whole
    assert [found[number] for number in range(len(found))] == whole
