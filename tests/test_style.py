"""Colour: on a terminal only, and never where somebody said that there should be none."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyas.cli import say
from eyas.cli.style import Style, coloured

ON, OFF = Style(on=True), Style(on=False)
CODES = re.compile(r"\x1b\[[\d;]*m")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """It does."""
        return True


@pytest.mark.parametrize(
    ("environment", "on"),
    [
        ({}, True),
        ({"TERM": "xterm-256color"}, True),
        ({"NO_COLOR": ""}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": "0"}, False),
        ({"TERM": "dumb"}, False),
    ],
)
def test_when_there_is_colour(environment: dict[str, str], on: bool) -> None:
    """NO_COLOR that is set and not empty, whatever it says, and TERM=dumb turn it off; a pipe never has any."""
    assert coloured(Terminal(), environment) is on
    assert not coloured(io.StringIO(), environment)


@given(text=st.text(st.characters(exclude_characters="\x1b")), number=st.integers(0, 9))
def test_colour_changes_no_text(text: str, number: int) -> None:
    """Without the codes it is the same text; without a terminal there are no codes; what was set is ended."""
    for name in ("bold", "dim", "faint_line", "good", "warned", "bad", "named", "told", "ending", "standing"):
        drawn = getattr(ON, name)(text)
        assert CODES.sub("", drawn) == text
        assert getattr(OFF, name)(text) == text
        assert len(re.findall(r"\x1b\[0m", drawn)) * 2 == len(CODES.findall(drawn))
    assert CODES.sub("", ON.block(text, number)) == text == OFF.block(text, number)


def test_words_have_the_colour_of_what_they_mean() -> None:
    """Green for what is well, yellow for what may need a look, red for what failed; nothing for another word."""
    assert [ON.standing(each)[:5] for each in ("done", "warn", "failed", "near")] == [
        "\x1b[32m",
        "\x1b[33m",
        "\x1b[31m",
        "\x1b[33m",
    ]
    assert ON.standing("chutes") == "chutes"
    assert ON.told("noted\nwarning: low\nnote: x") == "noted\n\x1b[33mwarning\x1b[0m: low\n\x1b[33mnote\x1b[0m: x"


@pytest.mark.parametrize(("stream", "begins"), [(Terminal(), "\x1b[31meyas:\x1b[0m it"), (io.StringIO(), "eyas: it")])
def test_errors_bear_the_name_of_the_program(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, begins: str) -> None:
    """In red on a terminal."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", stream)
    say.say_error("it failed: do this")
    assert stream.getvalue() == f"{begins} failed: do this\n"
