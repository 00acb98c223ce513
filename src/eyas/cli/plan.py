"""`eyas plan`."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import click
from pydantic import SecretStr

from eyas.cli import start
from eyas.cli.keys import keys_of
from eyas.cli.progress import progress
from eyas.cli.run import ASK_ABOVE, both, say_inputs, watch_signals
from eyas.cli.say import say
from eyas.config import RunConfig, load
from eyas.engine.planning import Draft, draft, read, state_of
from eyas.engine.scope import Scope
from eyas.engine.session import Options
from eyas.engine.sessions import run_config
from eyas.errors import StorageError, UsageError
from eyas.ledger import usd
from eyas.plan.document import document
from eyas.plan.figures import Wish
from eyas.report.next_step import next_step
from eyas.report.planned import tables
from eyas.types import StopReason

_SCALE = {"": 1, "k": 1_000, "M": 1_000_000, "G": 1_000_000_000}
_NARROWEST, _WIDEST = 80, 120


def numbers(text: str) -> tuple[int, ...]:
    """Output tokens, separated by commas: 5M,7M.

    Raises:
        UsageError: it is something else.
    """
    found = [re.fullmatch(r"(\d+(?:\.\d+)?)([kMG]?)", part.strip()) for part in text.split(",")]
    quotas = tuple(round(float(each[1]) * _SCALE[each[2]]) for each in found if each)
    if len(quotas) < len(found) or not all(quotas):
        raise UsageError(f"--quotas {text}: give output tokens a dataset, such as 5M,7M or 300k")
    return quotas


def command(
    config_file: Path,
    as_json: bool,
    out: Path | None,
    pilot: int | None,
    quotas: str,
    local_tps: float | None,
    train_max_length: int | None,
    key_file: Path | None,
    insecure_http: bool,
    yes: bool,
) -> int:
    """Say what RUN.toml will cost and how long it takes, and which quota fits the money. Buys nothing but a pilot."""
    check_out(out)
    config = load(config_file, insecure_http=insecure_http)
    keys = keys_of(config, key_file, needed=pilot is not None)
    wish = Wish(numbers(quotas), local_tps, train_max_length)
    sources = start.run_loop(read(config, keys))
    say_inputs(sources.inputs)
    made = draft(sources, state_of(config), wish)
    if pilot is not None:
        agree(made, pilot, yes=yes)
        buy(config, config_file.read_text(encoding="utf-8"), keys.target, pilot)
        made = draft(sources, state_of(config), wish)
    print(json.dumps(made.figures, indent=2) if as_json else tables(made.figures, width()), flush=True)
    if out is not None:
        write(out, document(made.figures, made.basis, config_file, out.parent))
    if not as_json:
        say(f"next: {next_step(made.figures, config, config_file, out)}")
    return 0


def check_out(out: Path | None) -> None:
    """Refuse a name that could not be run, before anything is read or bought.

    Raises:
        UsageError: its name does not end in .json, or its folder is not there.
    """
    if out is not None and out.suffix != ".json":
        raise UsageError(f"--out {out}: give a name that ends in .json, for by that `eyas run` knows a plan")
    if out is not None and not out.parent.is_dir():
        raise UsageError(f"--out {out}: there is no folder {out.parent}: make it, or name another one")


def width() -> int:
    """Columns to write for: those of the terminal, between 80 and 120."""
    return min(max(shutil.get_terminal_size().columns, _NARROWEST), _WIDEST)


def agree(made: Draft, pilot: int, *, yes: bool) -> None:
    """Have a pilot confirmed that may cost more than $5.

    Raises:
        UsageError: nobody is there to ask.
    """
    most = usd(made.pilot(pilot))
    if yes or most <= ASK_ABOVE:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"this pilot may spend up to ${most:.2f}: add --yes to agree without a terminal, or buy fewer")
    click.confirm(f"This pilot may spend up to ${most:.2f} (far less if answers are not all at max_tokens). Go on?",
                  abort=True, err=True)  # fmt: skip


def buy(config: RunConfig, text: str, key: SecretStr, pilot: int) -> None:
    """Buy a pilot: a session of the run that asks its first N works of each dataset."""
    start.allow_open_files(config.limits.in_flight)
    first = "buying a pilot" if config.target.bills else "asking a pilot of the target alone"
    say(f"{first}; ^C twice ends what flies, and the plan is made by what has come")
    with progress() as view:
        options = Options(on_start=both(watch_signals, view.begin), on_tick=view.tick, scope=Scope(pilot))
        ended = start.run_loop(run_config(config, text, key, options))
    if ended.reason is not StopReason.COMPLETE:
        say(f"eyas: the pilot ended early ({ended.reason}); planning by the answers it brought")


def write(out: Path, text: str) -> None:
    """Write the plan document.

    Raises:
        StorageError: it cannot be written.
    """
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{out} cannot be written ({error.strerror}): choose another --out") from error
    say(f"plan written: `eyas run {out}` runs it")
