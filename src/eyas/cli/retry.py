"""`eyas retry`."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from pathlib import Path

import click

from eyas import config as configs
from eyas.cli import start
from eyas.cli.say import say
from eyas.engine import again, facts
from eyas.engine import where as language
from eyas.errors import UsageError
from eyas.ledger import usd
from eyas.lock import lock
from eyas.records import Run
from eyas.report.progress import columns


def command(rundir: Path, where: str, dry_run: bool, yes: bool) -> None:
    """Have works of a run that ended asked again by the next `eyas run`, or say what a field of theirs is."""
    field = language.asked(where)
    terms = () if field else language.parse(where)
    configs.frozen(rundir)  # says so where there is no run
    if field:
        with closing(Run(rundir)) as run:
            print(facts.values(run.state, field))
        condition = f'"{field}>NUMBER"' if field in language.NUMBERS else f"{field}=VALUE"
        say(f"eyas: nothing was changed; to choose works: `eyas retry {rundir} --where {condition}`")
        return
    if dry_run:
        found = again.read(rundir, terms)
        say(words(found, where))
        print("".join(f"{work.key}\n" for work in found.works), end="")
        return
    with lock(rundir):
        found = again.read(rundir, terms)
        say(words(found, where))
        if found.works and agreed(yes=yes):
            start.run_loop(again.retry(rundir, found.works, time.time))
            say("owed again: the next `eyas run` asks for them")


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
