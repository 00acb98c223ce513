"""Near duplicates and benchmarks: what goes, what stays, and that files and their order do not decide it."""

import json
import random
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyas.errors import UsageError
from eyas.prompts import order_key
from eyas.prompts.near import Sketches, firsts, jaccard, shape
from eyas.prompts.words import gram_set, grams, words
from tests import promptkit as kit

WORDS = (
    "river",
    "stone",
    "lamp",
    "green",
    "seven",
    "walk",
    "under",
    "paper",
    "cloud",
    "honest",
    "train",
    "salt",
    "echo",
)


def passage(number, size=40):
    """Words in an order of their own."""
    return random.Random(number).choices(WORDS, k=size)


def varied(text, *places):
    """The text with other words at those places."""
    return " ".join("changed" if at in places else word for at, word in enumerate(text))


def test_near_duplicates_keep_the_first_in_the_order(tmp_path):
    """Of prompts that share four fifths of their word triples one stays: the first in the order of the seed."""
    rows = [{"prompt": text} for n in range(20) for text in (" ".join(passage(n)), varied(passage(n), 39))]
    one = kit.loaded(tmp_path, rows, near_duplicates=0.8)
    every = kit.loaded(tmp_path, rows)
    assert (len(one.prompts), one.removed) == (20, {"near_duplicates": 20})
    assert kit.adds_up(one)
    first = {}
    for prompt in every.prompts:
        first.setdefault(" ".join(prompt.messages[0]["content"].split()[:30]), prompt.id)
    assert list(one.ids) == list(first.values())
    random.Random(0).shuffle(rows)
    assert list(kit.loaded(tmp_path, rows, near_duplicates=0.8).ids) == list(one.ids)


def test_less_alike_ones_stay(tmp_path):
    """A changed word in the middle of forty spoils three triples of 38: 0.85 finds it, 0.95 does not."""
    rows = [{"prompt": " ".join(passage(1))}, {"prompt": varied(passage(1), 20)}]
    assert len(kit.loaded(tmp_path, rows, near_duplicates=0.85).prompts) == 1
    assert len(kit.loaded(tmp_path, rows, near_duplicates=0.95).prompts) == 2


def test_one_is_the_same_words(tmp_path, monkeypatch):
    """At 1 case, spaces and punctuation do not count, order and turns do; nothing has to be installed."""
    monkeypatch.setitem(sys.modules, "rensa", None)
    talks = [["What is it?"], ["what  is it"], ["is what it"], ["What is", "it?"], ["???"], ["!"]]
    one = kit.loaded(tmp_path, [{"turns": talk} for talk in talks], near_duplicates=1)
    assert one.removed == {"near_duplicates": 1}


@pytest.mark.parametrize("threshold", [0.8, 1])
def test_a_set_that_other_keys_empty_is_named(tmp_path, threshold):
    """Nothing is left to compare, and the message says which key took it."""
    with pytest.raises(UsageError, match=r"no prompt is left of its 1 rows \(min_prompt_tokens 1\)"):
        kit.loaded(tmp_path, [{"prompt": "x"}], near_duplicates=threshold, min_prompt_tokens=9)


def test_below_one_it_says_what_to_install(tmp_path, monkeypatch):
    """The command, and the way without it."""
    monkeypatch.setitem(sys.modules, "rensa", None)
    with pytest.raises(UsageError, match=r"pip install 'eyas\[dedupe\]', or set 1"):
        kit.loaded(tmp_path, [{"prompt": "x"}], near_duplicates=0.8)


@settings(deadline=None, max_examples=30)
@given(seeds=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 39)), max_size=25), threshold=st.floats(0.3, 0.95))
def test_what_goes_is_alike_to_one_that_stays(seeds, threshold):
    """Never a false one; and of those left no two have the same words."""
    texts = [[varied(passage(seed), place)] for seed, place in seeds]
    sketches = Sketches(threshold)
    for text in texts:
        sketches.add(text)
    stay = firsts(sketches.keys(), threshold, lambda number: texts[number])
    found = [gram_set(text, 3) for text in texts]
    for number in np.flatnonzero(~stay):
        assert any(
            jaccard(found[number], found[other]) >= threshold for other in np.flatnonzero(stay) if other < number
        )
    assert len({texts[number][0] for number in np.flatnonzero(stay)}) == int(stay.sum())


