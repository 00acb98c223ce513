"""`eyas retry`: which works match, what the fold makes of it, and what the next run asks and keeps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from eyas.cli.retry import words
from eyas.engine.again import Found, find
from eyas.engine.where import parse
from eyas.errors import UsageError
from eyas.events import AnyEvent, Corrected, Forgotten, Headers, Labelled, PromptRemoved, Retried, SessionOpened
from eyas.lock import lock
from eyas.records import Run
from eyas.report.resume import sentences
from eyas.report.summary import exit_code, status
from eyas.state import State, fold
from eyas.types import FailureKind, Finish, Label, Verdict, Work
from tests import kit
from tests.test_state import added, check, intent, settled

WORKS = [Work("A", str(number)) for number in range(6)]
DONE, LONG, PART, FAILED, REFUSED, UNKNOWN = WORKS


def opened(quota: int | None = None, waste: int | None = None) -> SessionOpened:
    """A session of dataset A."""
    return SessionOpened(at=0.0, model="m", cap=10_000, quotas={"A": quota}, waste_limit=waste)


def run(*more: AnyEvent, quota: int | None = None, waste: int | None = None) -> State:
    """Six works that ended in six ways, and what follows."""
    ends = [
        settled(1, Verdict.DONE, 40, 100, finish=Finish.STOP, provider="Chutes"),
        settled(2, Verdict.DONE, 80, 400, finish=Finish.LENGTH, provider="Chutes"),
        settled(3, Verdict.PARTIAL, 30, 70, kind=FailureKind.CUT, provider="Atlas Cloud"),
        settled(4, Verdict.FAILED, 0, kind=FailureKind.UPSTREAM),
        settled(5, Verdict.REFUSED, 0, kind=FailureKind.REFUSED),
        settled(6, Verdict.UNKNOWN, None, kind=FailureKind.LOST),
    ]
    begun = [intent(number, work) for number, work in enumerate(WORKS, 1)]
    labels = [Labelled(at=3.0, attempt=1, label=Label.COUNTED), Labelled(at=3.0, attempt=2, label=Label.MISMATCH)]
    prompts = [added("A", work.prompt_id) for work in WORKS]
    return fold([opened(quota, waste), *prompts, *begun, *ends, *labels, *more])


def chosen(where: str, state: State | None = None) -> list[Work]:
    """The works that match."""
    return list(find(state or run(), parse(where)).works)


@pytest.mark.parametrize(
    ("where", "works"),
    [
        ("finish=length", [LONG]),
        ("verdict=failed", [FAILED]),
        ("verdict = Partial", [PART]),
        ("label=mismatch", [LONG]),
        ("label!=mismatch", [DONE]),
        ("provider=chutes and finish!=length", [DONE]),
        ("provider=Atlas Cloud", [PART]),
        ("dataset=A,verdict!=done", [PART, FAILED, REFUSED, UNKNOWN]),
        ("kind=lost AND tag=p/int4", [UNKNOWN]),
        (f"id={LONG.key}", [LONG]),
        (f"id={LONG.primary}", [LONG]),
        ("id!=A/0, dataset=A", WORKS[1:]),
        ("verdict=done and verdict=failed", []),
    ],
)
def test_works_are_chosen_by_what_came_of_them(where: str, works: list[Work]) -> None:
    """Every field, both operators, `and` and commas; a work without a field meets neither `=` nor `!=`."""
    assert chosen(where) == works


@pytest.mark.parametrize(
    ("where", "word"),
    [
        ("", "is no condition"),
        ("finish", "is no condition"),
        ("finish=length or label=near", "finish is never"),
        ("colour=red", "choose among verdict, kind"),
        ("verdict=again", "choose among done"),
        ("label=", "label is never"),
        ("provider=", "give one"),
        ("provider=Chuts", "this run has atlas cloud, chutes"),
        ("dataset=a", "this run has A"),
    ],
)
def test_a_slip_is_refused_with_what_would_do(where: str, word: str) -> None:
    """Unknown fields and values name the known ones; a name that no work has is an error, not an empty result."""
    with pytest.raises(UsageError, match=word):
        find(run(), parse(where))


def test_what_cannot_be_asked_is_not_chosen() -> None:
    """Works that are owed already, and those whose prompt left the sources; the latter are counted."""
    assert chosen("dataset=A", run(Retried(at=5.0, work=LONG))) == [w for w in WORKS if w != LONG]
    found = find(run(PromptRemoved(at=5.0, dataset="A", prompt_id="1")), parse("finish=length"))
    assert (found.works, found.lost) == ((), 1)


def test_the_estimate_is_the_mean_of_such_answers() -> None:
    """An answer costs what it cost; a work without one the mean of its set's; unknown where nothing has a cost."""
    assert find(run(), parse("finish=length")).estimate == 80
    assert find(run(), parse("verdict=failed")).estimate == 50
    bare = fold([opened(), added("A", "0"), intent(1, DONE), settled(1, Verdict.FAILED, 0)])
    assert find(bare, parse("verdict=failed")).estimate is None


