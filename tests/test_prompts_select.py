"""Sets: what a run asks does not hang on files and their order, and every row is accounted for."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyas.config import Dataset
from eyas.errors import StorageError, UsageError
from eyas.prompts import (
    BadRow,
    Counts,
    Rejected,
    interleave,
    json_lines,
    load,
    order,
    order_key,
    prompt_id,
    write_quarantine,
)
from eyas.prompts.order import order_of
from tests import promptkit as kit

DEMO = Path(__file__).parents[1] / "examples" / "demo"
DEMO_SETS = [Dataset(name=name, source=f"{name}.jsonl") for name in ("B3", "B4", "B5", "B6", "B7", "B8")]
IMAGE = {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}
TALKS = st.lists(st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=3), min_size=1, max_size=25)


def ids(count: int) -> list[str]:
    """Ids of prompts."""
    return [prompt_id([{"role": "user", "content": f"question {number}"}], ()) for number in range(count)]


def ordered(seed: int, names: list[str]) -> list[str]:
    """The names in the order of the seed."""
    return [names[place] for place in order_of(seed, names)]


def test_every_row_is_accounted_for(tmp_path):
    """Rows are prompts, duplicates, rows with images or in quarantine, with the config's system turn on each prompt."""
    rows = [{"prompt": f"x{number}"} for number in range(10)]
    kit.lines(tmp_path / "b", [{"prompt": "x0"}])
    kit.lines(tmp_path / "a", [*rows, {"prompt": "x3"}, {"prompt": ""}, 7, IMAGE, {"prompt": "y"}])
    first, second = load(
        [Dataset(name="A", source="a", system="Be brief."), Dataset(name="B", source="b")], tmp_path, 0, kit.by_words
    ).sets.values()
    assert (first.rows, len(first.prompts), first.duplicates, first.images) == (15, 11, 1, 1)
    assert [(bad.file, bad.line) for bad in first.quarantined] == [("a", 12), ("a", 13)]
    assert (second.rows, len(second.prompts), second.duplicates, len(second.quarantined)) == (1, 1, 0, 0)
    assert {prompt.system for prompt in first.prompts} == {"Be brief."}
    assert [prompt.system for prompt in second.prompts] == [None]
    assert kit.adds_up(first)
    assert kit.adds_up(second)


def test_demo_sets():
    """The demo's files hold what their table of sources says, with none in quarantine."""
    found = load(DEMO_SETS, DEMO, 0, kit.by_words)
    assert {name: (one.rows, len(one.prompts)) for name, one in found.sets.items()} == {
        "B3": (80, 80),
        "B4": (300, 300),
        "B5": (300, 300),
        "B6": (258, 258),
        "B7": (300, 300),
        "B8": (200, 199),
    }
    assert not found.quarantined
    assert found.duplicates == 1
    pool = interleave(found.sets.values(), 0)
    assert len({(prompt.dataset, prompt.id) for prompt in pool}) == len(pool) == 1437
    assert all(prompt.tools for prompt in found.sets["B6"].prompts)
    assert all(prompt.turns for prompt in found.sets["B3"].prompts)
    assert all("certain" in one.guess for one in found.sets.values())


@settings(deadline=None)
@given(talks=TALKS, seed=st.integers(0, 3), dice=st.randoms(use_true_random=False))
def test_files_and_their_order_change_nothing(tmp_path_factory, talks, seed, dice):
    """Shuffled rows, in another format, give the same prompts in the same order; the longest of equal beginnings stays."""
    folder = tmp_path_factory.mktemp("set")
    rows = [{"turns": talk} for talk in talks]
    first = kit.loaded(folder, rows, seed)
    assert kit.adds_up(first)
    shuffled = rows.copy()
    dice.shuffle(shuffled)
    for write in kit.WRITERS:
        again = kit.loaded(folder, shuffled, seed, write)
        assert [(p.id, p.messages, p.turns) for p in again.prompts] == [
            (p.id, p.messages, p.turns) for p in first.prompts
        ]
        assert (list(again.ids), again.tokens, again.duplicates) == (list(first.ids), first.tokens, first.duplicates)
    longest = {talk[0]: max((len(t), t) for t in talks if t[0] == talk[0])[1][1:] for talk in talks}
    assert {p.messages[0]["content"]: list(p.turns) for p in first.prompts} == longest


