"""A live view never exceeds its terminal, shows what matters first, and is not moved or coloured by what others say."""

from __future__ import annotations

import io
import re
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from eyas.events import Alarm, PromptAdded, SessionClosed, SessionOpened
from eyas.ledger import nano_dollars
from eyas.report.end import By
from eyas.report.live.frame import Frame, cell, inert
from eyas.report.live.pulse import Flying, Lane, Pulse
from eyas.report.live.recent import Recent
from eyas.report.live.rows import ASCII, ago, clock
from eyas.report.live.snapshot import Snapshot, snapshot
from eyas.report.live.view import LEAST_HEIGHT, LEAST_WIDTH, view
from eyas.report.summary import standing
from eyas.state import State
from eyas.types import FailureKind, Label, StopReason, Verdict, Work
from tests.test_live_recent import timed
from tests.test_state import Labelled, intent, settled

HOSTILE = "\x1b[2J\x1b]0;pwned\x07\r\t\b\x9b31m\u202eevil\u200b\u0301 日本語 👩‍👩‍👧 \uff57\uff49\uff44\uff45"
"""Escapes, carriage return, tab, backspace, C1, bidi, no width, twice the width."""
SIZES = ((80, 24), (120, 40), (60, 15), (40, 10), (200, 60), (1, 1))
NOW = 100.0


def run(
    sets: int = 6, servers: int = 8, name: str = "B", *, cap: str | None = "100", quota: int | None = 7_000
) -> Recent:
    """A run of some sets and endpoints: an answer and an error of each."""
    recent, numbers = Recent(State()), count(1)
    names = [f"{name}{number}" for number in range(sets)]
    limit = None if cap is None else nano_dollars(cap)
    recent.take(SessionOpened(at=40.0, model=f"vendor/{name}", cap=limit, quotas=dict.fromkeys(names, quota)))
    for each in names:
        for prompt in range(20):
            recent.take(PromptAdded(at=40.0, dataset=each, prompt_id=str(prompt), tokens=9))
    for server in range(servers):
        tag, number = f"{name}server{server}/int4", next(numbers)
        recent.take(intent(number, Work(names[server % sets], "0", sample=server), tag=tag))
        cost = None if cap is None else 5_000_000
        recent.take(settled(number, Verdict.DONE, cost or 0, 500, first_token=1.0, provider=tag))
        recent.take(Labelled(at=90.0, attempt=number, label=Label.STREAMED if server % 3 else Label.MISMATCH))
        number = next(numbers)
        recent.take(intent(number, Work(names[server % sets], "1", sample=server), tag=tag))
        kind = list(FailureKind)[server % len(FailureKind)]
        recent.take(settled(number, Verdict.AGAIN, 0, kind=kind, detail=f"{name}: it said no"))
    recent.last = NOW
    return recent


def pulse_of(recent: Recent, **more: object) -> Pulse:
    """A process that asks all of them."""
    lanes = {tag: Lane(100 + number, 200, 10.5) for number, tag in enumerate(recent.state.providers)}
    flying = dict.fromkeys(recent.state.datasets, Flying(30, 900))
    values: dict[str, object] = {"lanes": lanes, "flying": flying, "ends_at": NOW + 1080, "by": By.COMPLETE}
    values |= {"in_flight": 1998, "limit": 2000, "tokens_per_second": 21_034.0, "lag": 0.012, "commit": 0.009}
    return Pulse(pid=1, at=NOW, **{**values, **more})


def shown(recent: Recent, **more: object) -> Snapshot:
    """What is seen of it while it runs."""
    return snapshot(recent, pulse_of(recent, **more), NOW, "running")


def fits(frame: Frame, width: int, height: int) -> None:
    """No line is wider than the terminal, none too many, and no character moves anything."""
    assert len(frame.lines) <= max(height, LEAST_HEIGHT)
    for line in frame.lines:
        text = "".join(piece.text for piece in line)
        assert cell_len(text) <= max(width, LEAST_WIDTH)
        assert all(c == " " or (c.isprintable() and cell_len(c) > 0) for c in text), repr(text)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("servers", [1, 3, 12, 40])
@pytest.mark.parametrize("sets", [1, 6, 30])
def test_it_fits(sets: int, servers: int, size: tuple[int, int]) -> None:
    """Whatever there is of sets, endpoints and errors, on any terminal."""
    for recent in (run(sets, servers), run(sets, servers, cap=None, quota=None), run(sets, servers, HOSTILE)):
        recent.take(Alarm(at=NOW, detail=HOSTILE))
        fits(view(shown(recent), *size), *size)
        fits(view(snapshot(recent, None, NOW, "stopped"), *size), *size)


@given(timed(), st.booleans(), st.integers(1, 200), st.integers(1, 60))
def test_any_history_can_be_shown(events: list[object], live: bool, width: int, height: int) -> None:
    """With a process that tells of itself, and without."""
    recent = Recent(State())
    for event in events:
        recent.take(event)
    where = standing(recent.state, running=live)
    fits(view(snapshot(recent, pulse_of(recent) if live else None, 5000.0, where), width, height), width, height)


