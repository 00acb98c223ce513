"""Prompts kept in the run directory: the same as a reading gives, or not taken; and compared a million at once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyas.config import Dataset, RunConfig
from eyas.engine import compare
from eyas.engine.inputs import Inputs, Tokenizer, read_inputs, write_reports
from eyas.errors import UsageError
from eyas.events import AnyEvent, Forgotten, Intent, PromptAdded, SessionOpened, Settled
from eyas.plan import change, owed
from eyas.prompts import kept, sources
from eyas.state import State, fold
from eyas.types import Prices, Verdict, Work
from tests import promptkit as kit

TALK = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "1"}, {"role": "user", "content": "two"}]
ROWS = [*({"prompt": f"x{number}"} for number in range(9)), {"prompt": ""}, {"prompt": "x0"}, {"messages": TALK}]


def counts(made_of: str = "k") -> Tokenizer:
    """A tokenizer that counts characters; files with that digest are what it was made of."""
    loaded = SimpleNamespace(
        count_prompt=lambda messages, tools, thinking: len(messages[-1]["content"]) + thinking, caveats=()
    )
    return Tokenizer(SimpleNamespace(), loaded, made_of)


def config(folder: Path, **keys: object) -> RunConfig:
    """A run of two sets; the keys are the first one's."""
    sets = [{"name": "A", "source": "a", **keys}, {"name": "B", "source": "b", "thinking": False}]
    return RunConfig.model_validate(
        {"run": {"dir": "run"}, "target": {"model": "m"}, "budget": {"usd": 1.0}, "datasets": sets, "base": folder}
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sources, and the run directory that keeps them."""
    folder = tmp_path_factory.mktemp("kept")
    kit.lines(folder / "a", ROWS)
    kit.lines(folder / "b", [{"instruction": f"y{number}"} for number in range(5)])
    (folder / "run").mkdir()
    write_reports(folder / "run", read_inputs(config(folder), counts()))
    return folder


def told(inputs: Inputs) -> list[Any]:
    """All that inputs say."""
    sets = [
        [
            [list(each) for each in (one.prompts, one.ids, one.tokens, one.turns, one.quarantined, one.contaminated)],
            [name, one.rows, one.duplicates, one.images, dict(one.removed), one.guess],
        ]
        for name, one in inputs.sets.items()
    ]
    return [list(inputs.prompts), dict(inputs.counts), list(inputs.quarantined), inputs.duplicates, sets]


def read(folder: Path, tokenizer: Tokenizer | None = None, **keys: object) -> Inputs:
    """What a session reads."""
    return read_inputs(config(folder, **keys), tokenizer or counts())


def test_what_is_kept_is_what_a_reading_gives(folder: Path, tmp_path: Path) -> None:
    """Prompts, order, counts, what was left out: all the same; and nothing is counted again."""
    fresh, again = read(folder, counts("")), read(folder)
    assert (fresh.made_of, again.made_of) == ("", "")
    assert isinstance(again.sets["A"].prompts, kept.Stored)
    assert told(again) == told(fresh)
    assert list(again.sets["A"].turns) == [len(prompt.turns) for prompt in again.sets["A"].prompts]
    assert max(again.sets["A"].turns) == 1


def test_a_digest_tells_what_changes_the_prompts(folder: Path, tmp_path: Path) -> None:
    """Another row, key, seed, tokenizer or mode is another reading; a quota, a price or a date is none."""

    def made_of(*, seed: int = 0, tokenizer: str = "k", thinking: bool = True, **keys: object) -> str:
        one = Dataset.model_validate({"name": "A", "source": str(tmp_path / "a"), **keys})
        return sources.made_of([(one, thinking)], tmp_path, seed, tokenizer)

    kit.lines(tmp_path / "a", ROWS)
    (tmp_path / "pool").write_text("Be brief.")
    pool = {"system": [{"file": "pool", "weight": 1.0}]}
    first, pooled = made_of(), made_of(**pool)
    same = [made_of(output_tokens=5), made_of(max_tokens=9), made_of(samples=3), made_of(weight=2.0), made_of()]
    os.utime(tmp_path / "a", (1, 1))
    assert {*same, made_of()} == {first}
    (tmp_path / "pool").write_text("Be long.")
    others = [
        made_of(seed=1),
        made_of(tokenizer="q"),
        made_of(thinking=False),
        made_of(languages=["en"]),
        made_of(**pool),
    ]
    kit.lines(tmp_path / "a", [*ROWS[1:], {"prompt": "new"}])
    assert len({first, pooled, *others, made_of()}) == 8
    with pytest.raises(UsageError, match="cannot be read"):
        sources.made_of([(Dataset(name="A", source="missing"), True)], tmp_path, 0, "k")


@pytest.mark.parametrize("keys", [{"source": "-"}, {"source": "hub:org/name"}, {"filter": "keep.py:keep"}])
def test_what_cannot_be_known_to_be_the_same_is_read_anew(tmp_path: Path, keys: dict[str, str]) -> None:
    """Standard input, the hub, and a user's own code have no digest."""
    one = Dataset.model_validate({"name": "A", "source": "a", **keys})
    assert sources.made_of([(one, True)], tmp_path, 0, "k") == ""


def test_a_changed_source_is_read_and_kept_in_its_place(tmp_path: Path) -> None:
    """A row more: it is there, and the next session takes it from the file."""
    kit.lines(tmp_path / "a", ROWS)
    kit.lines(tmp_path / "b", [{"prompt": "y"}])
    (tmp_path / "run").mkdir()
    write_reports(tmp_path / "run", read(tmp_path))
    kit.lines(tmp_path / "b", [{"prompt": "y"}, {"prompt": "z"}])
    fresh = read(tmp_path)
    assert fresh.made_of != ""
    assert len(fresh.sets["B"].prompts) == 2
    write_reports(tmp_path / "run", fresh)
    again = read(tmp_path)
    assert (again.made_of, told(again)) == ("", told(fresh))


def test_a_forgotten_prompt_is_not_kept(folder: Path, tmp_path: Path) -> None:
    """Its text is nowhere in the file; the others stand in their order."""
    fresh = read(folder, counts(""))
    gone = fresh.prompts[3]
    assert kept.save(tmp_path, fresh.sets, fresh.prompts, "x", [(gone.dataset, gone.id)])
    found = kept.load(tmp_path, "x")
    assert found is not None
    assert list(found[1]) == [prompt for prompt in fresh.prompts if prompt.id != gone.id]
    assert gone.id.encode() not in (tmp_path / kept.NAME).read_bytes()
    assert (tmp_path / kept.NAME).stat().st_mode & 0o077 == 0


@given(st.data())
@settings(deadline=None)
def test_a_damaged_file_is_passed_over(folder: Path, data: st.DataObject) -> None:
    """A changed byte, or an end that is missing: it is not taken, or what it gives is what was kept."""
    fresh = read(folder, counts(""))
    whole = (folder / "run" / kept.NAME).read_bytes()
    at, bit = data.draw(st.integers(0, len(whole) - 1)), 1 << data.draw(st.integers(0, 7))
    cut = data.draw(st.booleans())
    damaged = whole[:at] if cut else whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :]
    place = folder / "damaged"
    place.mkdir(exist_ok=True)
    (place / kept.NAME).write_bytes(damaged)
    made_of = sources.made_of([(each, each.name == "A") for each in config(folder).datasets], folder, 0, "k")
    found = kept.load(place, made_of)
    assert found is None or [list(one.prompts) for one in found[0].values()] == [
        list(one.prompts) for one in fresh.sets.values()
    ]


