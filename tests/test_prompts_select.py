"""Sets: what a run asks does not hang on files and their order, and every row is accounted for."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyas.errors import StorageError, UsageError
from eyas.prompts import (
    BadRow,
    DatasetSource,
    interleave,
    load,
    order_key,
    ordered,
    prompt_id,
    quarantine_lines,
    write_quarantine,
)
from eyas.types import Prompt

DEMO = Path(__file__).parents[1] / "examples" / "demo"
DEMO_SETS = [DatasetSource(name, f"{name}.jsonl") for name in ("B3", "B4", "B5", "B6", "B7", "B8")]


def prompts(count: int, dataset: str = "B3") -> list[Prompt]:
    """Makes prompts with ids of their own."""
    messages = [({"role": "user", "content": f"question {number}"},) for number in range(count)]
    return [Prompt(prompt_id(message, ()), dataset, message) for message in messages]


def write(path: Path, rows: list[object]) -> None:
    """Writes JSON Lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_every_row_is_accounted_for(tmp_path):
    """Rows are prompts, duplicates or in quarantine, set by set, with the config's system turn on each prompt."""
    write(tmp_path / "a", [{"prompt": "x"}, {"question": "x"}, {"prompt": ""}, 7, {"prompt": "y"}])
    write(tmp_path / "b", [{"prompt": "x"}])
    loaded = load([DatasetSource("A", "a", "Be brief."), DatasetSource("B", "b")], tmp_path)
    first, second = loaded.sets["A"], loaded.sets["B"]
    assert (first.rows, len(first.prompts), first.duplicates, len(first.quarantined)) == (5, 2, 1, 2)
    assert (second.rows, len(second.prompts), second.duplicates, len(second.quarantined)) == (1, 1, 0, 0)
    assert [(bad.file, bad.line) for bad in loaded.quarantined] == [("a", 3), ("a", 4)]
    assert [(prompt.dataset, prompt.system) for prompt in loaded.prompts] == [
        ("A", "Be brief."),
        ("A", "Be brief."),
        ("B", None),
    ]


def test_demo_sets():
    """The demo's files hold what their table of sources says, with none in quarantine."""
    loaded = load(DEMO_SETS, DEMO)
    assert {name: (one.rows, len(one.prompts)) for name, one in loaded.sets.items()} == {
        "B3": (80, 80),
        "B4": (300, 300),
        "B5": (300, 300),
        "B6": (258, 258),
        "B7": (300, 300),
        "B8": (200, 199),
    }
    assert loaded.quarantined == ()
    assert len({prompt.id for prompt in loaded.prompts}) == 1437
    assert all(prompt.tools for prompt in loaded.sets["B6"].prompts)
    assert all(prompt.turns for prompt in loaded.sets["B3"].prompts)


@pytest.mark.parametrize("backwards", [False, True])
def test_duplicates_with_other_turns_do_not_hang_on_row_order(tmp_path, backwards):
    """Of rows that begin alike the longest talk stays, whichever row comes first."""
    rows: list[object] = [
        {"turns": ["x", "z"]},
        {"turns": ["x", "a", "b"]},
        {"turns": ["x", "b", "a"]},
        {"turns": ["x"]},
    ]
    write(tmp_path / "a", rows[::-1] if backwards else rows)
    [prompt] = load([DatasetSource("A", "a")], tmp_path).prompts
    assert prompt.turns == ("b", "a")


def test_a_set_without_a_prompt_is_an_error(tmp_path):
    """A file whose rows are all bad is refused with the first reason: most likely it is the wrong file or column."""
    write(tmp_path / "a", [{"text": "x"}, {"text": "y"}])
    with pytest.raises(UsageError, match=r"a: none of its 2 rows is a prompt; row 1: no column holds a prompt"):
        load([DatasetSource("A", "a")], tmp_path)


def test_two_sets_of_one_name_are_an_error(tmp_path):
    """A name stands for one set: ids and quotas hang on it."""
    write(tmp_path / "a", [{"prompt": "x"}])
    with pytest.raises(UsageError, match="Two sets are named A"):
        load([DatasetSource("A", "a"), DatasetSource("A", "a")], tmp_path)


def test_a_broken_source_is_an_error(tmp_path):
    """A missing file stops the load before anything is asked."""
    with pytest.raises(UsageError, match=r"nowhere\.jsonl"):
        load([DatasetSource("A", "nowhere.jsonl")], tmp_path)


