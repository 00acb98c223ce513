"""State = fold(events): I5 and I6 over generated histories, and what late or double events do."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyas.errors import LedgerError
from eyas.events import (
    Alarm,
    AnyEvent,
    Corrected,
    Forgotten,
    Headers,
    Intent,
    Labelled,
    PromptAdded,
    PromptRemoved,
    Retried,
    SessionClosed,
    SessionOpened,
    Settled,
)
from eyas.ledger import Money
from eyas.report.summary import exit_code, status
from eyas.state import ANSWERED, State, fold
from eyas.types import FailureKind, Finish, Label, Prices, StopReason, Verdict, Work

CAP = 1_000_000
SAMPLES = {"A": 2, "B": 2}
PRICES = Prices(1, 2)
ENDINGS = tuple(Verdict)
STEPS = (*("intent", "settle") * 3, *("correct", "wish", "wish", "label", "headers", "session"))
WISHES = st.one_of(
    st.builds(
        Retried, st.just(3.5), st.builds(Work, *map(st.sampled_from, ("AB", "01")), st.just(0), st.integers(0, 1))
    ),
    st.builds(PromptRemoved, st.just(3.5), *map(st.sampled_from, ("AB", "01"))),
    st.builds(Forgotten, st.just(3.5), st.tuples(st.tuples(*map(st.sampled_from, ("AB", "01"))))),
)
"""What a user may have done between two sessions."""


def opened(cap: int | None = CAP, **quotas: int | None) -> SessionOpened:
    """A session of datasets A and B."""
    return SessionOpened(at=0.0, model="m", cap=cap, quotas={"A": None, "B": None} | quotas, samples=SAMPLES)


def added(dataset: str, prompt_id: str) -> PromptAdded:
    """A prompt of ten tokens."""
    return PromptAdded(at=0.0, dataset=dataset, prompt_id=prompt_id, tokens=10)


def intent(attempt: int, work: Work, number: int = 1, reserved: int = 100, tag: str = "p/int4") -> Intent:
    """An attempt begins."""
    return Intent(at=1.0, attempt=attempt, work=work, number=number, tag=tag, prices=PRICES, reserved=reserved)


def settled(attempt: int, verdict: Verdict, cost: int | None = 40, tokens: int = 0, **more: object) -> Settled:
    """An attempt ends."""
    return Settled(at=2.0, attempt=attempt, verdict=verdict, cost=cost, tokens=tokens, **more)


@st.composite
def histories(draw: st.DrawFn) -> list[AnyEvent]:
    """A valid history: sessions, prompts, attempts (several of one work may fly), outcomes, corrections, labels, wishes."""
    works = [Work(name, str(number), 0, sample) for name in "AB" for number in range(2) for sample in range(2)]
    events: list[AnyEvent] = [opened(draw(st.one_of(st.none(), st.just(CAP))))]
    events += [added(name, str(number)) for name in "AB" for number in range(2)]
    flying: dict[int, int] = {}
    ended: dict[int, int] = {}
    numbers: Counter[Work] = Counter()
    for _ in range(draw(st.integers(0, 25))):
        step = draw(st.sampled_from(STEPS))
        if step == "intent":
            work, attempt = draw(st.sampled_from(works)), sum(numbers.values()) + 1
            numbers[work] += 1
            flying[attempt] = draw(st.integers(0, 1000))
            events.append(intent(attempt, work, numbers[work], flying[attempt], draw(st.sampled_from(["p", "q"]))))
        elif step == "headers" and flying:
            events.append(Headers(at=1.5, attempt=draw(st.sampled_from(sorted(flying))), generation_id="gen-1"))
        elif step == "settle" and flying:
            attempt = draw(st.sampled_from(sorted(flying)))
            reserved, verdict = flying.pop(attempt), draw(st.sampled_from(ENDINGS))
            cost = draw(st.one_of(st.none(), st.integers(0, reserved)))
            tokens = draw(st.integers(1, 500)) if verdict in ANSWERED else 0
            kind = None if verdict is Verdict.DONE else draw(st.sampled_from(tuple(FailureKind)))
            ended[attempt] = reserved
            events.append(settled(attempt, verdict, cost, tokens, kind=kind, provider="P"))
        elif step == "correct" and ended:
            attempt = draw(st.sampled_from(sorted(ended)))
            cost = draw(st.integers(0, ended[attempt]))
            events.append(Corrected(at=3.0, attempt=attempt, cost=cost, written_off=draw(st.booleans())))
        elif step == "label" and ended:
            label = draw(st.sampled_from(tuple(Label)))
            events.append(Labelled(at=3.0, attempt=draw(st.sampled_from(sorted(ended))), label=label))
        elif step == "wish":
            events.append(draw(WISHES))
        elif step == "session":
            events += [SessionClosed(at=4.0, reason=draw(st.sampled_from(tuple(StopReason)))), opened()]
    return events


def check(state: State) -> None:
    """I5 and I6 hold: each dollar and each work is in exactly one place."""
    attempts = state.attempts.values()
    cost = sum(a.cost or 0 for a in attempts)
    answers = sum(a.cost or 0 for a in attempts if a.answered)
    waste = sum(a.cost or 0 for a in attempts if a.settled and not a.answered)
    unknown = sum(a.reserved for a in attempts if a.unknown)
    reserved = sum(a.reserved for a in attempts if a.open)
    assert state.money == Money(state.money.cap, cost, waste, reserved, unknown)
    assert state.money.wasted == waste == cost - answers
    assert sum(d.cost for d in state.datasets.values()) == sum(p.cost for p in state.providers.values()) == cost
    assert {a.id for a in state.left_open()} | {a.id for a in state.unknown()} == state.pending_cost
    assert [a.id for a in state.left_open()] == sorted(a.id for a in attempts if a.open)
    assert [a.id for a in state.unknown()] == sorted(a.id for a in attempts if a.unknown)
    for name, dataset in state.datasets.items():
        mine = [known for work, known in state.works.items() if work.dataset == name]
        ended = Counter(known.verdict for known in mine if not known.owed)
        assert {v: n for v, n in dataset.ended.items() if n} == dict(ended)
        assert dataset.quota.kept == sum(known.tokens for known in mine)
        figures = status(state, running=False)["datasets"][name]
        assert (
            figures["prompts"]
            == dataset.works
            == sum(figures[key] for key in ("done", "partial", "refused", "failed", "unknown", "skipped", "pending"))
        )
        assert min(v for v in figures.values() if isinstance(v, int)) >= 0
    for known in state.works.values():
        assert known.answer is None or known.owed or known.verdict in ANSWERED
        assert known.answer is not None or known.verdict not in ANSWERED
        assert known.answer is None or state.attempt(known.answer).answered
    standing = {known.answer for known in state.works.values()} - {None}
    assert standing == {a.id for a in attempts if a.answered}


@settings(deadline=None)
@given(histories())
def test_every_work_and_every_dollar_is_in_exactly_one_place(events: list[AnyEvent]) -> None:
    """At every event of any history: counters agree with the works, the money with the attempts (I5, I6)."""
    state = State()
    for event in events:
        state.apply(event)
        check(state)
    assert exit_code(state) in (0, 3, 4, 5, 6, 7, 130)


@settings(deadline=None)
@given(histories(), st.data())
def test_folding_a_prefix_and_then_the_rest_is_folding_all(events: list[AnyEvent], data: st.DataObject) -> None:
    """The fold is incremental: where it was cut does not matter."""
    cut = data.draw(st.integers(0, len(events)))
    part = fold(events[:cut])
    kept = copy.deepcopy(part)
    assert fold(events[cut:], part) == fold(events)
    assert kept == fold(events[:cut])


@settings(deadline=None)
@given(histories(), st.sampled_from(ENDINGS), st.integers(0, 100))
def test_a_late_outcome_never_takes_an_answer_away(events: list[AnyEvent], verdict: Verdict, cost: int) -> None:
    """An older attempt that ends after the answer adds its cost and nothing else, whatever it brings."""
    work = Work("A", "0")
    number = fold(events).last_attempt + 1
    begun = [added("A", "0"), intent(number, work), intent(number + 1, work)]
    state = fold([*events, *begun, settled(number + 1, Verdict.DONE, 7, 30)])
    before = copy.deepcopy(state)
    state.apply(settled(number, verdict, cost, 999))
    check(state)
    known, former = state.works[work], before.works[work]
    assert (known.verdict, known.answer, known.tokens) == (former.verdict, former.answer, former.tokens)
    assert state.datasets["A"].ended == before.datasets["A"].ended
    assert state.datasets["A"].quota == before.datasets["A"].quota
    assert state.money.settled == before.money.settled + cost


def started(*more: AnyEvent) -> State:
    """One prompt, one attempt, and what follows."""
    return fold([opened(), added("A", "0"), intent(1, Work("A", "0")), *more])


def refuses(state: State, events: Iterable[AnyEvent]) -> None:
    """Each of these events contradicts the state."""
    for event in events:
        with pytest.raises(LedgerError):
            state.apply(event)


def test_events_that_contradict_the_journal_are_refused() -> None:
    """A second settlement, a second intent of one attempt, outcomes of unknown attempts, a correction in flight."""
    refuses(
        started(),
        [
            intent(1, Work("A", "1")),
            settled(2, Verdict.DONE),
            Headers(at=1.0, attempt=9, generation_id="g"),
            Corrected(at=1.0, attempt=1, cost=3),
            Corrected(at=1.0, attempt=5, cost=3),
        ],
    )
    done = started(settled(1, Verdict.DONE, 40, 20))
    before = copy.deepcopy(done)
    refuses(done, [settled(1, Verdict.DONE, 40, 20), settled(1, Verdict.FAILED, 0)])
    assert done == before, "a refused event changes nothing"


def test_corrections_add_up() -> None:
    """Unknown, then known, then known better: the last cost stands in money, dataset and provider alike."""
    state = started(settled(1, Verdict.PARTIAL, None, 70, kind=FailureKind.CUT))
    assert (state.money.unknown, state.money.settled, state.datasets["A"].cost) == (100, 0, 0)
    for cost in (60, 20, 100):
        state.apply(Corrected(at=3.0, attempt=1, cost=cost, counts=(10, 70, None), provider="P"))
        check(state)
        assert (state.money.unknown, state.money.settled, state.money.wasted) == (0, cost, 0)
        assert state.datasets["A"].cost == state.providers["p/int4"].cost == state.attempts[1].cost == cost
    assert state.attempts[1].counts == (10, 70, None)
    assert state.providers["p/int4"].name == "P"
    state = started(settled(1, Verdict.UNKNOWN, None, kind=FailureKind.LOST))
    state.apply(Corrected(at=3.0, attempt=1, cost=100, written_off=True))
    assert (state.money.wasted, state.money.unknown, state.attempts[1].written_off) == (100, 0, True)


def test_tries_and_losses_are_counted_apart() -> None:
    """Free failures count as tries only where the event says so; lost outcomes are counted for themselves."""
    work = Work("A", "0")
    state = started(
        settled(1, Verdict.AGAIN, 0, kind=FailureKind.UPSTREAM),
        intent(2, work, 2),
        settled(2, Verdict.AGAIN, 0, kind=FailureKind.RATE_LIMIT, counted_try=False),
        intent(3, work, 3),
        settled(3, Verdict.AGAIN, None, kind=FailureKind.LOST, counted_try=False),
    )
    known = state.works[work]
    assert (known.tries, known.lost, known.numbers, known.owed) == (1, 1, 3, True)
    assert state.providers["p/int4"].failures == dict.fromkeys(
        (FailureKind.UPSTREAM, FailureKind.RATE_LIMIT, FailureKind.LOST), 1
    )


def test_a_removed_prompt_leaves_no_negative_figures() -> None:
    """Answers of a removed prompt stay; what is pending is never below zero."""
    state = started(settled(1, Verdict.DONE, 40, 20, finish=Finish.STOP))
    state.apply(added("A", "1"))
    state.apply(PromptRemoved(at=3.0, dataset="A", prompt_id="0"))
    figures = status(state, running=False)["datasets"]["A"]
    assert (figures["done"], figures["pending"], figures["prompts"]) == (1, 2, 3)
    state.apply(PromptRemoved(at=3.0, dataset="A", prompt_id="1"))
    figures = status(state, running=False)["datasets"]["A"]
    assert (figures["done"], figures["pending"], figures["prompts"]) == (1, 0, 1)


def test_a_new_session_changes_cap_and_quotas_only() -> None:
    """A lowered cap may leave less than nothing free; what was paid stands."""
    state = started(settled(1, Verdict.DONE, 40, 20), Alarm(at=3.0, detail="odd"))
    state.apply(SessionClosed(at=4.0, reason=StopReason.CAP))
    assert state.closed is StopReason.CAP
    state.apply(opened(30, A=20))
    assert (state.money.settled, state.money.free, state.closed, state.sessions) == (40, -10, None, 2)
    assert state.datasets["A"].quota.met
    assert state.alarms == ["odd"]


def test_a_work_is_owed_again_once_its_outcomes_are_known() -> None:
    """Unknown ends a work only while the outcome is unknown: a look-up or a write-off makes it owed again."""
    state = started(settled(1, Verdict.UNKNOWN, None, kind=FailureKind.LOST))
    assert exit_code(state) == 5
    state.apply(Corrected(at=3.0, attempt=1, cost=7))
    figures = status(state, running=False)["datasets"]["A"]
    assert (figures["unknown"], figures["pending"], figures["usd"]) == (0, figures["prompts"], 7e-9)
    assert next(iter(state.works.values())).owed


def test_a_forgotten_prompt_leaves_its_money_only() -> None:
    """Works, tokens and labels of it are gone; what it cost is waste; what comes in late of it adds cost alone."""
    state = started(settled(1, Verdict.DONE, 40, 20), intent(2, Work("A", "0", 0, 1)))
    for event in (Forgotten(at=3.0, prompts=(("A", "0"),)), settled(2, Verdict.PARTIAL, None, 70)):
        state.apply(event)
        check(state)
    state.apply(Corrected(at=4.0, attempt=2, cost=9))
    check(state)
    assert (state.works, state.datasets["A"].prompts, state.datasets["A"].forgotten) == ({}, {}, {"0"})
    assert (state.money.settled, state.money.wasted, state.datasets["A"].quota.kept) == (49, 49, 0)
    figures = status(state, running=False)["datasets"]["A"]
    assert (figures["prompts"], figures["done"], figures["pending"]) == (0, 0, 0)
