"""A command line against the program as it is: the command, its options, and what they take."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from eyas.cli import COMMANDS, eyas
from tests.shown.lines import places

_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_OPTION = re.compile(r"^-{1,2}[A-Za-z][\w-]*$")


def command(name: str) -> click.Command | None:
    """The command of that name; None: there is none."""
    return eyas.get_command(click.Context(eyas), name)


def options(of: click.Command) -> dict[str, click.Parameter]:
    """Every spelling of every option of a command."""
    found = {name: each for each in of.params for name in (*each.opts, *each.secondary_opts) if name.startswith("-")}
    return {**found, **dict.fromkeys(("-h", "--help"), click.Option(["--help"], is_flag=True))}


def problems(text: str) -> list[str]:
    """What is wrong with an `eyas …` line; a line with places to fill in is read as far as it says something."""
    words = re.split(r"[\s\[\]]+", _QUOTED.sub("''", text).replace("…", " ").replace("=", " ").strip())
    if len(words) < 2 or not words[1] or places(words[1]):
        return []
    if _OPTION.match(words[1]):
        return [] if words[1] in options(eyas) else [f"eyas has no option {words[1]}"]
    of = command(words[1])
    if of is None:
        return [f"there is no command {words[1]}: there is {', '.join(COMMANDS)}"]
    return list(_problems(of, words[2:]))


def _problems(of: click.Command, words: list[str]) -> Iterator[str]:
    known = options(of)
    for index, word in enumerate(words):
        value = (words[index + 1 : index + 2] or [""])[0]
        for name in word.split("|"):
            if not _OPTION.match(name):
                continue
            if name not in known:
                yield f"eyas {of.name} has no option {name}"
            elif isinstance(known[name], click.Option) and not getattr(known[name], "is_flag", False):
                yield from _values(of, name, known[name], value)


def _values(of: click.Command, name: str, option: click.Parameter, value: str) -> Iterator[str]:
    if not value or value.startswith("-") or value == "''":
        return
    for each in value.split("|"):
        if places(each) or each.endswith("-"):
            continue
        try:
            option.type.convert(each, option, None)
        except click.BadParameter as error:
            yield f"eyas {of.name} {name} takes no {each}: {error.message}"
