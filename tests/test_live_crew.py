"""The live view of a run over many machines: its workers in a table, their money in the bar, and one pulse of all of them."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from eyas.engine.fleet_pulse import streams, together
from eyas.events import Granted, WorkerJoined, WorkerLeft
from eyas.report.end import Stream
from eyas.report.live.pulse import Flying, Lane, Pulse, decode, encode
from eyas.report.live.recent import Recent
from eyas.report.live.rows import ASCII
from eyas.report.live.snapshot import snapshot
from eyas.report.live.view import view
from tests.test_live_view import HOSTILE, NOW, SIZES, fits, pulse_of, run

NANO = 2_500_000_000


def led(workers: int, node: str = "10.0.0.", make: Callable[[], Recent] = run) -> Recent:
    """A run that so many workers take part in, each with money for requests."""
    recent = make()
    for number in range(1, workers + 1):
        recent.take(WorkerJoined(at=NOW, who=number, node=f"{node}{number}"))
        recent.take(Granted(at=NOW, to=number, number=1, nano=NANO, works={}))
    return recent


def pulse(recent: Recent, *gone: int) -> Pulse:
    """The pulse of it; who is gone says nothing."""
    lanes = {number: Lane(250, 300, 120.0) for number in recent.state.workers if number not in gone}
    return pulse_of(recent, workers=lanes)


def test_workers_stand_beside_those_who_answer() -> None:
    """Each with what it has in flight and what is set apart for it; on a small terminal the last of them are one line."""
    recent = led(8)
    large = view(snapshot(recent, pulse(recent), NOW, "running"), 120, 40).text
    for number in range(1, 9):
        assert re.search(rf" {number} 10\.0\.0\.{number} .* 250    300      120        0     0\.00     2\.50\n", large)
    small = view(snapshot(recent, pulse(recent), NOW, "running"), 80, 24).text
    assert re.search(r" 2 10\.0\.0\.2 .* 250    300 ", small)
    assert re.search(r" and 6 more .* 1500 .* 15\.00\n", small)
    assert "$20.00 apart" in small
    assert all(name in small for name in ("B0", "B5", "provider", "worker", "it said no"))


def test_money_set_apart_stands_in_the_bar() -> None:
    """Between what is unknown and what is free, as long as its share of the cap; of a run of one machine it is not spoken of."""
    recent = led(8)
    (bar,) = (line for line in view(snapshot(recent, pulse(recent), NOW, "running"), 80, 24).lines[1:2])
    assert sum(len(piece.text) for piece in bar if set(piece.text) == {"░"}) == 14  # 20 % of 70 columns
    assert "apart" not in view(snapshot(run(), pulse_of(run()), NOW, "running"), 80, 24).text


def test_what_became_of_a_worker_is_said() -> None:
    """In the place of its bar: it left, it was written off, or nothing is heard of it; those at work come first."""
    recent = led(4)
    recent.take(WorkerLeft(at=NOW, who=1))
    recent.take(WorkerLeft(at=NOW, who=2, written_off=True))
    lines = view(snapshot(recent, pulse(recent, 3), NOW, "running"), 120, 40).text.splitlines()
    table = [line.split() for line in lines if " 10.0.0." in line]
    assert [row[:2] for row in table] == [["4", "10.0.0.4"], ["1", "10.0.0.1"], ["2", "10.0.0.2"], ["3", "10.0.0.3"]]
    assert [row[2] for row in table[1:]] == ["left", "written", "away"]
    assert [row[-1] for row in table] == ["2.50", "0.00", "0.00", "2.50"]


def test_nobody_is_called_away_who_may_be_at_work() -> None:
    """A run whose leading process shows nothing of itself: it is not known who is at work."""
    recent = led(2)
    assert "away" not in view(snapshot(recent, None, NOW, "running"), 80, 24).text
    assert view(snapshot(recent, None, NOW, "stopped"), 120, 40).text.count("away") == 2


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("workers", [1, 3, 70])
def test_it_fits(workers: int, size: tuple[int, int]) -> None:
    """However many there are, on any terminal, whatever their machines are called; without dollars too."""
    for make in (run, lambda: run(cap=None, quota=None), lambda: run(30, 40)):
        recent = led(workers, HOSTILE, make)
        fits(view(snapshot(recent, pulse(recent), NOW, "running"), *size), *size)
        fits(view(snapshot(recent, None, NOW, "stopped"), *size), *size)
    text = view(snapshot(led(3), None, NOW, "stopped"), *size, ASCII).text
    assert text.replace("…", "").isascii()


def test_workers_are_one_pulse() -> None:
    """Counts and rates are sums; an endpoint is paused as long as it is everywhere, and aside only if it is everywhere."""
    one = Pulse(
        pid=7,
        at=1.0,
        in_flight=3,
        limit=5,
        lanes={"a": Lane(2, 4, 1.5, 9.0), "b": Lane(1, 1, 0.5, 0.0, "it lies")},
        flying={"A": Flying(3, 30, 6)},
        tokens_per_second=2.0,
    )
    two = Pulse(
        pid=8,
        at=1.0,
        in_flight=4,
        limit=5,
        lanes={"a": Lane(1, 1, 1.0, 2.0, "x"), "b": Lane(0, 1, 0.0, 0.0, "it lies")},
        flying={"A": Flying(1, 10, 2), "B": Flying(3, 0, 0)},
    )
    new = Pulse(pid=0, at=1.0)
    found = together({2: two, 1: one, 3: new}, 5.0)
    assert (found.at, found.in_flight, found.limit, found.tokens_per_second) == (5.0, 7, 10, 2.0)
    assert found.lanes == {"a": Lane(3, 5, 2.5, 2.0), "b": Lane(1, 2, 0.5, 0.0, "it lies")}
    assert found.flying == {"A": Flying(4, 40, 8), "B": Flying(3, 0, 0)}
    assert found.workers == {1: Lane(3, 5, 2.0), 2: Lane(4, 5, 0.0), 3: Lane(0, 0)}
    assert decode(encode(found)) == found
    assert list(streams(found.flying)) == [Stream("A", 10, 2.0)] * 4 + [Stream("B", 0, 0.0)] * 3
    assert together({3: new}, 5.0).tokens_per_second is None
    assert together({}, 5.0) == Pulse(pid=0, at=5.0)