def test_limits_in_the_way_are_named() -> None:
    """A quota that is met without the answers, and waste that would pass its limit."""
    assert find(run(quota=170), parse("finish=length")).met == ("A",)
    assert find(run(quota=171), parse("provider=Chutes")).met == ()
    assert find(run(waste=79), parse("finish=length")).wasted
    assert not find(run(waste=80), parse("finish=length")).wasted
    assert not find(run(waste=0), parse("verdict=failed")).wasted
    said = words(find(run(quota=170, waste=9), parse("finish=length")), "finish=length")
    assert "[budget] waste" in said
    assert "raise output_tokens" in said
    assert "stands, and is exported" in said
    assert words(Found((), {}, 0, 0, None, 0, (), False), "x=y").startswith("no work that ended matches")


def again(work: Work, *more: AnyEvent, **limits: int | None) -> State:
    """The work asked again, its next attempt begun, and what follows; sound at every step."""
    state = run(Retried(at=5.0, work=work), **limits)
    check(state)
    for event in (intent(7, work, 2), *more):
        state.apply(event)
        check(state)
    return state


def test_an_answer_stands_until_a_new_one_comes() -> None:
    """Owed again, the answer stays exportable and its cost an answer's; only its tokens leave the quota."""
    before, state = run(), run(Retried(at=5.0, work=LONG))
    known = state.works[LONG]
    assert (known.owed, known.answer, known.tokens) == (True, 2, 0)
    assert state.attempt(2).answered
    assert state.money == before.money
    assert state.datasets["A"].quota.kept == before.datasets["A"].quota.kept - 400
    figures = status(state, running=False)
    assert (figures["datasets"]["A"]["done"], figures["datasets"]["A"]["pending"]) == (1, 1)
    assert figures["yield"] == status(before, running=False)["yield"]
    assert figures["labels"] == status(before, running=False)["labels"]


def test_a_new_answer_replaces_the_old_one() -> None:
    """The new one counts; the old one's cost is waste and its label counts no more, also if its cost comes late."""
    state = again(LONG, settled(7, Verdict.DONE, 25, 90, finish=Finish.STOP))
    known = state.works[LONG]
    assert (known.verdict, known.answer, known.tokens) == (Verdict.DONE, 7, 90)
    assert (state.money.wasted, state.attempt(2).answered) == (80, False)
    figures = status(state, running=False)
    assert figures["labels"] == {"counted": 1}
    assert figures["length"]["answers"] == 0
    state.apply(Corrected(at=9.0, attempt=2, cost=85))
    check(state)
    assert state.money.wasted == 85


