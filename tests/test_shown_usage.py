"""How the pages say that commands are used: no command, no option, no choice is shown that is not there."""

from __future__ import annotations

import re

import pytest

from eyas.cli import COMMANDS
from tests.shown import lines, pages, usage

PAGES = {name: pages.page(name) for name in [*pages.names(), "ARCHITECTURE.md"]}
REFERENCE = "docs/commands.md"
FOREIGN = {
    "--data-path": "speculators",
    "--eyas-limit": "bench/peers.py",
    "--full": "bench/peers.py",
    "--incremental-streaming-output": "SGLang",
    "--long": "zstd",
    "--render-endpoint": "speculators",
    "--stream-output": "SGLang",
}
"""Options of other programs that the text speaks of."""


@pytest.mark.parametrize("name", PAGES)
def test_what_a_page_says_of_commands_is_there(name: str) -> None:
    """Each command line, usage line and span of code that begins with `eyas` names what the program has."""
    said = [(each.where, each.bare) for each in lines.commands(PAGES[name]) if each.program == "eyas"]
    spans = [(f"{name}:{each.line}", each.text) for each in PAGES[name].spans if each.text.startswith("eyas ")]
    wrong = [f"{where}: {problem}" for where, text in said + spans for problem in usage.problems(text)]
    assert not wrong, "\n".join(wrong)


def test_options_in_the_text_are_there() -> None:
    """An option that stands alone in the text is one of some command, or of another program that is named here."""
    ours = {name for each in COMMANDS if (of := usage.command(each)) for name in usage.options(of)}
    shown = {(each.text.split()[0], f"{name}:{each.line}") for name in PAGES for each in PAGES[name].spans}
    others = {
        (option, where) for option, where in shown if re.fullmatch(r"--[a-z][\w-]*", option) and option not in ours
    }
    wrong = sorted(f"{where}: no command has {option}" for option, where in others if option not in FOREIGN)
    assert not wrong, "\n".join(wrong)
    assert {option for option, _ in others} == set(FOREIGN), "an entry of FOREIGN stands on no page any more"


@pytest.mark.parametrize("command", COMMANDS)
def test_tables_of_options_are_those_of_their_command(command: str) -> None:
    """The first column of a table of options holds options of the command under whose head it stands."""
    of = usage.command(command)
    assert of is not None
    rows = _rows(f"## eyas {command}")
    wrong = [
        option for row in rows for option in re.findall(r"`(--[a-z][\w-]*)", row) if option not in usage.options(of)
    ]
    assert not wrong, f"{REFERENCE}, eyas {command}: there is no {', '.join(wrong)}"


def _rows(head: str) -> list[str]:
    """The first cells of the tables under a head of the reference."""
    text = (pages.ROOT / REFERENCE).read_text(encoding="utf-8")
    below = text.partition(f"{head}\n")[2].split("\n## ")[0]
    return [line.split("|")[1] for line in below.splitlines() if line.startswith("| `")]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("eyas run RUN.toml [--yes] [--limit N]", ""),
        ("eyas export … --format rows|parquet", ""),
        ("eyas COMMAND --help", ""),
        ("eyas --version", ""),
        ("eyas retry RUNDIR --where 'finish=length'", ""),
        ("eyas go RUN.toml", "there is no command go"),
        ("eyas run RUN.toml --quick", "eyas run has no option --quick"),
        ("eyas run RUN.toml [--yes|--quick]", "eyas run has no option --quick"),
        ("eyas export RUNDIR --format rows|xml", "takes no xml"),
        ("eyas run RUN.toml --limit few", "takes no few"),
        ("eyas --quick", "eyas has no option --quick"),
    ],
)
def test_what_is_not_there_is_told(text: str, problem: str) -> None:
    """A wrong command, option, choice or number is named."""
    found = usage.problems(text)
    assert problem in found[0] if problem else not found
