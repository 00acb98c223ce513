"""`eyas rehearse`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from eyas.cli import start
from eyas.cli.plan import width
from eyas.cli.say import say
from eyas.cli.simulate import changed
from eyas.config import load as load_config
from eyas.machine import run_loop
from eyas.rehearse import Job, Origin, Wish, rehearsal
from eyas.rehearse.gather import of_run, of_scenario
from eyas.report.rehearsed import tables
from eyas.sim import load

DEFAULT = "rough"
"""What a RUN.toml is rehearsed in: an ordinary evening."""
ITSELF = "founding"
"""What is rehearsed without a RUN.toml."""


@click.command("rehearse")
@click.argument("config_file", metavar="[RUN.toml]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--scenario", "name", help=f"The market; {DEFAULT} for a RUN.toml, else {ITSELF}, which brings a run of its own."
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="How often it is played; 5 or more tell how far it may vary.",
)
@click.option("--variants/--no-variants", "compare", default=True, show_default=True, help="Play other settings too.")
@click.option(
    "--set", "changes", multiple=True, metavar="NAME=VALUE", help="Change the scenario: speed=2, faults.hang=0.01."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, a stable interface.")
@click.option("--key-file", type=click.Path(path_type=Path), help="Read the API key from this file; not needed.")
@click.option("--insecure-http", is_flag=True, help="Let [target] base_url send the key unencrypted over a network.")
def command(
    config_file: Path | None,
    name: str | None,
    seeds: int,
    compare: bool,
    changes: tuple[str, ...],
    as_json: bool,
    key_file: Path | None,
    insecure_http: bool,
) -> int:
    """Play a run in simulated time: what it will take, cost and waste, and what other settings would give.

    The engine is the real one, its clock and its providers are not. Nothing is asked, written or spent; no key is needed.
    Without a RUN.toml the scenario brings its own run.
    """
    scenario = changed(load(name or (DEFAULT if config_file else ITSELF)), changes)
    say("rehearsing: nothing is asked of a model, written or spent")
    job: Job
    origin: Origin
    if config_file is None:
        job, origin = of_scenario(scenario)
    else:
        config = load_config(config_file, insecure_http=insecure_http)
        job, origin = run_loop(of_run(config, str(config_file), scenario, start.key(key_file, needed=False)))
    made = rehearsal(job, origin, Wish(seeds, compare, heard=_progress))
    print(json.dumps(made, indent=2) if as_json else tables(made, width()), flush=True)
    return 0


def _progress(done: int, of: int) -> None:
    if not sys.stderr.isatty():
        return
    print(f"\r{done} of {of} plays{'' if done < of else chr(10)}", end="", file=sys.stderr, flush=True)