def test_all_that_matters_stands_on_a_small_terminal() -> None:
    """80 by 24: money, speed, errors, every set, endpoints, labels, yield, five errors; the line count is used up."""
    text = view(shown(run()), 80, 24).text
    assert text.count("\n") == 23
    for words in (
        "done in about 18 min", "$0.04 settled", "$0.00 in flight", "$0.00 unknown", "of $100.00", "21,034 tokens/s",
        "1,998/2,000 in flight", "first token 1.0 s, p95 1.0 s", "429, 503", "12 ms behind", "9 ms", "B0", "B5",
        "of   7.0k tokens", "Bserver0/int4", "100    200", "and 4 more", "streamed 62%  mismatch 38%", "62.5% strict",
        "waste 0.0%", "cut at max_tokens 0.0%", "it said no",
    ):  # fmt: skip
        assert words in text, words
    assert text.count("it said no") == 5


def test_a_large_terminal_shows_every_endpoint_and_what_it_cost() -> None:
    """120 by 40, eight sets and twelve endpoints."""
    text = view(shown(run(8, 12)), 120, 40).text
    assert all(f"Bserver{number}/int4" in text for number in range(12))
    assert all(f"B{number} " in text for number in range(8))
    assert re.search(r"provider .* usd\n", text)
    assert "in flight\n" in text


@pytest.mark.parametrize("colours", [None, "truecolor"])
def test_text_of_others_is_inert(colours: str | None) -> None:
    """Model, tags, sets, errors and alarms: nothing but our own colours reaches the terminal."""
    recent, out = run(2, 2, HOSTILE), io.StringIO()
    recent.take(Alarm(at=NOW, detail=HOSTILE))
    console = Console(file=out, force_terminal=True, color_system=colours, width=100, highlight=False)
    console.print(view(shown(recent, stopping=HOSTILE), 100, 30))
    said = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue()) if colours else out.getvalue()
    assert not [c for c in said if c != "\n" and not c.isprintable()]
    assert "evil" in said
    assert "日本語" in said


@given(st.text(), st.integers(0, 40))
def test_a_cell_has_its_width(text: str, width: int) -> None:
    """Exactly, on both sides, with any text."""
    assert cell_len(cell(text, width)) == cell_len(cell(text, width, right=True)) == width
    assert inert(inert(text)) == inert(text)


def test_a_run_without_dollars_shows_none() -> None:
    """No money, but tokens a second of each server."""
    text = view(shown(run(1, 2, cap=None)), 80, 24).text
    assert "$" not in text
    assert "money" not in text
    assert "tokens/s" in text
    assert re.search(r"Bserver1/int4 .* 10 ", text)


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        (StopReason.COMPLETE, "ended"), (StopReason.CAP, "raise [budget] usd to go on"),
        (StopReason.INTERRUPTED, "`eyas run RUN.toml` goes on"), (StopReason.KEY, "stopped by key or credits"),
        (None, "not running"),
    ],
)  # fmt: skip
def test_how_a_run_ended_is_said(reason: StopReason | None, says: str) -> None:
    """And what to do next; a killed one is not running."""
    recent = run()
    if reason is not None:
        recent.take(SessionClosed(at=NOW, reason=reason))
    text = view(snapshot(recent, None, 10_000.0, standing(recent.state, running=False)), 80, 24).text
    assert says in text.splitlines()[0]
    assert "in flight/" not in text
    assert reason is None or "1:00" in text.splitlines()[0]


def test_a_session_that_ends_says_what_may_land() -> None:
    """After ^C the title says so."""
    assert "ending 1:00, 1,998 in flight may land" in view(shown(run(), stopping="interrupted"), 80, 24).text


def test_an_endpoint_not_asked_yet_stands_behind_those_that_answer() -> None:
    """Its price is not known yet; so it is not the cheapest."""
    recent = run(1, 2)
    lanes = {"a/new": Lane(0, 10), **{tag: Lane(1, 10) for tag in recent.state.providers}}
    lines = view(shown(recent, lanes=lanes), 80, 24).text.splitlines()
    found = [line.split()[0] for line in lines if re.match(r" (a/new|Bserver\d/int4) ", line)]
    assert found == ["Bserver0/int4", "Bserver1/int4", "a/new"]


def test_an_endpoint_set_aside_says_why() -> None:
    """In the place of its bar."""
    recent = run(1, 2)
    lanes = {tag: Lane(0, 10, aside="it lies") for tag in recent.state.providers}
    assert "aside: it lies" in view(shown(recent, lanes=lanes), 80, 24).text


def test_a_terminal_without_unicode_gets_other_bars() -> None:
    """Every character of our own is ASCII there."""
    assert view(shown(run()), 80, 24, ASCII).text.replace("…", "").isascii()


def test_times_in_words() -> None:
    """Short ones and long ones."""
    assert [clock(7), clock(751), clock(3751)] == ["0:07", "12:31", "1:02:31"]
    assert [ago(-1), ago(65), ago(300), ago(9000), ago(400_000)] == ["0 s", "65 s", "5 min", "2 h", "5 d"]
