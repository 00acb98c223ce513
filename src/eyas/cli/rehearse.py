"""`eyas rehearse`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from eyas.cli import start
from eyas.cli.declared.begin import ITSELF, SCENARIO
from eyas.cli.plan import width
from eyas.cli.say import say
from eyas.cli.simulate import changed
from eyas.config import load as load_config
from eyas.machine import run_loop
from eyas.rehearse import Job, Origin, Wish, rehearsal
from eyas.rehearse.gather import of_run, of_scenario
from eyas.report.rehearsed import tables
from eyas.sim import load


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
    """Play a run in simulated time: what it will take, cost and waste, and what other settings would give."""
    scenario = changed(load(name or (SCENARIO if config_file else ITSELF)), changes)
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
