"""RUN.toml as the pages show it: every file and every fragment loads; rows of prompts are rows."""

from __future__ import annotations

import json

import pytest

from tests.shown import pages, settings
from tests.shown.pages import Block

PAGES = [pages.page(name) for name in pages.names()]
FILES = [block for page in PAGES for block in page.blocks if settings.is_toml(block)]
ROWS = [block for page in PAGES for block in page.blocks if block.language == "jsonl" or block.title.endswith(".jsonl")]


def where(block: Block) -> str:
    """File and line, for the name of a test."""
    return f"{block.page}:{block.line}"


@pytest.mark.parametrize("block", FILES, ids=where)
def test_settings_load(block: Block) -> None:
    """A RUN.toml, or a part of one, is accepted: no key is wrong, none is missing."""
    assert settings.problem(block.text) == "", f"{where(block)}: this does not load"


def test_the_pages_show_settings() -> None:
    """They are found: whole files, tables and single keys."""
    assert len(FILES) > 10
    assert any(block.title == "RUN.toml" for block in FILES)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[run]\ndir = 'x'\n", ""),
        ("near_duplicates = 0.8\n", ""),
        ("[limits]\nin_flights = 5\n", "in_flights"),
        ("near_duplicate = 0.8\n", "near_duplicate"),
        ("[run\n", "no TOML"),
    ],
)
def test_what_does_not_load_is_told(text: str, why: str) -> None:
    """A wrong key is named; a fragment needs no section of its own."""
    found = settings.problem(text)
    assert (why in found) if why else found == ""


@pytest.mark.parametrize("block", ROWS, ids=where)
def test_rows_are_objects(block: Block) -> None:
    """Each line of a prompt file on a page is a JSON object."""
    for line in block.lines:
        assert isinstance(json.loads(line), dict), where(block)