def events(data: st.DataObject, inputs: Inputs) -> Iterator[AnyEvent]:
    """A run that knows some of the prompts, some with other turns, and some more; some works ended, some prompts are gone."""
    yield SessionOpened(at=0.0, model="m", cap=None, quotas={"A": None, "B": None}, samples={"A": 2})
    known = [prompt for prompt in inputs.prompts if data.draw(st.integers(0, 3))]
    for prompt in known:
        turns = len(prompt.turns) + (data.draw(st.integers(0, 9)) == 0)
        yield PromptAdded(at=0.0, dataset=prompt.dataset, prompt_id=prompt.id, tokens=1, turns=turns)
    if data.draw(st.booleans()):
        yield PromptAdded(at=0.0, dataset="A", prompt_id=f"{7:016x}", tokens=1)
    number = 0
    for prompt in known:
        for sample in range(data.draw(st.integers(0, 2))):
            work, number = Work(prompt.dataset, prompt.id, 0, sample), number + 1
            verdict = data.draw(st.sampled_from([Verdict.DONE, Verdict.AGAIN, Verdict.FAILED]))
            yield Intent(at=1.0, attempt=number, work=work, number=1, tag="p", prices=Prices(1, 1), reserved=9)
            yield Settled(at=2.0, attempt=number, verdict=verdict, cost=0, tokens=verdict is Verdict.DONE)
    gone = tuple((prompt.dataset, prompt.id) for prompt in known if not data.draw(st.integers(0, 4)))
    yield Forgotten(at=3.0, prompts=gone)


@given(st.data())
@settings(deadline=None)
def test_comparing_by_ids_says_what_reading_every_prompt_says(folder: Path, data: st.DataObject) -> None:
    """What is new, gone and owed is the same, in the same order, as `plan` finds by going through all prompts."""
    inputs, run = read(folder), config(folder, samples=2)
    state: State = fold(events(data, inputs))
    assert compare.changed(state, inputs) == change(state, inputs.prompts)
    assert list(compare.still_owed(run, state, inputs)) == list(owed(run, state, inputs.prompts))
    names = [(prompt.dataset, prompt.id) for prompt in inputs.prompts if data.draw(st.booleans())]
    found = compare.prompts_of(inputs, [*names, ("A", f"{7:016x}")])
    assert found == {(p.dataset, p.id): p for p in inputs.prompts if (p.dataset, p.id) in names}
