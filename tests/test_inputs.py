"""What a session reads of its sources: refused ones, reports in the run directory, and what the user is told."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from eyas.config import RunConfig
from eyas.engine.inputs import Tokenizer, read_inputs, write_reports
from eyas.errors import UsageError
from eyas.report.loaded import sentences
from tests import promptkit as kit

TOKENIZER = Tokenizer(
    SimpleNamespace(),
    SimpleNamespace(count_prompt=lambda messages, tools, thinking: 7 + thinking, caveats=("one caveat",)),
)


def config(folder: Path, **keys):
    """A run of two sets, the second without thinking; the keys are the first set's."""
    return RunConfig.model_validate(
        {
            "run": {"dir": "run"},
            "target": {"model": "m"},
            "budget": {"usd": 1.0},
            "datasets": [
                {"name": "A", "source": "a", **keys},
                {"name": "B", "source": "b", "thinking": False},
            ],
            "base": folder,
        }
    )


@pytest.fixture
def folder(tmp_path):
    """Two sources: a good one, and one with a bad row and a duplicate in a dozen."""
    kit.lines(tmp_path / "a", [{"prompt": f"x{number}"} for number in range(10)] + [{"prompt": ""}, {"prompt": "x0"}])
    kit.lines(tmp_path / "b", [{"instruction": f"y{number}"} for number in range(5)])
    return tmp_path


def test_prompts_counts_and_what_was_left_out(folder):
    """All prompts in the run's order, each counted in its set's mode; the figures of all sets and of each."""
    inputs = read_inputs(config(folder), TOKENIZER)
    assert (len(inputs.prompts), len(inputs.quarantined), inputs.duplicates) == (15, 1, 1)
    assert {inputs.counts[p.dataset, p.id] for p in inputs.prompts if p.dataset == "A"} == {8}
    assert {inputs.counts[p.dataset, p.id] for p in inputs.prompts if p.dataset == "B"} == {7}
    assert inputs.caveats == ("one caveat",)
    assert [(name, one.rows) for name, one in inputs.sets.items()] == [("A", 12), ("B", 5)]


def test_a_larger_quota_extends_what_a_smaller_one_asks(folder):
    """Reading again gives the same order, so whoever takes more of it takes what was taken before first."""
    first, again = (read_inputs(config(folder), TOKENIZER).prompts for _ in range(2))
    assert [prompt.id for prompt in first[:6]] == [prompt.id for prompt in again[:9]][:6]
    other = read_inputs(config(folder, near_duplicates=1), TOKENIZER).prompts
    assert list(other) == list(first)


def test_a_refused_source_shows_its_rows_or_where_they_are(folder):
    """Without a run directory the first rows stand in the message; with one all of them are written there first."""
    kit.lines(folder / "b", [{"prompt": "y"}, *({"prompt": ""} for _ in range(5))])
    with pytest.raises(UsageError, match=r"b: 5 of 6 rows cannot be asked(.|\n)*\n  line 4: ") as caught:
        read_inputs(config(folder), TOKENIZER)
    assert str(caught.value).count("\n") == 3
    (folder / "run").mkdir()
    with pytest.raises(UsageError, match=r"All of them are in .*run/quarantine\.jsonl"):
        read_inputs(config(folder), TOKENIZER)
    rows = [json.loads(line) for line in (folder / "run" / "quarantine.jsonl").read_text().splitlines()]
    assert [row["line"] for row in rows] == [2, 3, 4, 5, 6]


def test_reports_in_the_run_directory(folder):
    """quarantine.jsonl always; contaminated.jsonl where something is, and no stale one stays."""
    kit.lines(folder / "bench", [{"prompt": "x3"}])
    run = folder / "run"
    run.mkdir()
    write_reports(run, read_inputs(config(folder), TOKENIZER))
    assert sorted(path.name for path in run.iterdir()) == ["quarantine.jsonl"]
    write_reports(run, read_inputs(config(folder, decontaminate=["bench"]), TOKENIZER))
    [row] = [json.loads(line) for line in (run / "contaminated.jsonl").read_text().splitlines()]
    assert (row["file"], row["line"], row["shared"], row["benchmark"]) == ("a", 4, "x3", "bench")
    write_reports(run, read_inputs(config(folder), TOKENIZER))
    assert (run / "contaminated.jsonl").read_text() == ""


def test_what_the_user_is_told(folder):
    """One line a set on its columns, and one more where rows are not asked, with each reason and its figure."""
    (folder / "keep.py").write_text("def keep(row): return row['prompt'] != 'x1'\n")
    said = list(sentences(read_inputs(config(folder, filter="keep.py:keep"), TOKENIZER).sets.values()))
    assert said[0].startswith("A: prompt = 'prompt'")
    assert said[1] == (
        "A: 9 prompts of 12 rows; left out: 1 duplicate, 1 by filter, 1 that cannot be asked (listed in quarantine.jsonl of "
        "the run directory; the first, line 11: the column 'prompt' is empty: fill it or remove the row)"
    )
    assert said[2].startswith("B: prompt = 'instruction'")
    assert len(said) == 3


LOAD = """
import re, sys
from pathlib import Path
from eyas.config import Dataset
from eyas.prompts import Counts, interleave, load
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) // 1024
before = peak()
sets = load([Dataset(name="A", source=sys.argv[1])], Path(), 0, lambda prompt: 7).sets
counts = Counts(sets.values())
total = sum(counts[prompt.dataset, prompt.id] for prompt in interleave(sets.values(), 0))
print(peak() - before, total)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="NO /proc: MEMORY IS NOT MEASURED")
def test_a_large_set_is_loaded_in_little_memory(tmp_path):
    """A file of 80 MB, all of it questions, takes less than 40 MB to load, order and count.

    Held against VmHWM: ru_maxrss begins with the memory of the process that a child was started from, and hides its growth.
    """
    path = tmp_path / "large.jsonl"
    filler = "words of a question " * 400
    with path.open("w") as file:
        file.writelines(f'{{"prompt": "{number} {filler}"}}\n' for number in range(10_000))
    assert path.stat().st_size > 80_000_000
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(path)], capture_output=True, text=True, check=True, timeout=120
    )
    grown, total = map(int, done.stdout.split())
    assert total == 70_000
    assert grown < 40
