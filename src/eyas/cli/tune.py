"""`eyas tune`."""

from __future__ import annotations

import sys
from pathlib import Path

from eyas import config as configs
from eyas.cli.start import run_loop
from eyas.engine.tune import ask
from eyas.engine.wish import parse


def command(rundir: Path, changes: tuple[str, ...]) -> None:
    """Change the session that runs in RUNDIR: in_flight=N, drop=TAG (ask that endpoint no more), take=TAG (ask it again)."""
    wish = parse(changes)
    configs.frozen(rundir)  # says so where there is no run
    for sentence in run_loop(ask(rundir, wish)):
        print(sentence)
    print("for this session; RUN.toml says what holds after it", file=sys.stderr)
