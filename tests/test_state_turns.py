"""Conversations in the fold: every turn in exactly one state, whatever is asked again, removed or broken off."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyas.config import RunConfig
from eyas.errors import LedgerError
from eyas.events import AnyEvent, Corrected, Forgotten, PromptAdded, PromptRemoved, Retried, TurnAdded, TurnRefused
from eyas.export.spent import unanswered
from eyas.plan import change, owed
from eyas.report.summary import status
from eyas.state import State, askable, fold, stranded
from eyas.types import FailureKind, Finish, Label, Prompt, Verdict, Work
from tests.test_state import ANSWERED, check, intent, opened, settled

TURNS = {"0": 2, "1": 1}
MOST = 2
WORKS = [Work("A", name, turn, sample) for name in TURNS for sample in range(2) for turn in range(MOST + 1)]
FIRST, SECOND, THIRD = WORKS[:3]
STEPS = ("ask", "ask", "settle", "settle", "settle", "correct", "retry", "retry", "refuse", "turns", "remove", "forget")
FINISHES = (Finish.STOP, Finish.STOP, Finish.STOP, Finish.TOOL_CALLS, Finish.LENGTH, None)


def added(prompt_id: str, turns: int) -> PromptAdded:
    """A prompt of ten tokens with so many turns to come."""
    return PromptAdded(at=0.0, dataset="A", prompt_id=prompt_id, tokens=10, turns=turns)


def begun(*more: AnyEvent) -> State:
    """Two prompts, of three and two turns, and what follows."""
    return fold([opened(), *(added(*each) for each in TURNS.items()), *more])


def done(attempt: int, work: Work, finish: Finish | None = Finish.STOP, tokens: int = 20) -> list[AnyEvent]:
    """A work is asked and done."""
    return [intent(attempt, work, attempt), settled(attempt, Verdict.DONE, 40, tokens, finish=finish)]


def plain(state: State) -> set[Work]:
    """Turns that no one will ask, told the long way: from the first turn on, until one that cannot be followed."""
    found = set[Work]()
    for work in WORKS:
        dataset = state.datasets["A"]
        if work.prompt_id not in dataset.prompts or work.turn > dataset.turns.get(work.prompt_id, 0):
            continue
        known = state.works.get(work)
        if known is not None and not known.owed:
            continue
        for turn in range(work.turn - 1, -1, -1):
            before = state.works.get(Work("A", work.prompt_id, turn, work.sample))
            if before is None or before.owed:
                continue
            answer = state.attempts[before.answer].settled if before.answer else None
            whole = before.verdict is Verdict.DONE and answer.finish in (Finish.STOP, Finish.TOOL_CALLS)
            if not whole:
                found.add(work)
            break
    return found


def step(draw: st.DrawFn, state: State, numbers: Iterator[int]) -> AnyEvent | None:
    """Something that may happen now."""
    kind, work, flying = draw(st.sampled_from(STEPS)), draw(st.sampled_from(WORKS)), state.left_open()
    waits = there(state, work) and (work not in state.works or state.works[work].owed) and askable(state, work)
    waits = waits and all(attempt.work != work for attempt in flying)
    if kind == "ask" and waits:
        return intent(next(numbers), work, reserved=100)
    if kind == "settle" and flying:
        verdict = draw(st.sampled_from([*Verdict, Verdict.DONE, Verdict.DONE]))
        cost, finish = draw(st.sampled_from([None, 0, 60])), draw(st.sampled_from(FINISHES))
        failure = None if verdict is Verdict.DONE else FailureKind.CUT
        tokens = draw(st.integers(1, 50)) if verdict in ANSWERED else 0
        return settled(flying[0].id, verdict, cost, tokens, finish=finish, kind=failure)
    if kind == "correct" and state.unknown():
        return Corrected(at=3.0, attempt=state.unknown()[0].id, cost=draw(st.sampled_from([0, 60])))
    if kind == "refuse" and work.turn and waits:
        return TurnRefused(at=3.0, work=work, detail="no")
    return wish(kind, draw, state, work)


def wish(kind: str, draw: st.DrawFn, state: State, work: Work) -> AnyEvent | None:
    """Something that the user may do now."""
    if kind == "retry" and there(state, work) and work in state.works and not state.works[work].owed:
        return Retried(at=3.0, work=work)
    if kind == "turns":
        return added(work.prompt_id, draw(st.integers(0, MOST)))
    if kind == "remove" and there(state, work) and not state.left_open():
        return PromptRemoved(at=3.0, dataset="A", prompt_id=work.prompt_id)
    if kind == "forget" and draw(st.integers(0, 3)) == 0:
        return Forgotten(at=3.0, prompts=(("A", work.prompt_id),))
    return None


def there(state: State, work: Work) -> bool:
    """Whether the run wants it."""
    dataset = state.datasets["A"]
    return work.prompt_id in dataset.prompts and work.turn <= dataset.turns.get(work.prompt_id, 0)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_every_turn_is_in_exactly_one_state(data: st.DataObject) -> None:
    """At every event: counters and money are sound, skipped turns are those behind a broken one, the rest is asked."""
    state, numbers = begun(), count(1)
    for _ in range(data.draw(st.integers(0, 40))):
        event = step(data.draw, state, numbers)
        if event is None:
            continue
        state.apply(event)
        check(state)
        assert set(stranded(state)) == plain(state)
        assert len(list(stranded(state))) == len(plain(state))
        for work in stranded(state):
            assert work not in state.works or state.works[work].answer is None, "an answer of a skipped turn is counted"
    figures = status(state, running=False)["datasets"]["A"]
    assert figures["skipped"] <= len(plain(state))


def config() -> RunConfig:
    """A run of that dataset, two samples each."""
    return RunConfig.model_validate(
        {
            "run": {"dir": "r"},
            "target": {"model": "moonshotai/kimi-k2.5"},
            "datasets": [{"name": "A", "source": "a", "samples": 2}],
            "budget": {"usd": 1.0},
        }
    )


def test_a_later_turn_is_owed_only_behind_a_whole_answer() -> None:
    """Not before it is asked, nor after an answer that was cut; behind a whole one, and then alone."""
    prompts = [Prompt(name, "A", (), turns=("x",) * turns) for name, turns in TURNS.items()]

    def owing(*events: AnyEvent) -> list[Work]:
        return [work for work, _ in owed(config(), begun(*events), prompts)]

    firsts = [work for work in WORKS if work.turn == 0]
    rest = [work for work in firsts if work != FIRST]
    assert owing() == firsts
    assert owing(intent(1, FIRST)) == firsts
    assert owing(*done(1, FIRST)) == [SECOND, *rest]
    assert owing(*done(1, FIRST), *done(2, SECOND, Finish.TOOL_CALLS)) == [THIRD, *rest]
    for finish in (Finish.LENGTH, Finish.CONTENT_FILTER, None):
        assert owing(*done(1, FIRST, finish)) == rest
    assert owing(*done(1, FIRST), *done(2, SECOND), Retried(at=3.0, work=FIRST)) == [FIRST, THIRD, *rest]


def test_other_turns_are_news_of_a_prompt() -> None:
    """A prompt that has more turns, or fewer, than the run knows is noted again."""
    same, more, fewer = (Prompt("0", "A", (), turns=("x",) * turns) for turns in (2, 3, 0))
    other = Prompt("1", "A", (), turns=("x",))
    assert change(begun(), [same, other]).added == ()
    assert change(begun(), [more, other]).added == (more,)
    assert change(begun(added("0", 3)), [more, other]).added == ()
    assert change(begun(), [fewer, other]).added == (fewer,)


def test_a_removed_conversation_counts_with_the_turns_that_ended() -> None:
    """Its answers stay; what it still owed is gone; back again, it is as before."""
    state = begun(*done(1, FIRST), *done(2, SECOND), PromptRemoved(at=3.0, dataset="A", prompt_id="0"))
    check(state)
    figures = status(state, running=False)["datasets"]["A"]
    assert (figures["prompts"], figures["done"], figures["pending"]) == (6, 2, 4)
    state.apply(added("0", 2))
    check(state)
    figures = status(state, running=False)["datasets"]["A"]
    assert (figures["prompts"], figures["done"], figures["pending"]) == (10, 2, 8)


def test_asked_again_in_vain_a_broken_conversation_stands_by_its_answers() -> None:
    """A later turn that waits for one before it stands by its own answer when that one turns out cut."""
    cut = settled(3, Verdict.PARTIAL, 40, 30, kind=FailureKind.CUT)
    partial = [*done(1, FIRST), *done(2, SECOND)]
    wishes = [Retried(at=3.0, work=FIRST), Retried(at=3.0, work=SECOND)]
    state = begun(*partial, *wishes)
    state.labels[1] = state.labels[2] = Label.MISMATCH
    assert state.works[SECOND].owed
    for event in (intent(3, FIRST, 3), cut):
        state.apply(event)
        check(state)
    assert (state.works[FIRST].verdict, state.works[SECOND].verdict) == (Verdict.PARTIAL, Verdict.DONE)
    state.apply(Retried(at=3.0, work=SECOND))
    assert not state.works[SECOND].owed, "it cannot be asked: no whole answer stands before it"


def test_a_refused_turn_has_its_reason_until_it_is_owed_again() -> None:
    """It ended without an attempt; what ended already cannot be refused."""
    state = begun(*done(1, FIRST), TurnAdded(at=2.0, work=SECOND, tokens=77))
    assert state.prompt_tokens(SECOND) == 77
    state.apply(TurnRefused(at=2.0, work=SECOND, detail="cannot be said"))
    check(state)
    known = state.works[SECOND]
    assert (known.verdict, known.kind, known.detail) == (Verdict.REFUSED, FailureKind.REFUSED, "cannot be said")
    assert set(stranded(state)) == {THIRD}
    with pytest.raises(LedgerError, match="after it had ended"):
        state.apply(TurnRefused(at=2.0, work=SECOND, detail="again"))
    state.apply(Retried(at=3.0, work=SECOND))
    assert (known.owed, known.detail, set(stranded(state))) == (True, "", set())


def test_the_yield_table_names_skipped_turns() -> None:
    """Turns behind a broken one are lost to the set for that reason, not as turns that nobody asked."""
    state = begun(*done(1, FIRST, Finish.LENGTH))
    table = {each.reason: each.rows for each in unanswered([state], {FIRST: (0, 1)})}
    assert table == {"not asked yet": 7, "skipped: the turn before it has no whole answer": 2}