@settings(deadline=None)
@given(kinds=st.lists(st.sampled_from(["good", "twin", "image", "short", "out"]), max_size=40), bad=st.integers(0, 3))
def test_the_row_equation_always_holds(tmp_path_factory, kinds, bad):
    """All rows = prompts + duplicates + quarantined + images + removed, whatever stands in the file."""
    made = {
        "twin": {"prompt": "the same once more"},
        "image": IMAGE,
        "short": {"prompt": "one"},
        "out": {"prompt": "left out by the user", "out": 1},
    }
    folder = tmp_path_factory.mktemp("set")
    (folder / "keep.py").write_text("def keep(row): return 'out' not in row\n")
    rows: list[object] = [made.get(kind, {"prompt": f"question number {at}"}) for at, kind in enumerate(kinds)]
    rows += [{"prompt": f"plain question {at}"} for at in range(4 * bad + 1)]
    rows[len(rows) // 2 : len(rows) // 2] = [{"prompt": ""}] * bad
    one = kit.loaded(folder, rows, filter="keep.py:keep", min_prompt_tokens=2)
    assert kit.adds_up(one)
    assert (one.rows, len(one.quarantined), one.images) == (len(rows), bad, kinds.count("image"))
    assert one.duplicates == max(0, kinds.count("twin") - 1) + max(0, kinds.count("short") - 1)
    assert one.removed.get("filter", 0) == kinds.count("out")


def test_two_sets_of_one_name_are_an_error(tmp_path):
    """A name stands for one set: ids and quotas hang on it."""
    kit.lines(tmp_path / "a", [{"prompt": "x"}])
    with pytest.raises(UsageError, match="two sets are named A"):
        load([Dataset(name="A", source="a"), Dataset(name="A", source="a")], tmp_path, 0, kit.by_words)


def test_a_broken_source_is_an_error(tmp_path):
    """A missing file stops the load before anything is asked."""
    with pytest.raises(UsageError, match=r"nowhere\.jsonl"):
        load([Dataset(name="A", source="nowhere.jsonl")], tmp_path, 0, kit.by_words)


def test_a_map_that_fits_no_row_names_its_source(tmp_path):
    """Of many sets the one is named whose map is wrong."""
    with pytest.raises(UsageError, match=r"^a: map: prompt = 'qestion' is no column .*'prompt'.*: name one of these$"):
        kit.loaded(tmp_path, [{"prompt": "Why?"}], map={"prompt": "qestion"})


def test_a_mostly_bad_source_is_refused(tmp_path):
    """Above a fifth the load stops with the commonest reason, its first row, the remedies and the first rows; a fifth passes."""
    good = [{"prompt": f"x{number}"} for number in range(8)]
    assert len(kit.loaded(tmp_path, [*good, {"prompt": ""}, 7]).quarantined) == 2
    with pytest.raises(Rejected) as caught:
        kit.loaded(tmp_path, [*good, 7, {"prompt": ""}, {"prompt": ""}])
    says, *examples = str(caught.value).splitlines()
    assert says == (
        "a: 3 of 11 rows cannot be asked, more than 20%, so the run does not start. Most often (2 rows, line 10 of a for one): "
        "the column 'prompt' is empty: fill it or remove the row. Name the columns with `map`, leave such rows out with "
        "`filter`, or name another file. The first of them:"
    )
    assert examples == [
        "  line 9: 7",
        "    it is valid JSON but not an object: write one object with named columns a row",
        '  line 10: {"prompt":""}',
        '  line 11: {"prompt":""}',
    ]
    assert [row.line for row in caught.value.rows] == [9, 10, 11]


def test_a_prompt_that_cannot_be_counted_is_quarantined(tmp_path):
    """What the target's template cannot say stands in quarantine with file and line, and nowhere else."""

    def count(prompt):
        if "odd" in prompt.messages[0]["content"]:
            raise UsageError("the template takes no odd text: leave it out")
        return 7

    kit.lines(tmp_path / "a", [{"prompt": f"x{number}"} for number in range(5)] + [{"prompt": "odd"}])
    one = load([Dataset(name="A", source="a")], tmp_path, 0, count).sets["A"]
    assert list(one.quarantined) == [BadRow("a", 6, "the template takes no odd text: leave it out", "odd")]
    assert list(one.tokens) == [7] * 5
    assert kit.adds_up(one)


def test_a_set_of_which_nothing_is_left_is_an_error(tmp_path):
    """The keys that left its rows out are named with their figures."""
    with pytest.raises(UsageError, match=r"a: no prompt is left of its 3 rows \(with images 1, min_prompt_tokens 2\)"):
        kit.loaded(tmp_path, [{"prompt": "x"}, {"prompt": "y"}, IMAGE], min_prompt_tokens=9)


@settings(deadline=None)
@given(seed=st.integers(), shuffled=st.permutations(ids(12)))
def test_order_hangs_on_seed_and_ids_only(seed, shuffled):
    """Any order of the rows gives the same order of asking, which is that of the keys, and no prompt is lost."""
    assert ordered(seed, shuffled) == sorted(ids(12), key=lambda name: order_key(seed, name))


@settings(deadline=None)
@given(seed=st.integers(), count=st.integers(0, 30), more=st.integers(0, 30))
def test_new_rows_leave_the_old_in_order(seed, count, more):
    """A larger file extends the order: the old prompts stay in their relative order."""
    old = ordered(seed, ids(count))
    assert [name for name in ordered(seed, ids(count + more)) if name in old] == old


def test_seeds_give_other_orders():
    """Another seed is another sample, and neither is the file's order."""
    orders = [ordered(seed, ids(50)) for seed in (0, 1, -1, 10**80)]
    assert len({tuple(order) for order in [*orders, ids(50)]}) == 5


def test_a_prefix_is_a_random_sample():
    """The first tenth of the order holds about a tenth of any part of the file."""
    names = ids(10_000)
    chosen = set(ordered(7, names)[:1000])
    parts = [sum(name in chosen for name in names[at : at + 2000]) for at in range(0, 10_000, 2000)]
    assert all(150 < part < 250 for part in parts)


def test_equal_halves_of_keys_are_told_apart(monkeypatch):
    """Where the first halves of two keys are the same, the whole keys decide."""
    monkeypatch.setattr(order, "order_key", lambda seed, name: b"\0" * 7 + name.encode() * 9)
    assert order_of(0, ["b", "c", "a"]).tolist() == [2, 0, 1]
    monkeypatch.setattr(order, "order_key", lambda seed, name: b"\0" * 8 + name.encode() * 8)
    assert order_of(0, ["b", "c", "a"]).tolist() == [2, 0, 1]


def test_order_key_is_fixed():
    """The key is a contract: a resumed run must ask in the order of the version that began it."""
    assert order_key(0, "0123456789abcdef").hex() == "036c9ddc8fae4aab3f62026fde6cfb66"


def test_interleave_mixes_the_sets(tmp_path):
    """All sets stand in one pool in the order of their keys, and one set more leaves the others' order as it was."""
    for name in "ab":
        kit.lines(tmp_path / name, [{"prompt": f"question {number}"} for number in range(200)])
    sets = load([Dataset(name=n, source=n.lower()) for n in "AB"], tmp_path, 0, kit.by_words).sets
    pool = interleave(sets.values(), 0)
    assert list(pool) == sorted(pool, key=lambda prompt: order_key(0, f"{prompt.dataset}/{prompt.id}"))
    assert 70 < sum(prompt.dataset == "A" for prompt in pool[:200]) < 130
    assert [prompt for prompt in pool if prompt.dataset == "A"] == list(interleave([sets["A"]], 0))
    assert sorted(sets["A"].ids) == sorted(sets["B"].ids) != [prompt.id for prompt in pool if prompt.dataset == "A"]


def test_counts_are_those_of_the_prompts(tmp_path):
    """Each prompt of each set has its tokens by dataset and id; nothing else has."""
    for name in "ab":
        kit.lines(
            tmp_path / name, [{"prompt": "word " * size} for size in random.Random(name).sample(range(1, 99), 40)]
        )
    sets = load([Dataset(name=n, source=n.lower()) for n in "AB"], tmp_path, 0, kit.by_words).sets
    counts = Counts(sets.values())
    wanted = {(one.name, p.id): kit.by_words(p) for one in sets.values() for p in one.prompts}
    assert dict(counts) == wanted
    assert len(counts) == 80
    for key in (("C", "0" * 16), ("A", "0" * 16), ("A", "no id"), ("A", "f" * 40)):
        assert key not in counts


BAD = [BadRow("a.jsonl", 3, "it is empty: fill it", 'x"\n\ufffd☃'), BadRow("b.jsonl", 1, "no: yes", "")]


def test_quarantine_of_real_rows_can_be_written(tmp_path):
    """Bytes that are not text and rows that are no prompt are written without loss of the file."""
    good = b'{"prompt": "x"}\n' * 8
    (tmp_path / "a").write_bytes(good + b'\xff\xfe{\n{"prompt": "\\u2603' + b"y" * 9000 + b'", "tools": 5}\n')
    one = load([Dataset(name="A", source="a")], tmp_path, 0, kit.by_words).sets["A"]
    write_quarantine(tmp_path / "quarantine.jsonl", one.quarantined)
    found = [json.loads(line) for line in (tmp_path / "quarantine.jsonl").read_bytes().splitlines()]
    assert [line["line"] for line in found] == [9, 10]
    assert all(len(line["text"]) <= 200 for line in found)


def test_quarantine_replaces_the_former_file_whole(tmp_path):
    """A later load's file takes the former's place, an empty one too, and leaves nothing beside it."""
    path = tmp_path / "quarantine.jsonl"
    write_quarantine(path, BAD)
    assert path.read_bytes() == b"".join(json_lines(BAD))
    assert [json.loads(line)["reason"] for line in path.read_text().splitlines()] == [bad.reason for bad in BAD]
    write_quarantine(path, [])
    assert path.read_bytes() == b""
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_mode & 0o777 == 0o600


def test_quarantine_that_cannot_be_written_is_a_storage_error(tmp_path):
    """A folder that is not there is named with what to do."""
    with pytest.raises(StorageError, match="cannot be written"):
        write_quarantine(tmp_path / "gone" / "quarantine.jsonl", BAD)
