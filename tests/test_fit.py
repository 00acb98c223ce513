"""Nothing that a command says is wider than the terminal, and no word or command is broken in two."""

from __future__ import annotations

import io
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyas.cli import export
from eyas.cli.say import NARROWEST, USUAL, columns_of
from eyas.ledger import Money
from eyas.report.fit import fit
from eyas.report.progress import Line, table
from eyas.report.summary import status
from eyas.state import State

WORDS = st.lists(st.from_regex(r"[a-z./-]{1,20}", fullmatch=True), max_size=40)


@given(
    WORDS, st.integers(26, 120), st.sampled_from(["", "  ", "    "])
)  # 4 to begin with, 2 more, and the longest word
def test_no_line_is_wider_and_no_word_is_lost(words: list[str], width: int, lead: str) -> None:
    """The same words in the same order, whole, within the width."""
    text = lead + " ".join(words)
    lines = fit(text, width).split("\n")
    assert " ".join(lines).split() == words
    assert all(len(line) <= width for line in lines)


@given(WORDS)
def test_without_a_terminal_text_is_as_it_was(words: list[str]) -> None:
    """A pipe or a file gets one line, for other programs to cut."""
    text = " ".join(words)
    assert fit(text, 0) == text


def test_a_command_stays_on_one_line() -> None:
    """It can be copied, unless it is wider than the terminal by itself; lines that are there stay lines."""
    text = "say first what it is, then type `eyas run RUN.toml --limit 20` and wait\n  second"
    assert fit(text, 50).split("\n") == [
        "say first what it is, then type",
        "  `eyas run RUN.toml --limit 20` and wait",
        "  second",
    ]
    assert max(map(len, fit(f"`eyas run {' '.join(['part'] * 30)}`", 40).split("\n"))) <= 40


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """It is."""
        return True

    def fileno(self) -> int:
        """Of no terminal that the system knows."""
        raise OSError


def test_the_width_is_that_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """None without a terminal, the usual one where it does not tell, never less than can be read."""
    assert columns_of(io.StringIO()) == 0
    assert columns_of(Terminal()) == USUAL
    monkeypatch.setattr(Terminal, "fileno", lambda self: 1)
    monkeypatch.setattr(os, "get_terminal_size", lambda number: os.terminal_size((7, 24)))
    assert columns_of(Terminal()) == NARROWEST


def lines(width: int, monkeypatch: pytest.MonkeyPatch, *errors: str) -> list[str]:
    """What a run says, a tick an error, in a terminal of that width."""
    monkeypatch.setenv("COLUMNS", str(width))
    times = iter(range(0, 100, 10))
    line = Line(Terminal(), clock=lambda: float(next(times)))
    for error in errors:
        line.tick(State(money=Money(cap=0)), 2000, error)
    assert isinstance(line.out, Terminal)
    return line.out.getvalue().splitlines()


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_the_progress_line_is_never_cut(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says less where there is less room, money always; an error that does not fit stands below, once."""
    error = "chutes/int4: rate_limit: 429 Chutes: Provider returned error (upstream is busy)"
    said = lines(width, monkeypatch, error, error)
    assert all(len(line) < width and "…" not in line for line in said)
    assert sum("$0.00 of $0.00 spent" in line for line in said) == 2
    assert " ".join(said).count("rate_limit:") == (2 if width == 200 else 1)


def finished(**counts: int) -> dict[str, Any]:
    """The figures of a run with one set."""
    figures = status(State(money=Money(cap=0)), running=False)
    ends = dict.fromkeys(("done", "partial", "refused", "failed", "unknown", "skipped", "pending"), 0)
    return {
        **figures,
        "datasets": {"prompts": {"prompts": 60, **ends, "output_tokens": 20_199, "usd": 0.0421, **counts}},
    }


def test_a_narrow_table_leaves_out_zeros() -> None:
    """Columns in which nothing stands are left out where the table would be too wide, and only there."""
    assert table(finished(done=60)).splitlines()[0].split()[3:9] == [
        "partial", "refused", "failed", "unknown", "skipped", "pending",
    ]  # fmt: skip
    head, row, *_ = table(finished(done=55, failed=5), 80).splitlines()
    assert head.split() == ["set", "prompts", "done", "failed", "tokens", "usd"]
    assert row.split() == ["prompts", "60", "55", "5", "20,199", "0.0421"]
    assert "refused" in table(finished(done=60), 120)


def test_a_run_that_paid_nothing_has_no_yield() -> None:
    """It is not said to be 0 %."""
    assert table(finished()).endswith("yield: nothing is paid yet")


def test_a_narrow_yield_table_leaves_out_steps_without_a_loss() -> None:
    """The first step, the last one, and all at which something was lost stay."""
    rows = [
        ("set", "prompts", "answers", "strict", "kept", "in length", "supervised tokens", "yield"),
        ("B3", "9 $2", "9 $2", "7 $1", "7 $1", "7 $1", "99 $1", "50.0%"),
    ]
    assert export._shorter(rows) == [
        ("set", "prompts", "strict", "supervised tokens", "yield"),
        ("B3", "9 $2", "7 $1", "99 $1", "50.0%"),
    ]
