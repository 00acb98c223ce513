"""Draft vocabularies: the trainers' algorithm bit for bit, coverage, and files that are the same for the same counts."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyas.errors import UsageError
from eyas.exporters.draft_vocab import mapping, write

SIZE = 40


def _counts(**datasets: dict[int, int]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, numbers in datasets.items():
        found[name] = np.zeros(SIZE, np.int64)
        for number, count in numbers.items():
            found[name][number] = count
    return found


def _oracle(frequencies: dict[int, int], size: int, vocab_size: int) -> tuple[list[int], list[bool]]:
    """What speculators does, said once more: sort by falling count and rising id; fill up with the lowest free ids."""
    chosen = sorted(frequencies, key=lambda number: (-frequencies[number], number))[:size]
    lowest = (number for number in range(vocab_size) if number not in frequencies)
    while len(chosen) < size:
        chosen.append(next(lowest))
    chosen.sort()
    return [number - place for place, number in enumerate(chosen)], [number in chosen for number in range(vocab_size)]


@given(st.dictionaries(st.integers(0, SIZE - 1), st.integers(1, 4)), st.integers(1, SIZE))
def test_maps_are_those_of_the_trainers(frequencies: dict[int, int], size: int) -> None:
    """d2t and t2d equal the oracle's for any counts, many ties and unused ids among them."""
    counts = _counts(all=frequencies)["all"]
    d2t, t2d = mapping(np.argsort(-counts, kind="stable"), size)
    assert (d2t.tolist(), t2d.tolist()) == _oracle(frequencies, size, SIZE)
    assert (d2t.dtype, t2d.dtype) == (np.int64, np.bool_)
    # What SpecForge checks before it trains (validate_vocab_mapping_consistency).
    assert np.flatnonzero(t2d).tolist() == (d2t + np.arange(size)).tolist()


def test_files_hold_what_the_manifest_says(tmp_path: Path) -> None:
    """Names, types, sizes and sha256; counts of all datasets are summed; loading needs no pickle."""
    counts = _counts(B3={5: 3, 39: 1}, B4={5: 1, 7: 2})
    told = write(tmp_path, counts, [4, 2, 4], SIZE)
    assert [file["name"] for file in told["files"]] == [
        "token_freq.npy",
        "d2t-2.npy",
        "t2d-2.npy",
        "d2t-4.npy",
        "t2d-4.npy",
    ]
    for file in told["files"]:
        data = (tmp_path / file["name"]).read_bytes()
        assert (file["bytes"], file["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
    frequencies = np.load(tmp_path / "token_freq.npy", allow_pickle=False)
    assert frequencies.tolist() == (counts["B3"] + counts["B4"]).tolist()
    assert np.load(tmp_path / "d2t-2.npy").tolist() == [5, 6]
    assert np.load(tmp_path / "d2t-4.npy").tolist() == [0, 4, 5, 36]
    assert (told["sizes"], told["filled"], told["distinct"], told["supervised_tokens"]) == (
        [2, 4],
        {"2": 0, "4": 1},
        3,
        7,
    )


def test_coverage_is_by_dataset_under_one_choice(tmp_path: Path) -> None:
    """The ids are chosen over all datasets; each dataset's share is of its own tokens. Empty ones are left out."""
    told = write(tmp_path, _counts(B3={5: 3, 39: 1}, B4={5: 1, 7: 2}, B5={}), [1, 2], SIZE)
    assert told["coverage"] == {
        "all": {"1": 0.571429, "2": 0.857143},
        "datasets": {"B3": {"1": 0.75, "2": 0.75}, "B4": {"1": 0.333333, "2": 1.0}},
    }


def test_the_usual_sizes_are_always_told(tmp_path: Path) -> None:
    """8k to 64k stand in the coverage without a map, as far as the vocabulary goes."""
    counts = np.zeros(40_000, np.int64)
    counts[:20_000] = 1
    told = write(tmp_path, {"B3": counts}, [], 40_000)
    assert told["coverage"]["all"] == {"8000": 0.4, "16000": 0.8, "32000": 1.0}
    assert [file["name"] for file in told["files"]] == ["token_freq.npy"]


def test_the_same_counts_give_the_same_bytes(tmp_path: Path) -> None:
    """Neither the order of datasets nor of sizes changes a file."""
    counts = _counts(B3={5: 3}, B4={6: 3})
    made: list[dict[str, Any]] = []
    for name, given_counts, sizes in (("a", counts, [2, 9]), ("b", dict(reversed(counts.items())), [9, 2])):
        (tmp_path / name).mkdir()
        made.append(write(tmp_path / name, given_counts, sizes, SIZE))
    assert made[0] == made[1]
    assert list(made[0]["coverage"]["datasets"]) == list(made[1]["coverage"]["datasets"]) == ["B3", "B4"]


def test_nothing_supervised_is_a_vocabulary_of_the_lowest_ids(tmp_path: Path) -> None:
    """An export without rows still gives valid maps, and no coverage."""
    told = write(tmp_path, {}, [3], SIZE)
    assert np.load(tmp_path / "d2t-3.npy").tolist() == [0, 0, 0]
    assert (told["coverage"], told["filled"]) == ({"all": {}, "datasets": {}}, {"3": 3})


@pytest.mark.parametrize("sizes", [[0], [SIZE + 1], [4, -1]])
def test_sizes_that_cannot_be_are_refused(sizes: list[int], tmp_path: Path) -> None:
    """A size below 1 or above the vocabulary is an error of use, and no file is written."""
    with pytest.raises(UsageError, match="1 to 40 ids"):
        write(tmp_path, _counts(B3={1: 1}), sizes, SIZE)
    assert not list(tmp_path.iterdir())


def test_counts_of_another_vocabulary_are_refused(tmp_path: Path) -> None:
    """Arrays must have one number for each id."""
    with pytest.raises(ValueError, match="one number for each id"):
        write(tmp_path, {"B3": np.zeros(SIZE + 1, np.int64)}, [2], SIZE)
