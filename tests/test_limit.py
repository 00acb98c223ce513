"""`run --limit N --dataset NAME`: a part of the run is asked, once, and what it brought is part of the run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from eyas.config import parse
from eyas.engine.admit import Candidate
from eyas.engine.outlook import outlook
from eyas.engine.run import Engine
from eyas.engine.scope import WHOLE, Scope, left_out, within
from eyas.engine.session import Options
from eyas.errors import UsageError
from eyas.events import PromptAdded
from eyas.families import Loaded
from eyas.report.end import End
from eyas.report.resume import rest, sentences
from eyas.sim import load
from eyas.standing import WorkState
from eyas.state import State
from eyas.types import Prompt, StopReason, Verdict, Work
from tests import kit
from tests.stage import SMALL, TOML, Ending, Stage, simulated
from tests.stage import Sim as World
from tests.virtual import failed, good, now, play, script

FAST = {"tps": 400, "ttft": 0.05, "length_median": 100, "length_sigma": 0.3, "slots": 0}


class Part(Stage):
    """A run of which a session asks a part: what it leaves out stays owed."""

    def _owes(self, parts: Any, books: Any) -> None:
        """That all that is owed is asked holds for whole sessions only."""
        if self.options.scope.whole:
            super()._owes(parts, books)


def scoped(stage: Stage, handle: Any, *scopes: Scope) -> Callable[[], Any]:
    """Sessions with these scopes, one after the other; gives why each ended."""

    async def main() -> list[StopReason | None]:
        reasons = list[StopReason | None]()
        for scope in scopes:
            stage.options = Options(scope=scope)
            reasons.append(await stage.session(handle))
        return reasons

    return main


def counts(stage: Stage) -> Counter[str]:
    """Answers by dataset."""
    return Counter(work.dataset for work, known in stage.state.works.items() if known.verdict is Verdict.DONE)


def test_the_first_of_each_dataset_and_nothing_twice(kimi: Loaded) -> None:
    """A limit asks the first N of each dataset; twice the same asks nothing new; a larger one goes on; the whole run ends it."""
    stage = Part(kimi)
    handle = script([good])
    assert play(scoped(stage, handle, Scope(3), Scope(3))) == [StopReason.COMPLETE] * 2
    assert counts(stage) == {"A": 3, "B": 3}
    assert {int(work.prompt_id, 16) for work in stage.state.works} == {0, 1, 2}
    assert len(stage.transport.sent) == 0
    play(scoped(stage, handle, Scope(5, ("B",))))
    assert counts(stage) == {"A": 3, "B": 5}
    play(scoped(stage, handle, Scope(datasets=("A",)), Scope()))
    assert counts(stage) == {"A": 20, "B": 20}
    assert len(stage.state.attempts) == 40


def test_what_ended_otherwise_counts_too(kimi: Loaded) -> None:
    """A refused work counts for the limit: the part does not grow, and what a limit has seen fail is not replaced."""
    stage = Part(kimi)
    play(scoped(stage, script([failed(400, message="bad prompt"), good]), Scope(4), Scope(4)))
    assert len(stage.state.attempts) == 8
    assert stage.ended() == {Verdict.REFUSED: 1, Verdict.DONE: 7}


def test_a_kill_amid_a_part(kimi: Loaded) -> None:
    """After a kill the same limit asks for what it began, and never for more works than it names."""
    stage = Part(kimi, options=Options(scope=Scope(10)))

    async def main() -> None:
        world = World(replace(load("clean"), **SMALL), 3, kimi.vocab, now, kimi.count_prompt)
        await stage.session(world.handle, Ending("kill", 70))
        await stage.session(world.handle)

    play(main)
    assert stage.seen["killed"] == 1
    assert sum(stage.ended().values()) == 20
    assert stage.ended()[Verdict.DONE] + stage.ended()[Verdict.PARTIAL] == 20


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_a_scope_takes_no_more_than_it_says(data: st.DataObject) -> None:
    """Whatever was begun or ended: at most N of a dataset with those, all turns of one together, begun ones first."""
    conversations = [(name, f"{number:016x}", sample) for name in "AB" for number in range(6) for sample in range(2)]
    state = State()
    owed = list[tuple[Work, Prompt]]()
    begun = set[tuple[str, str, int]]()
    for name, prompt_id, sample in data.draw(st.permutations(conversations)):
        how = data.draw(st.sampled_from(["fresh", "looked at", "open", "ended"]))
        work = Work(name, prompt_id, 0, sample)
        if how != "fresh":
            state.works[work] = WorkState(
                Verdict.DONE if how == "ended" else None, numbers=0 if how == "looked at" else 1
            )
        if how in ("open", "ended"):
            begun.add((name, prompt_id, sample))
        if how != "ended":
            prompt = Prompt(prompt_id, name, ())
            owed += [(work, prompt), (Work(name, prompt_id, 1, sample), prompt)]
    limit = data.draw(st.one_of(st.none(), st.integers(1, 14)))
    names = data.draw(st.sampled_from([(), ("A",), ("B", "A")]))
    asked = list(within(Scope(limit, names), state, owed))
    assert asked == [each for each in owed if each in asked]
    chosen = Counter((work.dataset, work.prompt_id, work.sample) for work, _ in asked)
    assert all(count == 2 for count in chosen.values())
    for name in "AB":
        ours = {each for each in chosen if each[0] == name}
        open_ones = {(w.dataset, w.prompt_id, w.sample) for w, _ in owed if w.dataset == name}
        ended = {each for each in begun if each[0] == name} - open_ones
        if names and name not in names:
            assert not ours
        elif limit is None:
            assert ours == open_ones
        else:
            assert len(ours) == min(len(open_ones), max(0, limit - len(ended)))
            assert ours <= begun or begun & open_ones <= ours


def test_the_end_that_is_foretold_is_that_of_the_part(kimi: Loaded) -> None:
    """What the session leaves alone is not waited for: of each 300 prompts it asks 50, and never foresees many more tokens."""
    stage, seen = Part(kimi, prompts=300, in_flight=6), list[End]()
    former = Engine.__post_init__

    def begin(engine: Engine) -> None:
        former(engine)
        engine.on_tick = lambda engine: seen.extend(filter(None, [outlook(engine)]))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "__post_init__", begin)
        stage.options = Options(scope=Scope(limit=50))
        play(simulated(stage, replace(load("clean"), **SMALL), 3))
    kept = sum(dataset.quota.kept for dataset in stage.state.datasets.values())
    assert seen
    assert all(0 <= each.tokens <= 2 * kept for each in seen)
    assert seen[-1].tokens < kept / 5


def test_turns_that_follow_are_in_the_part() -> None:
    """A conversation that is asked is asked to its end; of the others all works are left out."""
    state, first, second = State(), Prompt("1", "A", (), turns=("x", "y")), Prompt("2", "A", ())
    for prompt in (first, second, Prompt("3", "A", ())):
        turns = len(prompt.turns)
        state.apply(PromptAdded(at=0.0, dataset="A", prompt_id=prompt.id, tokens=1, turns=turns))
    asked = [Candidate(Work("A", each.id), each, 1) for each in (first, second)]
    assert left_out(Scope(limit=2), state, asked) == {"A": 1}
    assert left_out(Scope(datasets=("B",)), state, []) == {"A": 5}
    assert left_out(WHOLE, state, []) == {}


def test_what_is_said(kimi: Loaded) -> None:
    """A part says at its start what it asks of what is owed, and at its end how to go on; a whole run says neither."""
    stage = Part(kimi)
    play(scoped(stage, script([good]), Scope(3)))
    assert sentences(stage.state, Path("run"), 0, asked=6) == [
        "34 answers are owed; this session asks for 6 of them (--limit, --dataset)"
    ]
    assert rest(stage.state, Path("run")).startswith("34 answers are still owed: the same command without --limit")
    play(scoped(stage, script([good]), Scope()))
    assert rest(stage.state, Path("run")) == ""


@pytest.mark.parametrize(("scope", "says"), [(Scope(0), "1 or more"), (Scope(1, ("A", "C")), "RUN.toml has A, B")])
def test_a_scope_that_cannot_be(scope: Scope, says: str) -> None:
    """A limit below 1 and a dataset that is not there are said before anything is read."""
    config = parse(TOML.format(usd=1, quota="", in_flight=1), Path("RUN.toml"))
    with pytest.raises(UsageError, match=says):
        scope.check(config)


@pytest.mark.e2e
def test_a_part_by_command(tmp_path: Path, kimi_folder: Path) -> None:
    """Exit 0 with the rest pending and a word on how to go on; the export takes it; the plain command asks only the rest."""
    with kit.simulator(kimi_folder, **FAST) as sim:
        kit.write_run(tmp_path, sim, kimi_folder, 30)
        first = kit.eyas(tmp_path, "run", "RUN.toml", "--yes", "--json", "--limit", "10")
        assert first.returncode == 0, first.stderr
        assert "20 answers are still owed" in first.stderr
        figures = json.loads(first.stdout)
        assert (figures["state"], figures["datasets"]["B3"]["done"]) == ("partial", 10)
        again = kit.eyas(tmp_path, "run", "RUN.toml", "--yes", "--limit", "10", "--dataset", "B3")
        assert (again.returncode, len(sim.books())) == (0, 10), again.stderr
        assert kit.eyas(tmp_path, "export", "run", "--out", "rows").returncode == 0
        manifest = json.loads((tmp_path / "rows" / "manifest.json").read_text())
        assert manifest["datasets"]["B3"]["answers"] == 10
        assert manifest["policy"] == {"enforce_distillable_text": [None], "data_collection": [None], "zdr": [None]}
        rest_of = kit.eyas(tmp_path, "run", "RUN.toml", "--yes")
        assert (rest_of.returncode, len(sim.books())) == (0, 30), rest_of.stderr
