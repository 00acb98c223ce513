"""`eyas forget`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from eyas import config as configs
from eyas.cli import start
from eyas.cli.say import say
from eyas.engine import forget
from eyas.errors import UsageError
from eyas.ledger import usd
from eyas.lock import lock
from eyas.report.progress import plain


def command(rundir: Path, ids: tuple[str, ...], yes: bool) -> None:
    """Remove prompts of RUNDIR and all answers to them for good. They are not asked again; what they cost stays booked."""
    configs.frozen(rundir)  # says so where there is no run
    with lock(rundir):
        doomed = forget.find(rundir, ids)
        agree(doomed, yes=yes)
        erased = start.run_loop(forget.forget(rundir, doomed, time.time))
    say(words(doomed, erased))


def agree(doomed: forget.Doomed, *, yes: bool) -> None:
    """Have it confirmed: it cannot be undone.

    Raises:
        UsageError: nobody is there to ask.
    """
    if yes:
        return
    what = f"{len(doomed.names)} prompts and {doomed.answers} answers, which cost ${usd(doomed.cost):.6f}"
    if not sys.stdin.isatty():
        raise UsageError(
            f"nothing was removed: this would remove {what}, for good: add --yes to agree without a terminal"
        )
    click.confirm(f"Remove {what}, for good?", abort=True, err=True)


def words(doomed: forget.Doomed, erased: forget.Erased) -> str:
    """What was done, and where the texts may stand besides."""
    gone = len(doomed.names) - doomed.again
    lines = [f"{gone} prompts and {doomed.answers} answers are removed; ${usd(doomed.cost):.6f} stay booked, as waste"]
    if doomed.again:
        lines.append(f"{doomed.again} were forgotten before; what might have been left of them is erased")
    if erased.quarantined:
        lines.append(
            f"{erased.quarantined} lines of quarantine.jsonl held their text and are gone; the next run reads it anew"
        )
    places = [f"{source.file} line {source.line}" for source in doomed.sources]
    if places:
        more = f" and {len(places) - 5} more" if len(places) > 5 else ""
        lines.append(
            f"the sources are not touched, take them out there yourself: {plain(', '.join(places[:5]), 400)}{more}"
        )
    lines += [
        f"may hold them still: the export in {plain(str(path), 200)}; export there again" for path in erased.exports
    ]
    if not erased.exports:
        lines.append("exports made before hold them still: export again to the same folders")
    return "\n".join(lines)
