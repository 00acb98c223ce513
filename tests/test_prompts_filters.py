"""Filters of a set: the user's function, lengths in tokens, languages, and the pool of system prompts."""

import sys
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyas.config import System
from eyas.errors import UsageError
from eyas.prompts import language
from eyas.prompts.system import draw, system_of
from tests import promptkit as kit

ROWS = [{"prompt": f"question {number}", "score": number} for number in range(10)]


def keep(folder, body):
    """Write the user's file: the body of a function of the row."""
    (folder / "keep.py").write_text(f"def keep(row):\n    {body}\n")
    return {"filter": "keep.py:keep"}


def test_a_filter_leaves_out_keeps_and_replaces(tmp_path):
    """False and None leave a row out, True keeps it, a dict takes its place; the file is counted as it was."""
    body = "n = row['score']; return {0: False, 1: None, 2: True}.get(n, {'prompt': f'asked {n}'})"
    one = kit.loaded(tmp_path, ROWS, **keep(tmp_path, body))
    assert sorted(kit.texts(one.prompts)) == [*(f"asked {n}" for n in range(3, 10)), "question 2"]
    assert (one.rows, one.removed) == (10, {"filter": 2})
    assert sorted(prompt.source.line for prompt in one.prompts) == list(range(3, 11))


def test_a_filter_comes_before_the_columns_are_told(tmp_path):
    """A function may make a prompt of columns that nobody else would understand."""
    one = kit.loaded(tmp_path, [{"a": "x", "b": "y"}], **keep(tmp_path, "return {'prompt': row['a'] + row['b']}"))
    assert kit.texts(one.prompts) == ["xy"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("return row['none']", r"a, line 1: filter keep\.py:keep raised KeyError: 'none' \(keep\.py, line 2\): mend"),
        ("raise SystemExit(0)", r"a, line 1: filter keep\.py:keep raised SystemExit: 0 \(keep\.py, line 2\): mend"),
        ("return 1", r"a, line 1: filter keep\.py:keep gave 1: return True, False, None, or"),
        ("return {'prompt': print}", r"a, line 1: filter keep\.py:keep gave a row that is no JSON"),
        ("return {'prompt': '\\ud800'}", r"a, line 1: filter keep\.py:keep gave a row that is no JSON"),
    ],
)
def test_a_faulty_filter_is_named_with_the_row(tmp_path, body, says):
    """What it raised or gave, at which row, and what to do."""
    with pytest.raises(UsageError, match=says):
        kit.loaded(tmp_path, ROWS, **keep(tmp_path, body))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, r"filter: keep\.py cannot be read .* relative to"),
        ("def other(row): return True", r"filter: keep\.py has no function keep: define it"),
        ("raise SystemExit(0)", r"cannot be run: it raised SystemExit: 0 \(keep\.py, line 1\): mend it"),
        ("import nothing_of_that_name", r"cannot be run: it raised ModuleNotFoundError.*\(keep\.py, line 1\)"),
        ("def keep(row) return True", r"cannot be run: it raised SyntaxError"),
    ],
)
def test_a_file_without_a_filter_is_an_error(tmp_path, text, says):
    """Before a row is read."""
    if text is not None:
        (tmp_path / "keep.py").write_text(text)
    with pytest.raises(UsageError, match=says):
        kit.loaded(tmp_path, ROWS, filter="keep.py:keep")


def test_a_filter_leaves_nothing_beside_its_file(tmp_path):
    """The user's folder is not written to, and an edited file is read anew."""
    for answer, left in (("False", {"filter": 9}), ("True ", {})):
        body = f"return {answer} or row['score'] == 3"
        assert kit.loaded(tmp_path, ROWS, **keep(tmp_path, body)).removed == left
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "keep.py"]


def test_lengths_are_the_targets_tokens(tmp_path):
    """Both ends belong to what is kept, and each key counts what it leaves out."""
    rows = [{"prompt": "word " * size} for size in range(1, 11)]
    one = kit.loaded(tmp_path, rows, min_prompt_tokens=3, max_prompt_tokens=7)
    assert sorted(one.tokens) == [3, 4, 5, 6, 7]
    assert one.removed == {"min_prompt_tokens": 2, "max_prompt_tokens": 3}


