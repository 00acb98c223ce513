"""The examples of `--help`: each is a command line that eyas understands, and every command has some."""

from __future__ import annotations

import shlex

import click
import pytest
from click.testing import CliRunner

from eyas.cli import COMMANDS, eyas
from eyas.cli.examples import EXAMPLES, FIRST_EVENING, Example

ALL = [*FIRST_EVENING, *(example for examples in EXAMPLES.values() for example in examples)]
ID = "b4/40aaea0adccb76b2/t0/s0"


def words(example: Example) -> list[str]:
    """The arguments of an example, as a shell cuts them; what follows `>` is the shell's."""
    return shlex.split(example.line.partition(" >")[0].replace(" ID", f" {ID}"))


@pytest.mark.parametrize("example", ALL, ids=lambda example: example.line)
def test_an_example_is_understood(example: Example) -> None:
    """Its command, options, choices and numbers exist."""
    program, name, *arguments = words(example)
    assert program == "eyas"
    found = eyas.get_command(click.Context(eyas), name)  # pyright: ignore[reportAttributeAccessIssue]
    found.make_context(name, arguments)


def test_every_command_has_examples() -> None:
    """There is no command without one, and no example of another command."""
    assert set(EXAMPLES) == set(COMMANDS)
    for name, examples in EXAMPLES.items():
        assert all(words(example)[1] == name for example in examples)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_them_as_they_are_typed(name: str) -> None:
    """An example stands on a line of its own, however narrow the terminal."""
    said = CliRunner().invoke(eyas, [name, "--help"], terminal_width=40, prog_name="eyas").output
    for example in EXAMPLES[name]:
        assert f"\n  {example.line}\n" in said


def test_the_first_page_names_every_command_and_a_first_evening() -> None:
    """Groups of commands, then five commands from a prompt file to rows, each on one line of 80 columns."""
    said = CliRunner().invoke(eyas, ["--help"], terminal_width=80, prog_name="eyas").output
    assert all(f"\n  {name} " in said for name in COMMANDS)
    assert len(FIRST_EVENING) == 5
    assert all(f"\n  {example.line}  " in said for example in FIRST_EVENING)
    assert max(map(len, said.splitlines())) <= 80
