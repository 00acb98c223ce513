"""Lengths of answers: the product-limit curve, the stated law, and how sure either is."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyas.events import AnyEvent, Intent, SessionOpened, Settled
from eyas.plan.curve import Curve, kaplan_meier, lognormal
from eyas.plan.estimate import FEWEST, PRIOR_SPEED, Seen, Source, estimate, seen, speed
from eyas.state import fold
from eyas.types import Finish, Prices, Verdict, Work
from tests import plankit

LENGTHS = st.lists(st.integers(0, 20_000), max_size=60)


@given(LENGTHS.filter(bool))
def test_answers_that_all_ended_give_their_own_mean_and_spread(ended: list[int]) -> None:
    """Without a cut answer the curve is the answers themselves."""
    curve = kaplan_meier(ended, [])
    mean = sum(ended) / len(ended)
    assert curve.mean(20_000) == pytest.approx(mean, abs=1e-6)
    assert curve.variance(20_000) == pytest.approx(sum((e - mean) ** 2 for e in ended) / len(ended), rel=1e-6, abs=1e-3)
    for share in (0.001, 0.123, 0.517, 0.913):
        assert curve.quantile(share, 20_000) == pytest.approx(
            sorted(ended)[max(0, math.ceil(share * len(ended)) - 1)], abs=1
        )


@given(LENGTHS, LENGTHS, st.integers(1, 30_000))
def test_a_curve_falls_and_its_figures_stay_within_what_can_be(ended: list[int], cut: list[int], most: int) -> None:
    """Shares fall, the mean rises with max_tokens, what lies beyond a length is what is missing of the mean."""
    curve = kaplan_meier(ended, cut)
    assert curve.alive[0] <= 1.0
    assert all(high >= low >= 0 for high, low in itertools.pairwise(curve.alive))
    assert 0 <= curve.mean(most) <= most
    assert curve.mean(most) <= curve.mean(most + 1) <= curve.mean(most) + 1
    assert curve.excess(most / 2, most) == pytest.approx(curve.mean(most) - curve.mean(most / 2))
    assert curve.excess(-5, most) == pytest.approx(curve.mean(most))
    assert curve.variance(most) >= 0


def test_cut_answers_would_have_gone_on() -> None:
    """Half of the answers cut at 1000: the curve stays at a half from there, whatever max_tokens becomes."""
    curve = kaplan_meier([100] * 50, [1000] * 50)
    assert curve.beyond(999) == curve.beyond(5000) == 0.5
    assert curve.mean(1000) == pytest.approx(550)
    assert curve.mean(3000) == pytest.approx(1550)


@given(st.floats(1, 15_000), st.floats(0.3, 1.5))
def test_a_stated_law_has_the_mean_that_was_stated(mean: float, sigma: float) -> None:
    """Answers cut at max_tokens have the expected tokens on average, however heavy the tail is."""
    assert lognormal(mean, sigma, 16_384).mean(16_384) == pytest.approx(mean, rel=0.02, abs=0.5)


def _drawn(number: int) -> list[int]:
    rng = random.Random(5)
    return [max(1, round(rng.lognormvariate(7.0, 0.8))) for _ in range(number)]


def test_answers_come_before_what_is_expected_and_that_before_the_prior() -> None:
    """The order of sources; fewer than five answers tell nothing; more answers leave less doubt."""
    of = plankit.config()
    assert estimate(of, "B3", None).source is Source.PRIOR
    assert estimate(of, "B3", Seen(_drawn(FEWEST - 1))).source is Source.PRIOR
    few, many = (estimate(of, "B3", Seen(_drawn(number))) for number in (8, 800))
    assert few.source is many.source is Source.ANSWERS
    assert many.doubt < 0.04 < few.doubt / 4
    stated = of.datasets[0].model_copy(update={"expected_tokens": 900})
    found = estimate(of.model_copy(update={"datasets": (stated, *of.datasets[1:])}), "B3", None)
    assert (found.source, round(found.curve.mean(16_384), -1)) == (Source.EXPECTED, 900)
    assert many.doubt < found.doubt < estimate(of, "B3", None).doubt


def test_thinking_off_is_another_prior() -> None:
    """Instant answers are taken to be a fraction as long."""
    of = plankit.config()
    instant = of.model_copy(update={"target": of.target.model_copy(update={"thinking": False})})
    assert estimate(instant, "B3", None).curve.mean(16_384) * 4 < estimate(of, "B3", None).curve.mean(16_384)


def _state(settled: list[Settled]) -> list[AnyEvent]:
    events: list[AnyEvent] = [SessionOpened(at=0.0, model="m", cap=None, quotas={"B3": None})]
    for each in settled:
        work = Work("B3", f"{each.attempt:016x}")
        events += [
            Intent(at=1.0, attempt=each.attempt, work=work, number=1, tag="p", prices=Prices(1, 1), reserved=9),
            each,
        ]
    return events


def _answer(attempt: int, tokens: int, verdict: Verdict = Verdict.DONE, finish: Finish | None = Finish.STOP) -> Settled:
    return Settled(at=2.0, attempt=attempt, verdict=verdict, cost=5, tokens=tokens, finish=finish, seconds=tokens / 20)


def test_what_a_run_has_seen() -> None:
    """Whole answers ended; those cut at max_tokens or by a broken stream were cut; failed ones tell nothing."""
    state = fold(
        _state(
            [
                _answer(1, 300),
                _answer(2, 400, finish=Finish.LENGTH),
                _answer(3, 100, Verdict.PARTIAL, None),
                _answer(4, 0, Verdict.FAILED, None),
            ]
        )
    )
    assert seen(state) == {"B3": Seen([300], [400, 100])}
    assert speed(state) == PRIOR_SPEED
    assert speed(fold(_state([_answer(n, 100 + n) for n in range(1, 40)]))).expected == pytest.approx(20)


def test_an_empty_curve_never_ends() -> None:
    """Where nothing is known answers run to max_tokens."""
    assert Curve.of([0.0], [1.0]).mean(500) == kaplan_meier([], []).mean(500) == 500
