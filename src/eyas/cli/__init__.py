"""The command line: one small file a command. Data on stdout, everything else on stderr; exit codes are given here only."""

from __future__ import annotations

import importlib
import keyword
import os
import sys
from typing import Any

import click

from eyas import __version__
from eyas.cli.say import say
from eyas.errors import EyasError, KeyOrCreditsError, StalePlanError, StorageError

COMMANDS = {
    "demo": "the whole way against the built-in simulator: no key, no network",
    "init": "write a commented RUN.toml, and look at a prompt file",
    "plan": "what a RUN.toml will cost and take, what fits the money; buys nothing",
    "rehearse": "a run in simulated time: minutes, dollars, tail, other settings; asks and spends nothing",
    "run": "answer the prompts of a RUN.toml; the same command again resumes",
    "tune": "change a running session: requests in flight, endpoints asked",
    "status": "where a run stands, also while it runs",
    "export": "write training rows",
    "show": "one work: prompt, answer, ids, mask, attempts, cost",
    "import": "answers made elsewhere join a run and its quotas",
    "retry": "have works that ended asked again",
    "forget": "remove a prompt and its answers for good",
    "reconcile": "settle outcomes that are not known yet",
    "providers": "every endpoint of a model: price, precision, verdict and why",
    "doctor": "key and its limit, open files, disk, tokenizer, prompts, clock: before it costs anything",
    "simulate": "an OpenRouter-compatible server on this machine",
}
"""Every command and what it does; a new one is a file here and a line there."""


class Commands(click.Group):
    """Loads a command's file only when it is called: `eyas --help` stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names, in the order of use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        if cmd_name not in COMMANDS:
            return None
        name = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
        return importlib.import_module(f"eyas.cli.{name}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="eyas")
def eyas() -> None:
    """Turn prompt sets into training data for the drafters of speculative decoding."""


def main(arguments: list[str] | None = None) -> None:
    """Run a command and leave with its exit code."""
    sys.exit(_main(arguments))


def _main(arguments: list[str] | None) -> int:
    try:
        result: Any = eyas.main(args=arguments, standalone_mode=False)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.Abort:
        return _say("interrupted", 130)
    except click.ClickException as error:
        error.show()
        return error.exit_code
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
    say(f"eyas: {message}")
    return code
