"""The pages of docs/: each can be found, each link leads somewhere, none says that a command is missing which is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eyas.cli import COMMANDS

ROOT = Path(__file__).parent.parent
PAGES = sorted(path.name for path in (ROOT / "docs").glob("*.md"))
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in (*(ROOT / "docs").glob("*.md"), ROOT / "README.md")}


def anchors(text: str) -> set[str]:
    """What a link to a head of this page may name, as GitHub and Sphinx make it."""
    heads = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


def test_every_page_is_in_the_navigation_once() -> None:
    """docs/index.md, from whose tables the site has its navigation, lists each other page once, and none that is not there."""
    listed = re.findall(r"^\| \[[^\]]+\]\(([\w-]+\.md)\) \| \S", TEXTS["index.md"], flags=re.MULTILINE)
    assert sorted(listed) == sorted({*PAGES} - {"index.md"})


@pytest.mark.parametrize("name", TEXTS)
def test_links_lead_somewhere(name: str) -> None:
    """Every link to another page, and to a head of it, names one that is there."""
    base = ROOT if name == "README.md" else ROOT / "docs"
    for target in re.findall(r"\]\(([^)\s]+)\)", TEXTS[name]):
        path, _, head = target.partition("#")
        if "://" in target:
            continue
        assert not path or (base / path).exists(), target
        page = TEXTS.get(Path(path).name if path else name)
        assert not head or page is None or head in anchors(page), target


@pytest.mark.parametrize("command", COMMANDS)
def test_no_page_misses_a_command_that_is_there(command: str) -> None:
    """Every command has its head in commands.md, and stands in no list of what is not built."""
    assert f"eyas-{command}" in anchors(TEXTS["commands.md"])
    for name, text in TEXTS.items():
        for missing in re.findall(r"Not built: (.*)", text) + re.findall(r"\| commands \|[^|]*\|([^|]*)\|", text):
            assert f"`{command}`" not in missing, name