TALK = {
    "en": "Please explain to me how a sailing boat can go against the wind.",
    "zh": "请给我解释一下帆船怎么能够逆风航行",
    "de": "Erkläre mir bitte, wie ein Segelboot gegen den Wind fahren kann.",
    "code": "```python\nfür = lambda größe: übergröße\n```",
    "short": "1 + 1 = ?",
}


def test_languages_that_are_not_named_are_left_out(tmp_path):
    """A prompt in another language goes; code and formulas, of which no language can be told, stay."""
    one = kit.loaded(tmp_path, [{"prompt": text} for text in TALK.values()], languages=["en", "zh"])
    assert sorted(kit.texts(one.prompts)) == sorted(text for name, text in TALK.items() if name != "de")
    assert one.removed == {"languages": 1}


def test_a_language_that_is_not_known_is_an_error(tmp_path):
    """The code that is meant is named."""
    with pytest.raises(UsageError, match=r"languages: 'English' is not known: did you mean en\? Use ISO 639 codes"):
        kit.loaded(tmp_path, ROWS, languages=["English"])


def test_without_its_extra_the_language_filter_says_what_to_install(tmp_path, monkeypatch):
    """The command that brings it."""
    language._model.cache_clear()
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    with pytest.raises(UsageError, match=r"pip install 'eyas\[languages\]'"):
        kit.loaded(tmp_path, ROWS, languages=["en"])


POOL = [("a", 3.0), ("b", 1.0), ("", 1.0)]


def test_a_pool_is_drawn_by_weight(tmp_path):
    """Three to one to one; an empty text is no system turn; a row's own stays; other rows and their order change nothing."""
    (tmp_path / "b.md").write_text("b\n")
    pool = [{"text": "a", "weight": 3}, {"file": "b.md"}, {"text": ""}]
    rows = [{"prompt": f"x{number}"} for number in range(1000)]
    one = kit.loaded(tmp_path, [*rows, {"prompt": "own", "system": "mine"}], system=pool)
    drawn = {prompt.messages[-1]["content"]: prompt.system for prompt in one.prompts}
    count = Counter(drawn.values())
    assert 540 < count["a"] < 660
    assert 150 < count["b"] < 250
    assert 150 < count[None] < 250
    assert drawn["own"] == "mine"
    again = kit.loaded(tmp_path, rows[500::-1], system=pool[::-1])
    assert all(drawn[prompt.messages[-1]["content"]] == prompt.system for prompt in again.prompts)
    other = kit.loaded(tmp_path, rows, seed=1, system=pool)
    assert {p.messages[-1]["content"]: p.system for p in other.prompts} != drawn


@given(seed=st.integers(0, 5), name=st.text("0123456789abcdef", min_size=16, max_size=16), weight=st.floats(0.01, 100))
def test_a_further_text_takes_from_the_others_only(seed, name, weight):
    """Where it is not drawn itself, the draw stays as it was."""
    assert draw([*POOL, ("new", weight)], seed, name) in ("new", draw(POOL, seed, name))


@settings(max_examples=20)
@given(name=st.text("0123456789abcdef", min_size=16, max_size=16))
def test_a_text_that_stands_twice_has_both_weights(name, tmp_path_factory):
    """Two entries of one text are one with the sum of their weights."""
    base = tmp_path_factory.getbasetemp()
    twice = system_of((System(text="a"), System(text="b"), System(text="a", weight=2)), base, 0)
    once = system_of((System(text="a", weight=3), System(text="b")), base, 0)
    assert twice
    assert once
    assert twice(name) == once(name)


@pytest.mark.parametrize(("text", "says"), [(None, "cannot be read"), ("\n", "is empty")])
def test_a_file_of_the_pool_that_cannot_be_used_is_an_error(tmp_path, text, says):
    """Its name and what is wrong with it."""
    if text is not None:
        (tmp_path / "agent.md").write_text(text)
    with pytest.raises(UsageError, match=rf"system: the file agent\.md {says}"):
        kit.loaded(tmp_path, ROWS, system=[{"file": "agent.md"}])
