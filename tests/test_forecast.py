"""Lengths to come: Kaplan-Meier residuals over answers that ended and answers in flight."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyas.forecast import BINS, FEWEST_AT_RISK, Lengths, edges

MOST = 16_384


def seen(tokens: list[int], most: int = MOST) -> Lengths:
    """Lengths after these answers."""
    lengths = Lengths(most)
    for each in tokens:
        lengths.add(each)
    return lengths


def lognormal(number: int, seed: int = 1) -> list[int]:
    """Lengths as Kimi's answers have them."""
    rng = random.Random(seed)
    return [min(MOST - 1, max(1, round(rng.lognormvariate(7.0, 0.8)))) for _ in range(number)]


@given(st.integers(1, 10**6))
def test_bins_are_monotone_and_span_everything(most: int) -> None:
    """Edges rise strictly from 0 to max_tokens, and each length falls into the bin that holds it."""
    found = edges(most)
    assert found[0] == 0
    assert found[-1] == most
    assert all(low < high for low, high in itertools.pairwise(found))
    assert len(found) <= BINS + 1
    lengths = Lengths(most)
    for tokens in {0, 1, most // 2, most - 1, most, most + 9}:
        place = lengths.bin(tokens)
        assert found[place] <= tokens
        assert tokens < found[place + 1] or place == len(found) - 2


def test_nothing_known_runs_to_the_end() -> None:
    """Before any answer ended, and with fewer than five, an answer is taken to use all of max_tokens."""
    assert seen([]).residuals([]).fresh == pytest.approx(MOST)
    assert seen([100] * (FEWEST_AT_RISK - 1)).residuals([]).fresh == pytest.approx(MOST)
    assert seen([100] * FEWEST_AT_RISK).residuals([]).fresh < 200


def test_the_unseen_tail_runs_to_the_end() -> None:
    """Beyond the longest answer seen nothing is known: what flies there is taken to run on to max_tokens."""
    residuals = seen([500] * 100).residuals([4000])
    assert residuals.left(4000) == pytest.approx(MOST - 4000, rel=0.1)


def test_many_finished_answers_give_their_mean() -> None:
    """With nothing in flight the expected length is the mean of what was seen, within the width of the bins."""
    tokens = lognormal(5000)
    lengths = seen(tokens)
    assert lengths.residuals([]).fresh == pytest.approx(sum(tokens) / len(tokens), rel=0.03)
    assert (lengths.finished, lengths.total) == (5000, sum(tokens))


def test_answers_cut_at_max_tokens_are_censored() -> None:
    """They count as long as they are, not as longer."""
    assert seen([MOST] * 50 + [100] * 50).residuals([]).fresh == pytest.approx((MOST + 100) / 2, rel=0.02)


def test_a_long_one_in_flight_has_more_to_come_than_the_naive_rest() -> None:
    """Who has passed the mean is far from done: the naive rest is 0, the residual is not."""
    tokens = lognormal(5000)
    mean = sum(tokens) / len(tokens)
    residuals = seen(tokens).residuals([])
    for so_far in (mean, 2 * mean, 3 * mean):
        later = [each - so_far for each in tokens if each > so_far]
        assert residuals.left(round(so_far)) == pytest.approx(sum(later) / len(later), rel=0.15)
        assert residuals.left(round(so_far)) > max(0.0, mean - so_far)


def test_answers_in_flight_correct_the_bias_of_early_finishers() -> None:
    """When only short ones have ended, those still flying raise the expectation well above the mean of the ended."""
    everything = lognormal(2000)
    ended, flying = [t for t in everything if t <= 1000], [1000 for t in everything if t > 1000]
    naive = sum(ended) / len(ended)
    fresh = seen(ended).residuals(flying).fresh
    assert fresh > 1.5 * naive
    assert fresh >= 0.95 * sum(everything) / len(everything)


@given(st.lists(st.integers(0, 5000), max_size=60), st.lists(st.integers(0, 5000), max_size=60))
def test_forecasts_stay_within_what_can_be(finished: list[int], flying: list[int]) -> None:
    """No residual is negative or reaches beyond max_tokens, and what comes is at least what is there."""
    residuals = seen(finished, 4096).residuals(flying)
    assert all(0 <= mean <= 4096 * 1.001 for mean in residuals.means)
    assert residuals.coming(flying) >= sum(flying)
    assert residuals.coming([]) == 0
    assert 0 < residuals.fresh <= 4096 * 1.001


@given(st.lists(st.integers(0, MOST + 9), max_size=60), st.lists(st.integers(0, MOST + 9), max_size=60))
def test_all_that_flies_is_the_sum_of_each(ended: list[int], flying: list[int]) -> None:
    """Counted by bins, what all answers in flight will bring is what each of them will."""
    residuals = seen(ended).residuals(flying)
    total = residuals.all_flying()
    assert total.left + sum(flying) == pytest.approx(residuals.coming(flying))
    assert total.variance == pytest.approx(sum(map(residuals.spread, flying)))
    assert total.doubt == pytest.approx(sum(map(residuals.doubt, flying)))