@pytest.mark.parametrize("threshold", [0.05, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99])
def test_bands_find_what_they_must(threshold):
    """99 of 100 pairs at the threshold, with 128 permutations at most."""
    bands, rows = shape(threshold)
    assert bands * rows <= 128
    assert threshold < 0.1 or 1 - (1 - threshold**rows) ** bands >= 0.99


@given(text=st.text(max_size=60), size=st.integers(1, 14))
def test_grams_are_one_a_window(text, size):
    """As many as there are windows, one for a shorter text; spaces and punctuation around it change nothing."""
    parts = words(text)
    assert len(grams(parts, size)) == (min(1, len(parts)) if len(parts) < size else len(parts) - size + 1)
    assert np.array_equal(grams(words(f"  {text} !"), size), grams(parts, size))


def test_grams_are_fixed():
    """What stays of a set must be the same in every process and on every machine, or a resumed run would lose prompts."""
    assert words("Größe, 你好! ﬁne x_y") == ["grösse", "你", "好", "fine", "x", "y"]
    assert grams(["a", "b"], 2).tolist() == [8066264692019057651]


def bench(folder, *questions):
    """A benchmark's file."""
    kit.lines(folder / "bench.jsonl", [{"question": question} for question in questions])
    return {"decontaminate": ["bench.jsonl"]}


def test_a_shared_passage_is_found_wherever_it_stands(tmp_path):
    """Thirteen words in a row, in any user turn, whatever their case and punctuation; twelve are not enough."""
    text = passage(5)
    keys = bench(tmp_path, " ".join(text))
    twelve = ["other", *text[3:15], "words"]
    rows = [
        {"turns": ["Hello there.", "So: " + ", ".join(text[7:20]).upper() + "!"]},
        {"prompt": " ".join(twelve)},
        {"prompt": "plain"},
    ]
    one = kit.loaded(tmp_path, rows, **keys)
    assert sorted(kit.texts(one.prompts)) == sorted([" ".join(twelve), "plain"])
    assert one.removed == {"decontaminate": 1}
    [gone] = one.contaminated
    assert (gone.file, gone.line, gone.benchmark) == ("a", 1, "bench.jsonl")
    assert gone.shared == " ".join(text[7:20])
    assert gone.id.startswith("A/")


def test_a_short_question_must_be_the_same_as_a_whole(tmp_path):
    """Below thirteen words the whole text decides, so that a greeting in a benchmark does not empty a set."""
    keys = bench(tmp_path, "Hi there!")
    rows = [{"prompt": "hi, THERE"}, {"prompt": "hi there my friend"}, {"prompt": "hi"}, {"prompt": "???"}]
    one = kit.loaded(tmp_path, rows, **keys)
    assert sorted(kit.texts(one.prompts)) == ["???", "hi", "hi there my friend"]


def test_every_turn_of_a_benchmark_counts_and_every_file(tmp_path):
    """Later turns of its talks too; the file that has the passage is named."""
    kit.lines(tmp_path / "one", [{"turns": ["first", " ".join(passage(1))]}])
    kit.lines(tmp_path / "two", [{"prompt": " ".join(passage(2))}])
    rows = [{"prompt": " ".join(passage(number))} for number in range(4)]
    one = kit.loaded(tmp_path, rows, decontaminate=["one", "two"])
    assert sorted((gone.line, gone.benchmark) for gone in one.contaminated) == [(2, "one"), (3, "two")]


@pytest.mark.parametrize("text", [json.dumps({"score": 1}), json.dumps({"prompt": ""})])
def test_a_benchmark_without_a_prompt_is_an_error(tmp_path, text):
    """A wrong file must not pass for a clean set."""
    (tmp_path / "bench.jsonl").write_text(text)
    with pytest.raises(UsageError, match=r"decontaminate: bench\.jsonl holds no prompt"):
        kit.loaded(tmp_path, [{"prompt": "x"}], decontaminate=["bench.jsonl"])


def test_the_order_of_what_stays_is_that_of_the_seed(tmp_path):
    """Filters take out, and move nothing."""
    rows = [{"prompt": " ".join(passage(number, 14))} for number in range(30)]
    one = kit.loaded(tmp_path, rows, near_duplicates=0.9, **bench(tmp_path, rows[4]["prompt"]))
    assert list(one.ids) == sorted(one.ids, key=lambda name: order_key(0, name))
    assert len(one.ids) == 29
