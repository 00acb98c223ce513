"""What a run at servers of one's own shows: tokens, tokens a second and who answered; dollars only where there are some."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from eyas.cli.shown import text
from eyas.engine import findings
from eyas.ledger import nano_dollars
from eyas.report.progress import Line, table
from eyas.report.summary import status
from eyas.report.who import free, words
from eyas.state import State
from eyas.types import Label
from tests.localkit import FREE, HERE, THERE, answered, config

CAP = nano_dollars(100)
LOCAL = {HERE: 30, THERE: 25}
MIXED = {**LOCAL, "chutes/int4": 20}


def screen(state: State, width: int = 0) -> str:
    """What `eyas status` prints."""
    return table(status(state, running=False), width)


def line(state: State, width: int = 0) -> str:
    """What a progress line says."""
    out = io.StringIO()
    Line(out, clock=lambda: 1.0).tick(state, 55, "")
    return out.getvalue()


def test_a_run_without_dollars_speaks_of_none() -> None:
    """No price, no cap, no column of zeros; the yield counts answers."""
    state = answered(LOCAL, label=Label.ENGINE)
    assert free(state)
    for said in (screen(state), line(state)):
        assert "$" not in said
        assert "usd" not in said
        assert "cap" not in said
    assert "yield: 100.0% of the answers have ids that may be exported (strict)" in screen(state)
    assert "cut at max_tokens: 0 answers (0.0%)\n" in screen(state)
    assert screen(State()).endswith("yield: no answer is there yet")


def test_who_answered_is_told() -> None:
    """Answers, tokens and tokens a second of each server, and of all together while they were busy."""
    rows = [row.split() for row in screen(answered(LOCAL)).splitlines()]
    assert [HERE, "30", "15,000", "1,500", "0"] in rows
    assert [THERE, "25", "12,500", "1,250", "0"] in rows
    assert "speed: 2,750 tokens/s of your servers, with 55 in flight, over the 10 s in which they were busy" in screen(
        answered(LOCAL)
    )
    assert f"{HERE} 30, {THERE} 25" in line(answered(LOCAL))
    assert words(answered({HERE: 30})) == "", "one server is the run itself"
    assert words(answered({f"10.0.0.{n}:80": 5 for n in range(5)})) == "", "too many for a line"


def test_both_ways_in_one_run() -> None:
    """Servers and the API stand side by side, dollars only where they were spent; the cap is said again."""
    state = answered(MIXED, cap=CAP, label=Label.ENGINE)
    assert not free(state)
    rows = [row.split() for row in screen(state).splitlines()]
    assert [HERE, "30", "15,000", "1,500", "0", "-"] in rows
    assert ["chutes/int4", "20", "10,000", "-", "0", "0.0200"] in rows
    assert "cap $100.00" in screen(state)
    assert "55 by servers of yours, 20 by the API" in line(state)
    assert "$0.02 of $100.00 spent" in line(state)


def test_imported_answers_are_no_servers() -> None:
    """They took no time and cost nothing: they are counted by themselves, and slow nobody down."""
    state = answered(MIXED, cap=CAP)
    state.providers["import:old.jsonl"] = type(state.providers[HERE])(answers=7, output_tokens=700, prices=FREE)
    assert words(state) == "55 by servers of yours, 20 by the API, 7 imported"
    found = status(state, running=False)
    assert found["throughput"]["answers"] == 55
    assert not found["providers"]["import:old.jsonl"]["local"]


def test_a_run_at_the_api_is_as_it_was() -> None:
    """No table of who answered, and no tokens a second, for what an API does is its own affair."""
    state = answered({"chutes/int4": 30}, cap=CAP)
    assert "who answered" not in screen(state)
    assert words(state) == ""
    found = status(state, running=False)
    assert (found["throughput"], found["providers"]["chutes/int4"]["tokens_per_second"]) == (None, None)


@pytest.mark.parametrize("who", [LOCAL, MIXED, {"chutes/int4": 30}])
def test_status_keeps_its_keys(who: dict[str, int]) -> None:
    """Other programs read them: numbers are 0 and the cap null where no dollar is counted; new keys stand beside them."""
    found = status(answered(who), running=False)
    assert {"schema", "state", "model", "datasets", "money", "yield", "providers", "labels", "habits", "length",
            "alarms", "predicted"} <= found.keys()  # fmt: skip
    assert found["money"].keys() == {"cap", "settled", "reserved", "unknown", "wasted", "leased"}
    for each in found["providers"].values():
        assert {"name", "answers", "output_tokens", "usd", "failures"} <= each.keys()
    if who is LOCAL:
        assert found["money"] == {
            "cap": None,
            "settled": 0.0,
            "reserved": 0.0,
            "unknown": 0.0,
            "wasted": 0.0,
            "leased": 0.0,
        }
    json.dumps(found)


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("who", [LOCAL, MIXED])
def test_the_line_fits(who: dict[str, int], width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says less where there is less room."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", str(width))
    out = Terminal()
    state = answered(who, cap=CAP if who is MIXED else None)
    Line(out, clock=lambda: 1.0).tick(state, 55, "")
    assert len(out.getvalue().strip()) < width
    assert f"{sum(who.values())}/" in out.getvalue() or "spent" in out.getvalue()


def test_an_attempt_that_cost_nothing_shows_no_cost() -> None:
    """`eyas show` names the server and how it ended."""
    attempt: dict[str, Any] = {"attempt": 1, "number": 1, "endpoint": HERE, "provider": HERE, "generation_id": "", "verdict": "done",
                               "kind": None, "detail": "", "reserved_usd": 0.0, "usd": 0.0, "written_off": False}  # fmt: skip
    shown = {"id": "B3/0/t0/s0", "state": "done", "detail": "", "messages": [], "attempts": [attempt]}
    assert text(shown).endswith(f"1. {HERE} (no id): done")
    paid = {**attempt, "reserved_usd": 0.1, "usd": 0.05}
    assert text({**shown, "attempts": [paid]}).endswith("done, $0.050000")


def test_the_doctor_counts_no_dollars_of_such_a_run() -> None:
    """Where the run stands is said in answers."""
    (found,) = findings.run_directory(config(), answered(LOCAL), running=False)
    assert found.says == "run: stopped, 55 of 55 answered"
