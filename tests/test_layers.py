"""The shape of the house, read from its imports: arrows go down, single things are done in single places."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import eyas

SRC = Path(eyas.__file__).parent
ROWS = (
    ("types", "errors"),
    ("events", "ledger", "channel", "machine"),
    ("standing", "connection"),
    ("state", "vocab", "transport", "config", "forecast"),
    ("families", "journal"),
    ("records", "lock"),
    ("prompts", "providers", "backends", "tokens", "exporters", "sim"),
    ("plan", "export", "report", "answers"),
    ("engine", "survey"),
    ("rehearse",),
    ("cluster",),
    ("api",),
    ("cli",),
    ("__main__", "__init__"),
)
"""From the ground up; a module may import what stands in rows below its own, and its own package."""
LEVEL = {name: level for level, row in enumerate(ROWS) for name in row}
CONCURRENCY = {"TaskGroup", "create_task", "ensure_future", "gather", "sleep"}
MOST_LINES = 300


def modules() -> dict[str, Path]:
    """Every module of eyas by its dotted name without `eyas.`; the package itself is `__init__`."""
    found: dict[str, Path] = {}
    for path in sorted(SRC.rglob("*.py")):
        parts = path.relative_to(SRC).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)] = path
    return found


MODULES = modules()


@cache
def tree(name: str) -> ast.Module:
    """The module's syntax."""
    return ast.parse(MODULES[name].read_text(encoding="utf-8"))


def imported(name: str) -> Iterator[str]:
    """Dotted names that a module imports anywhere in it, functions included; `from x import y` as x and x.y."""
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: imports are written in full"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def inside(name: str) -> set[str]:
    """Modules of eyas that a module imports."""
    names = {each.removeprefix("eyas.") for each in imported(name) if each.startswith("eyas.")}
    return {each for each in names if each in MODULES} - {name}


def used(name: str, module: str) -> set[str]:
    """Attributes of a foreign module that this one names: `module.x` or `from module import x`."""
    direct = {each.removeprefix(f"{module}.") for each in imported(name) if each.startswith(f"{module}.")}
    return direct | {
        node.attr
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == module
    }


def room(name: str) -> str:
    """The room that a module belongs to."""
    return name.split(".", maxsplit=1)[0]


@pytest.mark.parametrize("name", MODULES)
def test_every_module_has_its_place_and_imports_only_downwards(name: str) -> None:
    """A module imports rooms of lower rows and its own package, nothing else."""
    assert room(name) in LEVEL, f"{name} stands in no row: give it one here and in the design"
    up = sorted(each for each in inside(name) if room(each) != room(name) and LEVEL[room(each)] >= LEVEL[room(name)])
    assert not up, f"{name} imports {', '.join(up)}, which is not below it"


def test_the_ground_imports_nothing_of_eyas() -> None:
    """types.py and errors.py stand on nothing."""
    assert inside("types") == inside("errors") == set()


def test_no_two_modules_import_each_other_round_a_circle() -> None:
    """The imports between modules have an order."""
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, f"a circle: {' -> '.join((*trail[trail.index(name) :], name))}"
        if name not in done:
            for each in sorted(inside(name)):
                # A package's __init__ gathers what is in it; its own modules import each other, not it.
                visit(each, (*trail, name))
            done.add(name)

    for name in MODULES:
        visit(name, ())


@pytest.mark.parametrize("name", MODULES)
def test_single_things_are_done_in_single_places(name: str) -> None:
    """Tasks and sleeps in engine/ (and in what stands in for the network), HTTP in transport (and in the simulator's server both), SQLite and fsync in journal."""
    if room(name) != "engine" and name not in ("sim.wire", "sim.played"):
        assert not used(name, "asyncio") & CONCURRENCY
        assert "time.sleep" not in imported(name)
        assert "sleep" not in used(name, "time")
    if room(name) == "cli" and name != "cli.refresh":  # a view's refresh waits, beside the way, in one place
        assert "threading" not in imported(name)
        assert "rich.live" not in imported(name) or name == "cli.screen", "one view a process, drawn in one place"
    roots = {each.split(".")[0] for each in imported(name)}
    if name not in ("channel", "connection", "transport", "sim.wire"):
        assert not roots & {"aiohttp", "httptools", "requests", "urllib3", "httpcore", "socket"}
        assert not {"urllib.request", "http.client"} & set(imported(name))
        assert used(name, "httpx") <= {"HTTPError"}, "the hub speaks for itself; its client's errors may be named"
    if room(name) != "journal":
        assert "sqlite3" not in roots
        assert not used(name, "os") & {"fsync", "fdatasync"}


def test_reports_are_pure_and_know_no_engine() -> None:
    """What is shown is read from the state alone."""
    for name in MODULES:
        if room(name) == "report":
            assert not any(room(each) in ("engine", "transport", "journal") for each in inside(name))


@pytest.mark.parametrize("name", MODULES)
def test_a_module_can_be_held_in_the_head(name: str) -> None:
    """Under 300 lines, without exception."""
    lines = len(MODULES[name].read_text(encoding="utf-8").splitlines())
    assert lines < MOST_LINES, f"{name} has {lines} lines: take a part of it out"
