"""What commands take is declared apart from their work: it agrees with that work, and help needs none of it."""

from __future__ import annotations

import importlib
import inspect
import json
import keyword
import subprocess
import sys
from typing import get_args

import click
import pytest

from eyas.answers import Form
from eyas.cli import COMMANDS, GROUPS, eyas
from eyas.cli.command import Command
from eyas.cli.declared import begin, change, check, shared, tools, write
from eyas.cli.plan import numbers
from eyas.config import OPENROUTER
from eyas.config.target import Backend
from eyas.exporters import FORMATS
from eyas.plan.scenarios import QUOTAS
from eyas.report.starter import Keeping
from eyas.sim.engines import WIRES
from eyas.sim.scenarios import SCENARIOS

HEAVY = (
    "pydantic",
    "msgspec",
    "numpy",
    "rich",
    "asyncio",
    "httptools",
    "tiktoken",
    "uvloop",
    "jinja2",
    "zstandard",
    "sqlite3",
)
"""What help must do without: a tenth of a second or more, all together nearly a whole one."""


def command(name: str) -> Command:
    """The command of that name, as it is declared."""
    found = eyas.get_command(click.Context(eyas), name)  # pyright: ignore[reportAttributeAccessIssue]
    assert isinstance(found, Command)
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_takes_what_its_work_takes(name: str) -> None:
    """The names that click hands over are those of the function that does the work; every option says what it is for."""
    module = importlib.import_module(f"eyas.cli.{name}_" if keyword.iskeyword(name) else f"eyas.cli.{name}")
    parameters = inspect.signature(module.command).parameters
    given = {str(param.name) for param in command(name).params}
    open_ended = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    wanted = {each.name for each in parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD}
    assert wanted <= given if open_ended else wanted == given
    assert all(param.help for param in command(name).params if isinstance(param, click.Option))
    assert command(name).help


def test_choices_are_those_of_the_code() -> None:
    """The few names that are written down twice, to keep help light, are the same in both places."""
    assert set(shared.BACKENDS) == set(get_args(Backend))
    assert set(tools.SCENARIOS) == set(SCENARIOS)
    assert set(tools.ENGINES) == set(WIRES)
    assert set(write.FORMATS) == set(FORMATS)
    assert set(change.FORMS) == {form.value for form in Form}
    assert check.OPENROUTER == OPENROUTER
    assert numbers(begin.QUOTAS) == tuple(QUOTAS)
    option = next(param for param in begin.init.params if param.name == "data_collection")
    assert isinstance(option.type, click.Choice)
    assert set(option.type.choices) == {each.value for each in Keeping}


def modules(*arguments: str) -> set[str]:
    """Modules that a call has loaded when it is over."""
    code = (
        "import json, sys\nfrom eyas.cli import main\ntry:\n    main(sys.argv[1:])\n"
        "except SystemExit:\n    print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return set(json.loads(ended.stderr))


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], *([name, "--help"] for name in ("run", "plan", "show"))]
)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    """Neither libraries nor the rooms that do the work are loaded to say what a command takes."""
    loaded = modules(*arguments)
    assert not loaded.intersection(HEAVY)
    assert not {name for name in loaded if name.startswith(("eyas.engine", "eyas.config", "eyas.state"))}


def test_every_command_is_declared_lightly() -> None:
    """No file of `declared` imports a room of eyas but the command line's own."""
    for group in GROUPS:
        module = importlib.import_module(f"eyas.cli.declared.{group}")
        source = inspect.getsource(module)
        rooms = [
            line
            for line in source.splitlines()
            if line.startswith("from eyas.") and not line.startswith("from eyas.cli")
        ]
        assert rooms == [], group