@settings(deadline=None)
@given(seed=st.integers(), shuffled=st.permutations(prompts(12)))
def test_order_hangs_on_seed_and_ids_only(seed, shuffled):
    """Any order of the rows gives the same order of asking, and no prompt is lost."""
    assert ordered(shuffled, seed) == ordered(prompts(12), seed)
    assert sorted(prompt.id for prompt in ordered(shuffled, seed)) == sorted(prompt.id for prompt in prompts(12))


@settings(deadline=None)
@given(seed=st.integers(), count=st.integers(0, 30), more=st.integers(0, 30))
def test_new_rows_leave_the_old_in_order(seed, count, more):
    """A larger file extends the order: the old prompts stay in their relative order."""
    old = ordered(prompts(count), seed)
    assert [prompt for prompt in ordered(prompts(count + more), seed) if prompt in old] == old


def test_seeds_give_other_orders():
    """Another seed is another sample, and neither is the file's order."""
    orders = [[prompt.id for prompt in ordered(prompts(50), seed)] for seed in (0, 1, -1, 10**80)]
    orders.append([prompt.id for prompt in prompts(50)])
    assert len({tuple(order) for order in orders}) == 5


def test_a_prefix_is_a_random_sample():
    """The first tenth of the order holds about a tenth of any part of the file."""
    chosen = {prompt.id for prompt in ordered(prompts(10_000), 7)[:1000]}
    parts = [sum(prompt.id in chosen for prompt in prompts(10_000)[at : at + 2000]) for at in range(0, 10_000, 2000)]
    assert all(150 < part < 250 for part in parts)


def test_order_key_is_fixed():
    """The key is a contract: a resumed run must ask in the order of the version that began it."""
    assert order_key(0, "0123456789abcdef").hex() == "036c9ddc8fae4aab3f62026fde6cfb66"


def test_interleave_mixes_the_sets():
    """All sets stand in one pool, mixed, and one set more leaves the others' order as it was."""
    one, two = prompts(200, "B3"), prompts(200, "B4")
    pool = interleave([*one, *two], 0)
    assert sorted(prompt.dataset for prompt in pool) == ["B3"] * 200 + ["B4"] * 200
    assert 70 < sum(prompt.dataset == "B3" for prompt in pool[:200]) < 130
    assert [prompt for prompt in pool if prompt.dataset == "B3"] == interleave(one, 0)
    assert [prompt.id for prompt in interleave(one, 0)] != [prompt.id for prompt in interleave(two, 0)]


BAD = [BadRow("a.jsonl", 3, "it is empty: fill it", 'x"\n\ufffd☃'), BadRow("b.jsonl", 1, "no: yes", "")]


def test_quarantine_lines_are_json_lines():
    """Each bad row is one line of JSON with file, line, reason and text."""
    lines = list(quarantine_lines(BAD))
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    assert [json.loads(line) for line in lines] == [
        {"file": bad.file, "line": bad.line, "reason": bad.reason, "text": bad.text} for bad in BAD
    ]


def test_quarantine_of_real_rows_can_be_written(tmp_path):
    """Bytes that are not text and rows that are no prompt are written without loss of the file."""
    (tmp_path / "a").write_bytes(b'{"prompt": "x"}\n\xff\xfe{\n{"prompt": "\\u2603' + b"y" * 9000 + b'", "tools": 5}\n')
    write_quarantine(tmp_path / "quarantine.jsonl", load([DatasetSource("A", "a")], tmp_path).quarantined)
    lines = [json.loads(line) for line in (tmp_path / "quarantine.jsonl").read_bytes().splitlines()]
    assert [line["line"] for line in lines] == [2, 3]
    assert all(len(line["text"]) <= 200 for line in lines)


def test_quarantine_replaces_the_former_file_whole(tmp_path):
    """A later load's file takes the former's place, an empty one too, and leaves nothing beside it."""
    path = tmp_path / "quarantine.jsonl"
    write_quarantine(path, BAD)
    assert path.read_bytes() == b"".join(quarantine_lines(BAD))
    write_quarantine(path, [])
    assert path.read_bytes() == b""
    assert list(tmp_path.iterdir()) == [path]


def test_quarantine_that_cannot_be_written_is_a_storage_error(tmp_path):
    """A folder that is not there is named with what to do."""
    with pytest.raises(StorageError, match="cannot be written"):
        write_quarantine(tmp_path / "gone" / "quarantine.jsonl", BAD)
