"""Tokens a second of one's own servers: from the time in which they were busy, whatever else the run's clock shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyas.providers.throughput import FEWEST, Span, own, spans, throughput
from tests.localkit import answered

ROUND = [Span(100.0, 110.0, 500)] * 40


def test_a_full_round() -> None:
    """Forty at once, 500 tokens each in ten seconds: 2,000 tokens a second, forty in flight."""
    found = throughput(ROUND)
    assert found is not None
    assert found.tps == pytest.approx(2000)
    assert (found.in_flight, found.seconds, found.answers) == (40, 10, 40)


def test_gaps_and_tails_do_not_slow_it() -> None:
    """A night between two sessions, and one long last answer, count as no time of the servers."""
    later = [Span(each.begin + 86_400, each.end + 86_400, each.tokens) for each in ROUND]
    tail = Span(86_505.0, 87_000.0, 4950)
    found = throughput([*ROUND, *later, tail])
    assert found is not None
    assert found.tps == pytest.approx(2000, rel=0.01)
    assert found.seconds == pytest.approx(20)


def test_a_small_pilot_before_a_full_run_does_not_count_against_it() -> None:
    """What flew in fives says nothing of what the servers do with forty."""
    pilot = [Span(10.0 * n, 10.0 * n + 5, 400) for n in range(5)]
    found = throughput([*pilot, *ROUND])
    assert found is not None
    assert found.tps == pytest.approx(2000)


def test_few_answers_tell_nothing() -> None:
    """Below so many there is no figure rather than a wrong one."""
    assert throughput(ROUND[: FEWEST - 1]) is None
    assert throughput([]) is None


SPAN = st.tuples(st.floats(0, 1e6), st.floats(0.1, 1000), st.integers(0, 20_000))


@given(st.lists(SPAN, min_size=FEWEST, max_size=60), st.floats(0.5, 20))
def test_twice_as_fast_is_twice_as_many(rows: list[tuple[float, float, int]], factor: float) -> None:
    """Time that runs faster by a factor gives that many more tokens a second; no more flies than there are answers."""
    found = throughput(Span(begin, begin + width, tokens) for begin, width, tokens in rows)
    quicker = throughput(Span(begin / factor, begin / factor + width / factor, tokens) for begin, width, tokens in rows)
    assert found is not None
    assert quicker is not None
    assert quicker.tps == pytest.approx(factor * found.tps, rel=1e-3, abs=1e-3)
    assert found.in_flight <= len(rows)
    most = sum(tokens / width for _, width, tokens in rows)
    assert found.tps <= most * (1 + 1e-6) + 1e-6


def test_only_servers_without_a_price_are_ones_own() -> None:
    """In a run that asked both, an API's endpoints are told apart by their price."""
    state = answered({"127.0.0.1:8000": 30, "chutes/int4": 10})
    assert own(state) == {"127.0.0.1:8000"}
    assert {tag: len(found) for tag, found in spans(state, own(state)).items()} == {"127.0.0.1:8000": 30}
    assert spans(state, ()) == {}
