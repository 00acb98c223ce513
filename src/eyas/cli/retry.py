"""`eyas retry`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from eyas import config as configs
from eyas.cli import start
from eyas.engine import again
from eyas.errors import UsageError
from eyas.ledger import usd
from eyas.lock import lock
from eyas.report.progress import columns

WHERE = (
    "Which works: FIELD=VALUE or FIELD!=VALUE, joined by `and` or commas. Fields: verdict, kind, finish, label, "
    "provider, tag, dataset, id."
)


@click.command("retry")
@click.argument("rundir", type=click.Path(path_type=Path))
@click.option("--where", required=True, metavar="EXPR", help=WHERE)
@click.option("--dry-run", is_flag=True, help="Change nothing; print the ids of the works that match.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def command(rundir: Path, where: str, dry_run: bool, yes: bool) -> None:
    """Have works of RUNDIR that ended asked again by the next `eyas run`; nothing is asked or paid now.

    An answer that a work has stands until a better one is there, and is exported till then.
    """
    terms = again.parse(where)
    configs.frozen(rundir)  # says so where there is no run
    if dry_run:
        found = again.read(rundir, terms)
        print(words(found, where), file=sys.stderr)
        print("".join(f"{work.key}\n" for work in found.works), end="")
        return
    with lock(rundir):
        found = again.read(rundir, terms)
        print(words(found, where), file=sys.stderr)
        if found.works and agreed(yes=yes):
            start.run_loop(again.retry(rundir, found.works, time.time))
            print("owed again: the next `eyas run` asks for them", file=sys.stderr)


def agreed(*, yes: bool) -> bool:
    """Have it confirmed.

    Raises:
        UsageError: nobody is there to ask.
    """
    if not yes and not sys.stdin.isatty():
        raise UsageError("nothing was changed: add --yes to agree without a terminal, or --dry-run to look only")
    return yes or click.confirm("Owe these again?", abort=True, err=True)


def words(found: again.Found, where: str) -> str:
    """What matches, and what asking it again means."""
    lines: list[str] = []
    if found.works:
        rows = [(dataset, verdict, str(count)) for (dataset, verdict), count in found.counts.items()]
        lines += columns([("set", "stands as", "works"), *rows], left=(0, 1))
        cost = "unknown, no answer has a cost yet" if found.estimate is None else f"${usd(found.estimate):.4f}"
        lines.append(f"{len(found.works)} works match; asking them again may cost about {cost}")
    else:
        lines.append(f"no work that ended matches {where!r}; works that are still owed are asked anyway")
    if found.answers:
        lines.append(
            f"{found.answers} of them have an answer: it stands, and is exported, until a better one is there; from then on "
            f"what it cost (${usd(found.paid):.4f} in all) counts as waste"
        )
    if found.wasted:
        lines.append(
            "note: with that the waste of the run passes [budget] waste: answers that are cut short would not be asked "
            "again by themselves any more; raise it if you want them to be"
        )
    if found.met:
        lines.append(
            f"note: the quota of {', '.join(found.met)} is met without them: they are asked only if you raise output_tokens"
        )
    if found.lost:
        lines.append(
            f"note: {found.lost} more match that cannot be asked: RUN.toml has them no more, or no whole answer stands before "
            "them in their conversation; they stay"
        )
    return "\n".join(lines)
