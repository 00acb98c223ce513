"""`eyas import`."""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path

from eyas import config as configs
from eyas.answers import Form
from eyas.cli import start
from eyas.cli.say import say
from eyas.config import RunConfig
from eyas.engine.begin import begin
from eyas.engine.bring import Brought, Wish, bring
from eyas.engine.forget import IMPORT_QUARANTINE
from eyas.engine.inputs import Tokenizer, load_tokenizer, read_inputs
from eyas.engine.kept_apart import keep_apart
from eyas.lock import lock
from eyas.report.progress import columns
from eyas.types import STRICT, Label


def command(run: Path, source: str, dataset: str, form: str | None, provider: str, dry_run: bool) -> None:
    """Take answers made elsewhere into a run. They count like answers that were bought, and cost nothing."""
    wish = Wish(source, dataset, provider, Form(form) if form else None, Path.cwd())
    config = configs.load(run) if run.is_file() else configs.frozen(run)
    config.dataset(dataset)  # says so where there is none
    if dry_run:
        configs.frozen(config.dir)  # a run that is not begun cannot be looked at
    tokens = load_tokenizer(config)
    with nullcontext() if dry_run else lock(config.dir):
        if run.is_file() and not dry_run:
            _begin(run, config, tokens)
        found = start.run_loop(bring(config.dir, wish, config, tokens, time.time, dry=dry_run))
        if not dry_run:
            keep_apart(config.dir / IMPORT_QUARANTINE, found.bad, found.files)
    print("\n".join(table(found)))
    for sentence in sentences(found, config.dir, dataset, dry=dry_run):
        say(sentence)


def _begin(path: Path, config: RunConfig, tokens: Tokenizer) -> None:
    inputs = read_inputs(config, tokens)
    count = start.run_loop(begin(config, path.read_text(encoding="utf-8"), tokens, inputs, time.time))
    if count:
        say(f"{count} prompts joined the run in {config.dir}")


def table(found: Brought) -> list[str]:
    """What became of the answers, a line a kind, with the tokens of those that joined."""
    lines = [("answers", "count", "tokens")]
    lines += [
        (f"imported, {label}", f"{found.taken[label]:,}", f"{found.tokens[label]:,}")
        for label in Label
        if found.taken[label]
    ]
    others = (("already answered", found.already), ("forgotten", found.forgotten), ("in quarantine", len(found.bad)))
    lines += [(name, f"{count:,}", "") for name, count in others if count]
    if len(lines) == 1:
        lines.append(("none", "0", ""))
    return columns(lines, left=(0,))


def sentences(found: Brought, folder: Path, dataset: str, *, dry: bool) -> list[str]:
    """What it means for the run, and what to do next."""
    told: list[str] = []
    if len(found.bad):
        first = found.bad[0]
        where = "would be in quarantine" if dry else f"are in {folder / IMPORT_QUARANTINE}"
        told.append(f"{len(found.bad):,} rows {where}; the first: {first.file}, line {first.line}: {first.reason}")
    loose = sum(count for label, count in found.taken.items() if label not in STRICT)
    if loose:
        told.append(
            f"{loose:,} of the imported answers have labels that `eyas export` leaves out unless --labels loose is given"
        )
    quota = "" if found.limit is None else f" of its quota of {found.limit:,}"
    told.append(f"{dataset} has {found.kept:,} tokens{quota}; {found.owed:,} answers are still owed")
    told.append("a dry run: nothing was changed" if dry else "the next `eyas run` asks what is missing")
    return told
