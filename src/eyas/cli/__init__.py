"""The command line: one small file a command. Data on stdout, everything else on stderr; exit codes are given here only."""

from __future__ import annotations

import importlib
import keyword
import os
import sys
from typing import Any

import click

from eyas.cli.command import Command
from eyas.cli.examples import FIRST_EVENING
from eyas.cli.say import say_error
from eyas.cli.usage import near, sentence
from eyas.errors import EyasError, KeyOrCreditsError, LedgerError, StalePlanError, StorageError, UsageError

GROUPS = {
    "begin": {
        "demo": "the whole way against the built-in simulator: no key, no network",
        "init": "write a commented RUN.toml, and look at a prompt file",
        "plan": "what a RUN.toml will cost and take, what fits the money; buys nothing",
        "rehearse": "a run in simulated time: minutes, dollars, tail, other settings; asks and spends nothing",
    },
    "run": {
        "run": "answer the prompts of a RUN.toml; the same command again resumes",
        "watch": "the live view of a run that another process carries",
        "tune": "change a running session: requests in flight, endpoints asked",
    },
    "look": {
        "status": "where a run stands, also while it runs",
        "show": "some works of a run, or one: prompt, answer, ids, mask, attempts, cost",
        "report": "one HTML page on a run, that opens without a network",
    },
    "write": {
        "export": "write training rows",
    },
    "change": {
        "import": "answers made elsewhere join a run and its quotas",
        "retry": "have works that ended asked again",
        "forget": "remove a prompt and its answers for good",
        "reconcile": "settle outcomes that are not known yet",
    },
    "check": {
        "doctor": "key and its limit, open files, disk, tokenizer, prompts, clock: before it costs anything",
        "providers": "every endpoint of a model: price, precision, verdict and why",
    },
    "tools": {
        "simulate": "an OpenRouter-compatible server on this machine",
        "completion": "the script that completes eyas on TAB, for bash, zsh and fish",
    },
}
"""Every command and what it does, by what it is for; a new one is a file here, a line there and its declaration in
`declared/`, in the file of its group."""
COMMANDS = {name: does for group in GROUPS.values() for name, does in group.items()}
DOCS = "The documentation is in docs/ of the source; docs/index.md is its first page. `eyas COMMAND --help` shows examples."
_WIDEST = max(map(len, COMMANDS))


class Commands(click.Group):
    """Loads what a command takes only when it is named, and its work only when it is called: `eyas --help` stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names, in the order of use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> Command | None:
        """The command of that name."""
        group = next((group for group, names in GROUPS.items() if cmd_name in names), None)
        if group is None:
            return None
        name = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
        return getattr(importlib.import_module(f"eyas.cli.declared.{group}"), name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments name.

        Raises:
            UsageError: there is none.
        """
        if args[0] not in COMMANDS and not ctx.resilient_parsing:
            raise UsageError(
                f"there is no command {args[0]!r}{near(args[0], COMMANDS) or ':'} `eyas --help` lists them"
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by what they are for, without loading them."""
        for group, names in GROUPS.items():
            with formatter.section(group.capitalize()):
                formatter.write_dl([(name.ljust(_WIDEST), does) for name, does in names.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands of a first evening, and where more is said."""
        with formatter.section("A first evening"):
            formatter.write_dl([(example.line, example.does) for example in FIRST_EVENING], col_max=40)
        formatter.write_paragraph()
        formatter.write_text(DOCS)


def _version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from eyas import __version__  # noqa: PLC0415  # to look it up takes a tenth of the time that help may take

        print(f"eyas, version {__version__}")
        ctx.exit()


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Print the version."
)
def eyas() -> None:
    """Turn prompt sets into training data for the drafters of speculative decoding."""


def main(arguments: list[str] | None = None) -> None:
    """Run a command and leave with its exit code."""
    if "_EYAS_COMPLETE" in os.environ:
        _complete()
    sys.exit(_main(arguments))


def _complete() -> None:
    """Answer a shell that asks on TAB, and leave. Whatever goes wrong, the line that somebody is writing stays clean."""
    shells = importlib.import_module("eyas.cli.shells")
    try:
        shells.answer(eyas)
    except Exception:  # noqa: BLE001  # a completion says nothing of what failed, the command itself will
        sys.exit(1)
    sys.exit(0)


def _main(arguments: list[str] | None) -> int:
    try:
        result: Any = eyas.main(args=arguments, prog_name="eyas", standalone_mode=False)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.Abort:
        return _say("interrupted; nothing more is done, the same command can be given again", 130)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        return _say(sentence(error), error.exit_code)
    except LedgerError as error:
        return _say(f"{error}: this is a defect of eyas, please report it; what was paid for is in the journal", 2)
    except EyasError as error:
        return _say(str(error), _code(error))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return result if isinstance(result, int) else 0


def _code(error: EyasError) -> int:
    if isinstance(error, KeyOrCreditsError):
        return 6
    if isinstance(error, StalePlanError):
        return 8
    return 7 if isinstance(error, StorageError) else 2


def _say(message: str, code: int) -> int:
    say_error(message)
    return code
