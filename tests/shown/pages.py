"""What a page holds that is not prose: code blocks, and spans of code within the text, each with its line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]
INDENT = "    "
PROGRAMS = frozenset(
    {
        "eyas", "make", "python", "python3", "pip", "export", "cd", "git", "curl", "cp", "cat", "head", "sh", "pytest", "hf",
        "torchrun", "specforge", "speculators", "vllm",
    }
)  # fmt: skip
"""What the commands of an indented block begin with; in a fenced one `$` says which lines are commands."""
_FENCE = re.compile(r"^ *(?P<mark>```+|~~~+) *(?P<info>.*)$")
_TITLE = re.compile(r'title="([^"]+)"')
_HEAD = re.compile(r"^#{1,6} +(.+?) *$")
_NAMED = re.compile(r"^# ([\w./-]+\.(?:toml|py|yaml|json))$")
"""The first line of an indented block that is a file."""
_NOTE = re.compile(r"^(!!!|\?\?\?\+?|===) ")
"""The head of a note or a tab: what is indented below it is text."""
_SPAN = re.compile(r"(?<!`)(`+)(?!`)((?:(?!\n\s*\n).)+?)(?<!`)\1(?!`)", re.DOTALL)
_COMMENT = re.compile(r"(?:^|\s)# ?(.*)$")


@dataclass(frozen=True, slots=True)
class Block:
    """A code block. `language` is empty for an indented one, `title` names the file that it is; `line` counts from 1."""

    page: str
    line: int
    language: str
    title: str
    section: str
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """All of it, with a line break at its end."""
        return "".join(f"{line}\n" for line in self.lines)


@dataclass(frozen=True, slots=True)
class Span:
    """Code within the text, brought to one line."""

    page: str
    line: int
    section: str
    text: str


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its name is its path from the root of the project."""

    name: str
    blocks: tuple[Block, ...]
    spans: tuple[Span, ...]


def names() -> list[str]:
    """All pages: those of docs/, the README, CONTRIBUTING, and what the examples say of themselves."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
    found += sorted((ROOT / "examples").glob("**/README.md")) + sorted((ROOT / "examples").glob("*/RUN.toml"))
    return [path.relative_to(ROOT).as_posix() for path in found]


def page(name: str) -> Page:
    """A page by its name; of a RUN.toml its comments are read."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return commented(name, text) if name.endswith(".toml") else read(name, text)


def commented(name: str, text: str) -> Page:
    """The comments of a TOML file; one that is indented by two spaces more is a command."""
    found = (_COMMENT.search(line) for line in text.splitlines())
    said = [each[1] if each else "" for each in found]
    code = [(number, each.strip()) for number, each in enumerate(said, 1) if each.startswith("  ")]
    prose = ["" if each.startswith("  ") else each for each in said]
    blocks = (Block(name, number, "sh", "", "", (each,)) for number, each in code)
    return Page(name, tuple(blocks), tuple(_spans(name, prose, [""] * len(prose))))


def read(name: str, text: str) -> Page:
    """The blocks and spans of a page's text."""
    lines, prose, sections = text.splitlines(), list[str](), list[str]()
    blocks, note = list[Block](), False
    while len(prose) < len(lines):
        number = len(prose)
        line, head, before = lines[number], _HEAD.match(lines[number]), "".join(prose[-1:]).strip()
        section = head[1] if head else "".join(sections[-1:])
        note = bool(_NOTE.match(line)) or (note and (not line.strip() or line.startswith(INDENT)))
        fence = _FENCE.match(line)
        taken = 0
        if fence is not None:
            taken = _fenced(lines, number, fence["mark"])
            blocks.append(_block(name, number, lines[number : number + taken], section))
        elif line.startswith(INDENT) and line.strip() and not note and not before:
            taken = _indented(lines, number)
            body = [each.removeprefix(INDENT).rstrip() for each in lines[number : number + taken]]
            blocks += (Block(name, number + 1 + n, "", _named(part), section, part) for n, part in _parts(body))
        prose += [""] * taken or [line]
        sections += [section] * (taken or 1)
    return Page(name, tuple(blocks), tuple(_spans(name, prose, sections)))


def _block(name: str, number: int, lines: list[str], section: str) -> Block:
    """A fenced block; `lines` are all of it, its fences included."""
    fence = _FENCE.match(lines[0])
    assert fence is not None
    titled = _TITLE.search(fence["info"])
    before = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    body = tuple(line.removeprefix(before).rstrip() for line in lines[1:-1])
    return Block(name, number + 2, fence["info"].partition(" ")[0], titled[1] if titled else "", section, body)


def _fenced(lines: list[str], start: int, mark: str) -> int:
    """How many lines a fenced block takes, its fences included."""
    for number in range(start + 1, len(lines)):
        if lines[number].strip() == mark:
            return number - start + 1
    raise AssertionError(f"line {start + 1}: a code block is never closed: end it with {mark}")


def _indented(lines: list[str], start: int) -> int:
    """How many lines an indented block takes; blank ones at its end are not of it."""
    end = start
    for number in range(start, len(lines)):
        if lines[number].startswith(INDENT) and lines[number].strip():
            end = number + 1
        elif lines[number].strip():
            break
    return end - start


def _parts(lines: list[str]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """An indented block, cut where a file or commands begin after a blank line; one with prompts is whole."""
    whole = any(line.startswith("$ ") for line in lines)
    starts = [0] + [
        n + 1
        for n, line in enumerate(lines)
        if not whole and not line and (lines[n + 1][:2] == "# " or begins(lines[n + 1]))
    ]
    for start, end in pairwise([*starts, len(lines)]):
        yield start, tuple(lines[start:end])


def _named(lines: tuple[str, ...]) -> str:
    found = _NAMED.match(lines[0])
    return found[1] if found else ""


def begins(line: str) -> bool:
    """Whether a line of an indented block begins with a command."""
    words = [*line.split(), "", ""]
    return words[0].rpartition("/")[2] in PROGRAMS and words[1] != "=" and not words[1].endswith(":")


def _spans(name: str, prose: list[str], sections: list[str]) -> Iterator[Span]:
    text = "\n".join(prose)
    for found in _SPAN.finditer(text):
        line = text.count("\n", 0, found.start())
        yield Span(name, line + 1, sections[line], " ".join(found[2].replace(r"\|", "|").split()))
