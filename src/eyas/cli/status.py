"""`eyas status`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from eyas.lock import is_locked
from eyas.records import Run
from eyas.report.progress import table
from eyas.report.summary import status


@click.command("status")
@click.argument("rundir", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON, a stable interface.")
def command(rundir: Path, as_json: bool) -> None:
    """Say where the run in RUNDIR stands, also while it runs."""
    running = is_locked(rundir)
    run = Run(rundir)
    figures = status(run.state, running=running)
    run.close()
    if as_json:
        print(json.dumps(figures, indent=2))
        return
    print(f"{figures['state']}: {figures['model']}")
    print(table(figures))