@pytest.mark.parametrize("verdict", [Verdict.FAILED, Verdict.REFUSED, Verdict.UNKNOWN])
def test_asking_again_in_vain_keeps_the_answer(verdict: Verdict) -> None:
    """If the new attempt ends without an answer, the old one stands as before: nothing exportable is lost (I5)."""
    before, state = run(), again(LONG, settled(7, verdict, 9, kind=FailureKind.UPSTREAM))
    known = state.works[LONG]
    assert (known.verdict, known.answer, known.tokens) == (Verdict.DONE, 2, 400)
    assert state.datasets["A"].quota == before.datasets["A"].quota
    assert state.money.wasted == 9
    assert again(LONG, settled(7, Verdict.AGAIN, 0)).works[LONG].owed


@pytest.mark.parametrize(
    ("work", "verdict", "tokens", "takes"),
    [
        (DONE, Verdict.DONE, 5, True),
        (DONE, Verdict.PARTIAL, 999, False),
        (LONG, Verdict.PARTIAL, 64, True),
        (PART, Verdict.PARTIAL, 69, False),
        (PART, Verdict.PARTIAL, 70, True),
        (PART, Verdict.DONE, 10, True),
    ],
)
def test_only_a_better_answer_takes_the_place(work: Work, verdict: Verdict, tokens: int, takes: bool) -> None:
    """A cut answer never replaces a whole one that can be exported, nor a longer cut one; what loses is waste."""
    former = run().works[work].answer
    state = again(work, settled(7, verdict, 11, tokens, kind=FailureKind.CUT))
    known = state.works[work]
    assert known.answer == (7 if takes else former)
    assert state.attempt(7).answered is takes
    assert not known.owed
    if not takes:
        assert state.money.wasted == 11


@pytest.mark.parametrize("work", [FAILED, REFUSED, UNKNOWN])
def test_works_without_an_answer_get_fresh_tries(work: Work) -> None:
    """Tries and losses start at nought; what an unknown outcome holds stays held beside the new attempt."""
    spent = [intent(9, work, 9), settled(9, Verdict.FAILED, 0, kind=FailureKind.LOST)]
    state = run(*spent, Retried(at=5.0, work=work))
    known = state.works[work]
    assert (known.tries, known.lost, known.numbers, known.owed) == (0, 0, 9, True)
    assert state.money.unknown == 100
    assert exit_code(state) == 5
    assert again(work, settled(7, Verdict.DONE, 30, 20)).works[work].verdict is Verdict.DONE


def test_an_answer_whose_prompt_leaves_while_it_is_owed_stands_again() -> None:
    """With its prompt gone it cannot be asked: its answer counts as before."""
    gone = PromptRemoved(at=6.0, dataset="A", prompt_id="1")
    state = run(Retried(at=5.0, work=LONG), gone)
    check(state)
    known = state.works[LONG]
    assert (known.verdict, known.tokens) == (Verdict.DONE, 400)
    assert (state.datasets, state.money) == (run(gone).datasets, run(gone).money)


def told(*more: AnyEvent) -> str:
    """What a resumed run says."""
    return "\n".join(sentences(run(replace(opened(), at=4.0), *more), Path("runs/a"), 2))


def test_a_resumed_run_says_what_it_found_and_does() -> None:
    """What is unknown and held, what the cache is asked for, what is owed, what is left as it is, and the command for it."""
    said = told()
    assert "what 1 requests cost is not known; $0.000000 is held" in said
    assert "1 were cut before the API gave them an id: `eyas reconcile runs/a --write-off all`" in said
    assert "2 lost answers are asked for under the API's response cache first" in said
    assert "no answer is owed" in said
    assert "1 failed, 1 refused, 1 unknown; `eyas retry runs/a --where verdict=failed`" in said
    assert "killed" not in said
    assert "looked up" not in said
    named = told(Headers(at=5.0, attempt=6, generation_id="gen-6"))
    assert "1 are looked up now, while the run goes on" in named
    assert "--write-off" not in named
    wished = told(Retried(at=5.0, work=LONG), Retried(at=5.0, work=FAILED), added("A", "9"))
    assert (
        "3 answers are owed and asked for now, 2 of them were asked before; 1 of those have an answer, which" in wished
    )
    assert "1 prompts were removed by `eyas forget`" in told(Forgotten(at=5.0, prompts=(("A", "0"),)))
    assert sentences(run(), Path("runs/a"), 0) == [], "the first session of a run has nothing to tell"


