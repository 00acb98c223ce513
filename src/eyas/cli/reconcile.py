"""`eyas reconcile`."""

from __future__ import annotations

import time
from pathlib import Path

from eyas import config as configs
from eyas.cli import start
from eyas.cli.say import say
from eyas.engine.inputs import load_tokenizer
from eyas.engine.reconcile import Reconciled, reconcile
from eyas.ledger import usd
from eyas.lock import lock


def command(rundir: Path, write_off: str | None, key_file: Path | None) -> int:
    """Look up what attempts of RUNDIR cost whose outcome is not known, by generation id."""
    config = configs.frozen(rundir)
    key = start.key(key_file, needed=write_off is None)
    with lock(rundir):
        done = start.run_loop(reconcile(config, key, load_tokenizer(config), write_off, time.time))
    say(_words(done))
    return 5 if done.unknown or done.away else 0


def _words(done: Reconciled) -> str:
    lines = [f"{done.found} of {done.asked} unknown outcomes were looked up: ${usd(done.cost):.6f} booked"]
    if done.kept:
        lines.append(f"{done.kept} answers that a killed run had in flight were kept as partial answers")
    if done.written_off:
        lines.append(
            f"{done.written_off} were written off at their whole reservation: ${usd(done.written_off_cost):.6f}"
        )
    if done.workers:
        names = ", ".join(map(str, done.workers))
        lines.append(
            f"worker {names} written off: ${usd(done.workers_cost):.6f} of leases booked as spent; prompts are owed again"
        )
    if done.away:
        lines.append(
            f"{done.away} workers cannot be read here: bring their folders back into RUNDIR/workers, or --write-off their numbers"
        )
    if done.unknown:
        never = (
            f" ({done.without_id} were cut before the API gave them an id: only --write-off ends them)"
            if done.without_id
            else ""
        )
        lines.append(f"{done.unknown} stay unknown with ${usd(done.held):.6f} held{never}")
    return "\n".join(lines)
