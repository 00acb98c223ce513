"""Minutes: a run played through its slots, with every request reserved in full or as it is expected."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyas.plan.minutes import FIRST_TOKEN, MOST_PLAYED, Job, Mode, Part, minutes
from tests.plankit import config, estimate, ground, plan, wall

MILLION = 1_000_000


def part(answers: float, tokens: float = 600.0, **more: float) -> Part:
    """Answers of one length, at one nano-dollar a token."""
    money = {"deviation": 0.0, "prompt": 0.0, "token": 1.0, "reserved": 16_384.0, "stops": 1.0, **more}
    return Part(answers, lambda _: tokens, **money)


def test_a_run_takes_as_many_rounds_as_its_slots_need() -> None:
    """A hundred answers of 600 tokens in ten slots at 10 tokens/s: ten rounds of a minute and the first token."""
    job = Job((part(100),), 10, None, 10.0)
    assert minutes(job, Mode.STRICT) == pytest.approx(10 * (60 + FIRST_TOKEN) / 60)
    assert minutes(job, Mode.METERED) == minutes(job, Mode.STRICT)


def test_reservations_leave_slots_empty_and_metering_fills_them() -> None:
    """Where the money holds ten reservations, strict flies ten at first; metered flies as many as it will cost."""
    job = Job((part(1000, deviation=200.0),), 500, 700_000.0, 10.0)
    assert minutes(job, Mode.METERED) < minutes(job, Mode.STRICT) / 3


def test_what_cannot_be_ended_is_reserved_in_full_in_either_mode() -> None:
    """Metered is strict where no provider ends its bill with the stream."""
    job = Job((part(1000, stops=0.0),), 500, 700_000.0, 10.0)
    assert minutes(job, Mode.METERED) == minutes(job, Mode.STRICT)


def test_the_run_ends_where_no_reservation_fits() -> None:
    """Money for three answers, of which the last leaves less than a reservation: three rounds of one, no more."""
    job = Job((part(1000, tokens=6000.0, reserved=6000.0),), 1, 20_000.0, 10.0)
    assert minutes(job, Mode.STRICT) == pytest.approx(3 * (600 + FIRST_TOKEN) / 60)
    assert minutes(Job((part(5),), 5, 10.0, 10.0), Mode.STRICT) == 0.0
    assert minutes(Job((), 5, 10.0, 10.0), Mode.STRICT) == 0.0


def test_a_large_run_is_played_smaller_and_takes_as_long() -> None:
    """Ten times the answers in ten times the slots take the same minutes, though they are not all played."""
    small, large = (Job((part(MOST_PLAYED * size),), 2000 * size, None, 10.0) for size in (1, 10))
    assert minutes(large, Mode.STRICT) == pytest.approx(minutes(small, Mode.STRICT), rel=0.01)


@settings(max_examples=40)
@given(st.integers(1, 300), st.integers(1, 50), st.floats(1, 100), st.floats(10, 4000), st.floats(1e4, 1e7))
def test_nothing_ends_sooner_than_its_slots_allow(answers, slots, speed, tokens, room) -> None:  # type: ignore[no-untyped-def]  # hypothesis
    """Without a cap the time is that of the rounds; a cap never makes a whole run faster, metered is never slower."""
    free, bound = (Job((part(answers, tokens),), slots, cap, speed) for cap in (None, room))
    assert minutes(free, Mode.STRICT) * 60 == pytest.approx(math.ceil(answers / slots) * (FIRST_TOKEN + tokens / speed))
    if room >= answers * tokens + 16_384:  # so that all of it is asked
        assert minutes(bound, Mode.STRICT) >= minutes(free, Mode.STRICT) * (1 - 1e-9)
        assert minutes(bound, Mode.METERED) <= minutes(bound, Mode.STRICT) * (1 + 1e-9)


def test_metered_is_advised_where_reservations_fill_the_cap() -> None:
    """The founding run: $72 of reservations under a cap of $100 make strict crawl at its end; far below it does not."""
    tight = plan(ground(config(7 * MILLION)))
    assert tight["modes"]["metered"]["expected"] < 0.9 * tight["modes"]["strict"]["expected"]
    assert tight["advised_mode"] == "metered"
    assert tight["minutes"] == tight["modes"]["strict"], "the minutes are those of RUN.toml's mode"
    assert plan(ground(config(MILLION)))["advised_mode"] == "strict"
    for each in tight["modes"].values():
        assert 0 < each["low"] <= each["expected"] <= each["high"]


def test_the_more_is_unknown_the_wider_are_the_minutes() -> None:
    """Without a quota the tokens that may come widen the band beyond the streams' speed."""
    known, unknown = (
        plan(ground(config(), works=3000, guess=estimate(doubt=doubt)), wall(10_000))["minutes"]
        for doubt in (0.01, 0.8)
    )
    assert unknown["high"] / unknown["low"] > 1.5 * known["high"] / known["low"]