FAST = {"tps": 400, "ttft": 0.05, "length_median": 200, "length_sigma": 0.5, "slots": 0}


def ids(text: str) -> list[str]:
    """Ids on stdout."""
    return text.split()


def rows(folder: Path) -> list[dict[str, object]]:
    """Exported rows."""
    return [json.loads(line) for path in sorted(folder.glob("rows-*.jsonl")) for line in path.read_bytes().splitlines()]


def finishes(found: Sequence[dict[str, object]]) -> dict[str, object]:
    """Finish by id."""
    return {str(row["id"]): row["metadata"]["finish"] for row in found}


@pytest.mark.e2e
def test_answers_cut_at_max_tokens_are_bought_anew(tmp_path: Path, kimi_folder: Path) -> None:
    """The whole way: dry run, consent, retry, export before and after the next run, and no other work asked again."""
    with kit.simulator(kimi_folder, **FAST) as sim:
        kit.write_run(tmp_path, sim, kimi_folder, 20, max_tokens=150)
        assert kit.eyas(tmp_path, "run", "RUN.toml", "--yes").returncode == 0
        where = ("retry", "run", "--where", "finish=length")
        dry = kit.eyas(tmp_path, *where, "--dry-run")
        long = ids(dry.stdout)
        assert 2 < len(long) < 20, dry.stderr
        assert f"{len(long)} works match" in dry.stderr
        refused = kit.eyas(tmp_path, *where)
        assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
        assert ids(kit.eyas(tmp_path, *where, "--dry-run").stdout) == long, "a dry run or a refusal changes nothing"
        with lock(tmp_path / "run"):
            held = kit.eyas(tmp_path, *where, "--yes")
        assert (held.returncode, "in use by process" in held.stderr) == (2, True), held.stderr
        assert kit.eyas(tmp_path, *where, "--yes").returncode == 0
        assert "no work that ended matches" in kit.eyas(tmp_path, *where, "--yes").stderr
        kit.eyas(tmp_path, "export", "run", "--out", "before", "--labels", "loose")
        before = finishes(rows(tmp_path / "before"))
        assert len([key for key in before if key in long]) > 0, "the old answers stand"
        kit.write_run(tmp_path, sim, kimi_folder, 20, max_tokens=2000)
        last = kit.eyas(tmp_path, "run", "RUN.toml", "--yes", "--json")
        assert last.returncode == 0, last.stderr
        assert f"{len(long)} answers are owed" in last.stderr
        assert "stands until a better one is there" in last.stderr
        books = sim.books()
        kit.eyas(tmp_path, "export", "run", "--out", "after", "--labels", "loose")
    asked = kit.asked(books.values())
    assert sorted(asked.values()) == [1] * (20 - len(long)) + [2] * len(long)
    assert not ids(kit.eyas(tmp_path, *where, "--dry-run").stdout)
    assert set(finishes(rows(tmp_path / "after")).values()) == {"stop"}
    found = Run(tmp_path / "run")
    money = kit.money(found, books)
    assert money["settled"] == money["billed"]
    assert found.state.money.wasted > 0
    assert json.loads(last.stdout)["datasets"]["B3"]["done"] == 20
    found.close()


def test_no_run_no_retry(tmp_path: Path) -> None:
    """Where there is no run: exit 2, a sentence, and nothing is created."""
    ended = kit.eyas(tmp_path, "retry", "nothing", "--where", "verdict=failed", "--yes")
    assert ended.returncode == 2, ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "nothing").exists()
