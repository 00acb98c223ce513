"""`eyas status`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from eyas import config as configs
from eyas.cli.say import columns_of
from eyas.cli.style import style_of
from eyas.lock import is_locked
from eyas.records import Run
from eyas.report.fit import fit
from eyas.report.progress import table
from eyas.report.summary import status
from eyas.report.watched import outlook


def command(rundir: Path, as_json: bool) -> None:
    """Say where the run in RUNDIR stands, also while it runs."""
    running = is_locked(rundir)
    run = Run(rundir)
    predicted = outlook(run.state, configs.frozen(rundir), time.time()) if running else None
    figures = status(run.state, running=running, predicted=predicted)
    run.close()
    if as_json:
        print(json.dumps(figures, indent=2))
        return
    width, style = columns_of(sys.stdout), style_of(sys.stdout)
    told = fit(f"{figures['state']}: {figures['model']}\n{table(figures, width)}", width)
    print(style.standing(figures["state"]) + style.told(told.removeprefix(figures["state"])))
