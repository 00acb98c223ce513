"""The design's table "What happened, and what is done", line by line, against decide()."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eyas.config import parse
from eyas.engine.retry import MOST_TRIES, Case, Decision, Effect, Policy, decide, policy_of
from eyas.types import Billed, Completion, Failure, FailureKind, Finish, Outcome, Prices, StopReason, Usage, Verdict

PRICES = Prices(440_000_000, 2_000_000_000)
USAGE = Usage(20, 100, 50, 0, 208_800)
DONE = Completion(reasoning="Hm", content="ok", finish=Finish.STOP, usage=USAGE, generation_id="gen-1")
CUT = Failure(FailureKind.CUT, Billed.UNKNOWN, "reset")
WASTED_UP = Policy(waste_limit=1000)


def case(tries: int = 0, lost: int = 0, tokens: int = 0, wasted: int = 0, misserved: str = "") -> Case:
    """What is known of the attempt."""
    return Case(tries, lost, PRICES, tokens, wasted, misserved)


def fail(kind: FailureKind, billed: Billed = Billed.NO, **more: object) -> Failure:
    """A failure of that kind."""
    return Failure(kind, billed, "words", **more)


@pytest.mark.parametrize(
    ("kind", "effect"),
    [
        (FailureKind.CONNECT, Effect.UNREACHABLE),
        (FailureKind.RATE_LIMIT, Effect.REJECTED),
        (FailureKind.IN_FLIGHT_BUDGET, Effect.BUDGET),
        (FailureKind.NO_ENDPOINT, Effect.ASIDE),
    ],
)
def test_a_rejection_is_asked_again_and_counts_nothing(kind: FailureKind, effect: Effect) -> None:
    """Connect errors, 429, 503, 529, in-flight-budget 402: free, again, paced, for ever, not counted as a try."""
    for each in (case(), case(tries=99, lost=99, wasted=10**9)):
        decision = decide(fail(kind, retry_after=4.0), each, WASTED_UP)
        assert decision == Decision(
            Verdict.AGAIN, 0, kind, counted=False, effect=effect, retry_after=4.0, detail="words"
        )


@pytest.mark.parametrize("kind", [FailureKind.UPSTREAM, FailureKind.EMPTY])
def test_an_envelope_before_any_token_is_tried_three_times_elsewhere(kind: FailureKind) -> None:
    """Free, another endpoint if there is one, and after the third the work failed."""
    for tries in range(MOST_TRIES + 2):
        decision = decide(fail(kind), case(tries), WASTED_UP)
        assert decision.verdict is (Verdict.AGAIN if tries < 2 else Verdict.FAILED)
        assert (decision.cost, decision.counted, decision.effect) == (0, True, Effect.AVOID)
    assert MOST_TRIES == 3


def test_an_empty_answer_that_was_billed_is_waste() -> None:
    """What it cost is booked and bound by the waste limit; without usage the cost stays unknown."""
    empty = fail(FailureKind.EMPTY, Billed.YES, usage=USAGE)
    assert decide(empty, case(), WASTED_UP).cost == USAGE.cost
    assert decide(empty, case(), WASTED_UP).verdict is Verdict.AGAIN
    assert decide(empty, case(wasted=1001), WASTED_UP).verdict is Verdict.FAILED
    assert decide(fail(FailureKind.EMPTY, Billed.UNKNOWN), case(), Policy()).cost is None
    insured = fail(FailureKind.EMPTY, usage=Usage(20, 0, cost=9))
    assert decide(insured, case(), Policy()).cost == 9, "a cost that the API names is booked, whatever we think"


def test_silence_before_a_token_keeps_the_reservation() -> None:
    """HTML pages, resets, an end after the send: unknown; asked again beside it, three times and within the waste."""
    lost = fail(FailureKind.LOST, Billed.UNKNOWN)
    for number in range(5):
        decision = decide(lost, case(lost=number, tries=99), WASTED_UP)
        assert decision.cost is None
        assert decision.verdict is (Verdict.AGAIN if number < 2 else Verdict.UNKNOWN)
        assert (decision.counted, decision.effect) == (False, Effect.AVOID)
    assert decide(lost, case(wasted=1001), WASTED_UP).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("usage", [None, USAGE])
def test_a_stream_cut_after_tokens_is_partial_or_waste(usage: Usage | None) -> None:
    """From keep_from tokens on the text is kept; its cost is what usage says, else looked up, the reservation held."""
    cut = Completion(content="some text", cut=CUT, usage=usage, generation_id="gen-1")
    cost = usage.cost if usage else None
    for tokens in (64, 65, 9999):
        kept = decide(cut, case(tokens=tokens, wasted=10**9), WASTED_UP)
        assert (kept.verdict, kept.tokens, kept.cost) == (Verdict.PARTIAL, tokens, cost)
    for tokens in (0, 63):
        again = decide(cut, case(tokens=tokens), WASTED_UP)
        assert (again.verdict, again.tokens, again.cost) == (Verdict.AGAIN, 0, cost)
        assert decide(cut, case(tokens=tokens, wasted=1001), WASTED_UP).verdict is Verdict.FAILED
    assert decide(cut, case(tokens=3), Policy(keep_from=3)).verdict is Verdict.PARTIAL


def test_a_whole_answer_without_usage_is_kept() -> None:
    """Done, counted by our own tokenizer; its cost is looked up, or by its counts where there is nothing to look up."""
    bare = decide(replace(DONE, usage=None), case(tokens=77), Policy())
    assert (bare.verdict, bare.tokens, bare.cost, bare.kind) == (Verdict.DONE, 77, None, None)
    assert decide(replace(DONE, usage=None, generation_id=""), case(tokens=77), Policy()).cost is None
    priceless = replace(DONE, usage=replace(USAGE, cost=None))
    assert decide(priceless, case(), Policy()).cost is None
    assert decide(replace(priceless, generation_id=""), case(), Policy()).cost == 208_800


@pytest.mark.parametrize("finish", [Finish.STOP, Finish.TOOL_CALLS, Finish.CONTENT_FILTER, Finish.OTHER])
def test_a_complete_answer_is_done(finish: Finish) -> None:
    """Finish, usage, end: done at the cost that the API says, with the tokens that it counted."""
    decision = decide(replace(DONE, finish=finish), case(tries=9, lost=9, wasted=10**9), WASTED_UP)
    assert decision == Decision(Verdict.DONE, USAGE.cost, tokens=100, effect=Effect.ACCEPTED)


def test_length_goes_by_policy() -> None:
    """Keep and drop end the work (drop is export's), redo asks again while tries and waste allow it."""
    long = replace(DONE, finish=Finish.LENGTH)
    for policy in ("keep", "drop"):
        assert decide(long, case(), Policy(on_length=policy)).verdict is Verdict.DONE
    redo = Policy(on_length="redo", waste_limit=1000)
    again = decide(long, case(), redo)
    assert (again.verdict, again.cost, again.tokens) == (Verdict.AGAIN, USAGE.cost, 0)
    assert (again.kind, again.counted) == (FailureKind.LENGTH, True)
    for spent in (case(wasted=1001), case(tries=2)):
        assert decide(long, spent, redo).verdict is Verdict.DONE, "what was paid is kept rather than thrown away"


def test_a_refused_work_is_never_asked_again() -> None:
    """400, 413, 422, moderation: refused, free."""
    decision = decide(fail(FailureKind.REFUSED), case(), Policy())
    assert (decision.verdict, decision.cost, decision.stop) == (Verdict.REFUSED, 0, None)


@pytest.mark.parametrize("kind", [FailureKind.KEY, FailureKind.CREDITS])
def test_key_and_credits_stop_the_run(kind: FailureKind) -> None:
    """The work stays owed, nothing is booked, the run ends."""
    decision = decide(fail(kind), case(tries=99), Policy())
    assert (decision.verdict, decision.cost, decision.counted) == (Verdict.AGAIN, 0, False)
    assert decision.stop is StopReason.KEY


def test_a_misserved_answer_is_paid_and_not_kept() -> None:
    """From elsewhere or in the wrong mode: no tokens, its cost is waste, the endpoint is told, another try if allowed."""
    decision = decide(DONE, case(misserved="served by X"), WASTED_UP)
    assert (decision.verdict, decision.cost, decision.tokens) == (Verdict.AGAIN, USAGE.cost, 0)
    assert (decision.effect, decision.kind) == (Effect.MISSERVED, FailureKind.MISSERVED)
    for spent in (case(tries=2, misserved="x"), case(wasted=1001, misserved="x")):
        assert decide(DONE, spent, WASTED_UP).verdict is Verdict.FAILED
    cut = replace(DONE, cut=CUT, usage=None)
    assert decide(cut, case(tokens=500, misserved="x"), WASTED_UP).tokens == 0


OUTCOMES = st.builds(
    fail,
    st.sampled_from([k for k in FailureKind if k not in (FailureKind.CUT, FailureKind.MISSERVED, FailureKind.LENGTH)]),
    st.sampled_from(Billed),
    usage=st.none() | st.just(USAGE),
) | st.builds(
    Completion,
    content=st.text(),
    finish=st.none() | st.sampled_from(Finish),
    usage=st.none() | st.just(USAGE) | st.just(replace(USAGE, cost=None)),
    cut=st.none() | st.just(CUT),
)
CASES = st.builds(case, *[st.integers(0, 4)] * 2, st.integers(0, 200), st.integers(0, 2000), st.sampled_from(["", "x"]))
POLICIES = st.builds(Policy, st.integers(1, 100), st.sampled_from(["keep", "drop", "redo"]), st.none() | st.just(1000))


@given(OUTCOMES, CASES, POLICIES)
def test_every_decision_is_sound(outcome: Outcome, each: Case, policy: Policy) -> None:
    """Tokens only for answers, known costs never negative, no paid work asked again beyond the waste limit."""
    decision = decide(outcome, each, policy)
    assert (decision.tokens > 0) <= (decision.verdict in (Verdict.DONE, Verdict.PARTIAL))
    assert decision.cost is None or decision.cost >= 0
    if decision.verdict is Verdict.AGAIN and decision.cost != 0:
        assert policy.waste_limit is None or each.wasted <= policy.waste_limit
    if isinstance(outcome, Failure) and outcome.billed is Billed.NO and outcome.usage is None:
        assert not decision.cost


def test_the_policy_is_what_the_config_says() -> None:
    """Waste is a share of the cap, and unbounded without one."""
    text = '[run]\ndir="r"\n[target]\nmodel="m"\n{}\n[[datasets]]\nname="A"\nsource="s"\n'
    budget = '[budget]\nusd=10\nwaste=0.05\nkeep_from=9\non_length="redo"'
    assert policy_of(parse(text.format(budget), Path("RUN.toml"))) == Policy(9, "redo", 500_000_000)
    local = text.format("").replace('"m"', '"m"\nbackend="sglang"\nbase_url="http://127.0.0.1:30000"')
    assert policy_of(parse(local, Path("RUN.toml"))) == Policy()
