"""A command as the command line knows it: what it takes, its examples, and what does its work once it is called.

Help and completion need no more than that, so they stay quick: the work is loaded when the command is called.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import click

from eyas.cli.examples import EXAMPLES


class Command(click.Command):
    """A command that shows its examples below its options, and can be completed behind an option that wants a value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """What the arguments say. On TAB an option at the end, whose value comes next, is left out: it would hide the others."""
        last = args[-1] if args and ctx.resilient_parsing else ""
        wants = any(
            last in param.opts and not param.is_flag for param in self.params if isinstance(param, click.Option)
        )
        try:
            return super().parse_args(ctx, args[:-1] if wants else args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # of a value that is missing click does not say where
            raise

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Examples, then what the command adds to them."""
        examples = EXAMPLES.get(self.name or "", ())
        if examples:
            with formatter.section("Examples"):
                for example in examples:
                    formatter.write(f"{'':{formatter.current_indent}}{example.line}\n")
                    with formatter.indentation():
                        formatter.write_text(example.does)
        super().format_epilog(ctx, formatter)


def does(module: str) -> Callable[[Callable[..., None]], Callable[..., Any]]:
    """The work of what is declared is the function `command` of eyas.cli.MODULE, which takes the same names."""

    def bound(declared: Callable[..., None]) -> Callable[..., Any]:
        @functools.wraps(declared)
        def call(**given: Any) -> Any:
            return importlib.import_module(f"eyas.cli.{module}").command(**given)

        return call

    return bound
