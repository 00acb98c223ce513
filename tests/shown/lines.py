"""Which lines of a code block are commands, which say how a command is used, and which are output."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.shown.pages import Block, Page, begins

FILES = frozenset({"RUN.toml", "BAD.toml", "B.toml", "README.md"})
"""Names in capitals that stand for themselves."""
SHELLS = ("sh", "bash", "shell")
CONSOLE = "console"
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_CHOICE = re.compile(r"(?<!\S)\[|…|\S\|\S|<\w+>")
_PLACE = re.compile(r"[A-Z][A-Z_]*(\.[a-z]+)?")
_VARIABLES = re.compile(r"^([A-Z_]+=\S*\s+)+")
_EXIT = re.compile(r"\bexit (\d+)\b")
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?\s*$")


@dataclass(frozen=True, slots=True)
class Shown:
    """A command as a page shows it: without prompt and comment, with the lines that go on, and the output below it."""

    page: str
    line: int
    text: str
    note: str = ""
    output: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """File and line."""
        return f"{self.page}:{self.line}"

    @property
    def program(self) -> str:
        """The first word, without variables before it and without its folder."""
        return _VARIABLES.sub("", self.text).split()[0].rpartition("/")[2]

    @property
    def bare(self) -> str:
        """Without variables before it, and without the folder of an environment."""
        return _VARIABLES.sub("", self.text).removeprefix(".venv/bin/")

    @property
    def words(self) -> list[str]:
        """As a shell splits them."""
        return shlex.split(self.text)

    @property
    def code(self) -> int:
        """The exit code that the page says in a comment (`# exit 2`), else 0."""
        found = _EXIT.search(self.note)
        return int(found[1]) if found else 0

    @property
    def usage(self) -> bool:
        """Whether it has places to fill in, so that it cannot be run as it stands."""
        return self.program == "eyas" and bool(places(self.text))


def places(text: str) -> list[str]:
    """What is to be filled in: brackets, choices, dots, words in capitals."""
    bare = _VARIABLES.sub("", _QUOTED.sub("''", text))
    words = re.split(r"[\s=,|\[\]()/]+", bare)
    return _CHOICE.findall(bare) + [each for each in words if each not in FILES and _PLACE.fullmatch(each)]


def commands(page: Page) -> list[Shown]:
    """All commands of a page in their order, usage lines too."""
    return [each for block in page.blocks for each in of_block(block)]


def of_block(block: Block) -> list[Shown]:
    """The commands of a block; a block of something else has none."""
    if block.title:
        return []
    if block.language == CONSOLE or (not block.language and any(line.startswith("$ ") for line in block.lines)):
        return list(_session(block))
    if block.language in SHELLS or (not block.language and _begins(block)):
        return list(_script(block))
    return []


def _begins(block: Block) -> bool:
    """Whether an indented block begins with a command."""
    return begins(next((line for line in block.lines if not line.startswith("#")), ""))


def _session(block: Block) -> Iterator[Shown]:
    """Commands behind `$ `, each with its output."""
    number = 0
    while number < len(block.lines):
        if not block.lines[number].startswith("$ "):
            number += 1
            continue
        taken = _taken(block.lines, number)
        text = "\n".join(line.removeprefix("$ ").removeprefix("> ") for line in block.lines[number : number + taken])
        end = next((n for n in range(number + taken, len(block.lines)) if block.lines[n].startswith("$ ")), None)
        yield _shown(block, number, text, block.lines[number + taken : end])
        number = len(block.lines) if end is None else end


def _script(block: Block) -> Iterator[Shown]:
    """Every line a command, but comments; one that is indented more goes on with the one before."""
    number = 0
    while number < len(block.lines):
        line = block.lines[number]
        if not line.strip() or line.startswith("#"):
            number += 1
            continue
        taken = _taken(block.lines, number)
        while number + taken < len(block.lines) and block.lines[number + taken].startswith(" "):
            taken += 1
        yield _shown(block, number, "\n".join(block.lines[number : number + taken]), ())
        number += taken


def _taken(lines: Sequence[str], start: int) -> int:
    """How many lines a command takes: after a backslash it goes on, a here-document ends at its word."""
    here = _HEREDOC.search(lines[start])
    if here is not None:
        return next(n for n in range(start + 1, len(lines)) if lines[n].strip() == here[1]) - start + 1
    end = start
    while lines[end].endswith("\\"):
        end += 1
    return end - start + 1


def _shown(block: Block, number: int, text: str, output: Sequence[str]) -> Shown:
    whole = text if _HEREDOC.search(text.partition("\n")[0]) else re.sub(r"\s*\\?\n\s*", " ", text)
    bare, note = _uncommented(whole)
    return Shown(block.page, block.line + number, bare, note, tuple(output))


def _uncommented(text: str) -> tuple[str, str]:
    """A command, and the comment behind it."""
    blank = _QUOTED.sub(lambda found: "'" * len(found[0]), text)
    found = re.search(r"(^|\s)# ?", blank)
    return (text[: found.start()].rstrip(), text[found.end() :].strip()) if found else (text.strip(), "")
