"""What the documentation makes from the code holds all that the code has, and its pages ask for nothing else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import eyas
from eyas.cli import COMMANDS
from eyas.cli import eyas as program
from eyas.types import Label

DOCS = Path(__file__).parent.parent / "docs"
PAGES = {path.name: path.read_text(encoding="utf-8") for path in DOCS.glob("*.md")}


@pytest.fixture(autouse=True)
def made_is_found() -> Iterator[None]:
    """docs/ is where the builder imports `made` from."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS))
        yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "made"]:
        del sys.modules[name]


def test_every_part_has_one_page_and_every_mark_a_part() -> None:
    """No part is made that nobody reads, and no page waits for a part that nobody makes."""
    import made

    assert sorted(mark for text in PAGES.values() for mark in made.marks(text)) == sorted(made.PARTS)


def test_a_mark_of_nothing_is_an_error() -> None:
    """A misspelt mark ends the build instead of leaving a hole."""
    import made

    with pytest.raises(KeyError):
        made.fill("<!-- made: nothing -->")


def test_every_command_and_option_is_there() -> None:
    """The reference has a head for each command, and below it each option."""
    from made import commands

    parts = commands.text().split("\n### eyas ")[1:]
    assert [part.split()[0] for part in parts] == list(COMMANDS)
    context = click.Context(program)
    for part in parts:
        command = program.get_command(context, part.split()[0])
        assert command is not None
        missing = [
            name for each in command.params if isinstance(each, click.Option) for name in each.opts if name not in part
        ]
        assert not missing, part.split()[0]


def test_every_key_has_its_type_and_its_meaning() -> None:
    """No key of RUN.toml is without a word on what it is for, and docs/run-toml.md speaks of each section."""
    from made import keys

    nameless = [
        f"[{name}] {key}"
        for name, section, _ in keys.sections()
        for key, field in section.model_fields.items()
        if not keys.kind(field.annotation) or not keys.meanings(name).get(key)
    ]
    assert not nameless, "docs/run-toml.md has no row for them"


def test_types_are_said_in_words() -> None:
    """A type of Python is none of TOML's: bounds, choices and lists are named."""
    from annotated_types import Ge, Le
    from made import keys

    assert keys.kind(float | None, [Ge(0), Le(1)]) == "number, at least 0, at most 1"
    assert keys.kind(str | tuple[str, ...]) == "text or list of texts"
    assert keys.kind(dict[str, int]) == "table"


def test_every_public_name_is_in_the_reference() -> None:
    """What `import eyas` offers stands in the reference of Python."""
    from made import python

    text = python.text()
    names = [name for name in eyas.__all__ if not name.startswith("_") and name != "errors"]
    assert not [name for name in names if f"\n### {name}\n" not in text]


def test_every_benchmark_says_what_it_asks() -> None:
    """Each script of bench/ stands in the list, with a sentence."""
    from made import benchmarks

    rows = benchmarks.text().splitlines()[2:]
    assert len(rows) == len(benchmarks.scripts())
    assert not [row for row in rows if row.endswith("|  |")]


def test_words_are_those_of_the_code() -> None:
    """Exit codes with their meaning, every error, every label from the surest on."""
    from made import words

    assert "| 3 | `CAP` | The cap is reached" in words.exit_codes()
    assert "`StalePlanError`" in words.errors()
    rows = [line.split("`")[1] for line in words.labels().splitlines()[2:]]
    assert rows == [each.value for each in Label]


def test_the_navigation_is_that_of_the_first_page() -> None:
    """Each page but the first is in one list of the navigation, under the head where the first page has it."""
    from made import nav

    sections = nav.sections(PAGES["index.md"])
    listed = [f"{page}.md" for pages in sections.values() for _, page in pages]
    assert sorted(listed) == sorted({*PAGES} - {"index.md"})
    assert nav.toctrees(PAGES["index.md"]).count("```{toctree}") == len(sections)
