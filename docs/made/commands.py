"""Every command with what it takes, as click declares it. Pure but for what it imports."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from eyas.cli import GROUPS, eyas
from eyas.cli.examples import EXAMPLES
from made.markdown import code, prose, table


def text() -> str:
    """Markdown: a head for each group, and below it one for each command."""
    return "\n\n".join(part for group, names in GROUPS.items() for part in _group(group, names))


def _group(group: str, names: dict[str, str]) -> Iterator[str]:
    yield f"## {group.capitalize()}"
    context = click.Context(eyas, info_name="eyas")
    for name in names:
        command = eyas.get_command(context, name)
        if command is not None:
            yield from _command(command, click.Context(command, info_name=name, parent=context))


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"### eyas {context.info_name}"
    pieces = " ".join(command.collect_usage_pieces(context))
    yield f"```text\neyas {context.info_name} {pieces}\n```"
    yield prose(inspect.cleandoc(command.help or "").replace("\b\n", ""))
    options = [param for param in command.params if isinstance(param, click.Option) and not param.hidden]
    rows = [(_named(option, context), _meaning(option, context)) for option in options]
    if rows:
        yield table(("option", "meaning"), rows)
    for example in EXAMPLES.get(context.info_name or "", ()):
        yield f"```console\n$ {example.line}\n```\n\n{prose(example.does)}"


def _named(option: click.Option, context: click.Context) -> str:
    """The option as it is typed, with what it takes."""
    names = ", ".join(option.opts)
    return code(names if option.is_flag else f"{names} {option.make_metavar(context)}")


def _meaning(option: click.Option, context: click.Context) -> str:
    extra = option.get_help_extra(context)
    said = [prose(option.help or "")]
    said += [f"Range: {code(extra['range'])}."] if "range" in extra else []
    said += [f"Default: {code(str(extra['default']))}."] if "default" in extra else []
    said += ["May be given several times."] if option.multiple else []
    said += ["Required."] if option.required else []
    return " ".join(filter(None, said))
