"""A command line that cannot be understood, in one sentence: what is wrong, what was perhaps meant, where the help is."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

import click

_QUOTED = re.compile(r"^'(?P<value>.*)' is not one of ", re.DOTALL)
_EXTRA = re.compile(r"unexpected extra arguments? \((?P<words>.*)\)", re.DOTALL)


def sentence(error: click.ClickException) -> str:
    """What a person is told of an error of the command line."""
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    help_at = f"`{ctx.command_path} --help` says more" if ctx else "`eyas --help` says more"
    return f"{_what(error, ctx)}; {help_at}"


def near(word: str, among: Iterable[str]) -> str:
    """`: did you mean X?`, or nothing where nothing is near."""
    found = difflib.get_close_matches(word, list(among), n=1, cutoff=0.6)
    return f": did you mean {found[0]}?" if found else ""


def _what(error: click.ClickException, ctx: click.Context | None) -> str:
    if isinstance(error, click.NoSuchOption):
        return f"there is no option {error.option_name}{near(error.option_name, _options(ctx))}"
    if isinstance(error, click.MissingParameter):
        return _missing(error.param, ctx)
    if isinstance(error, click.BadParameter):
        return f"{_hint(error)}: {_bad(error)}"
    if isinstance(error, click.BadOptionUsage):
        return _plain(error.message.replace("requires an argument", "needs a value behind it"))
    extra = _EXTRA.search(error.message)
    if extra:
        usage = f": write `{_usage(ctx)}`" if ctx else ""
        return f"{extra['words']!r} is more than this command takes{usage}"
    return _plain(error.format_message())


def _options(ctx: click.Context | None) -> list[str]:
    if ctx is None:
        return []
    return [name for param in ctx.command.get_params(ctx) if isinstance(param, click.Option) for name in param.opts]


def _missing(param: click.Parameter | None, ctx: click.Context | None) -> str:
    if ctx is None or param is None:
        return "something is missing"
    if isinstance(param, click.Option):
        return f"{param.opts[-1]} is missing: give {param.opts[-1]} {_metavar(param, ctx)}"
    return f"{_metavar(param, ctx).strip('[]')} is missing: write `{_usage(ctx)}`"


def _metavar(param: click.Parameter, ctx: click.Context) -> str:
    if isinstance(param.type, click.Choice):
        return "|".join(map(str, param.type.choices))  # pyright: ignore[reportUnknownMemberType]  # click's Choice is generic
    return param.make_metavar(ctx)


def _usage(ctx: click.Context) -> str:
    return " ".join(ctx.command.get_usage(ctx).removeprefix("Usage:").split())


def _hint(error: click.BadParameter) -> str:
    if isinstance(error.param, click.Option):
        return error.param.opts[-1]
    if isinstance(error.param, click.Argument) and error.ctx:
        return error.param.make_metavar(error.ctx).strip("[]")
    return str(error.param_hint or "the command line").strip("'")


def _bad(error: click.BadParameter) -> str:
    """What is wrong with a value; of a choice what else there is."""
    quoted = _QUOTED.match(error.message)
    kind = error.param.type if error.param else None
    if not quoted or not isinstance(kind, click.Choice):
        return _plain(error.message)
    choices = [str(each) for each in kind.choices]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return f"there is no {quoted['value']!r}{near(quoted['value'], choices) or ':'} choose {_either(choices)}"


def _either(choices: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(choices[:-1]), choices[-1])))


def _plain(message: str) -> str:
    """A message of click's as the part of a sentence: no capital, no dot at its end."""
    message = message.strip().rstrip(".")
    return message[:1].lower() + message[1:] if message[1:2].islower() else message
