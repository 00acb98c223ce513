"""`eyas demo`: six real prompt sets against the built-in simulator, from prompts to rows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from eyas import config as configs
from eyas import vocab
from eyas.api.exporting import loader
from eyas.api.reporting import report
from eyas.cli import start
from eyas.cli.progress import progress
from eyas.cli.run import both, finish, say_inputs, watch_signals
from eyas.cli.say import columns_of
from eyas.engine.scope import Scope
from eyas.engine.session import Options
from eyas.engine.sessions import run_config
from eyas.errors import EyasError, UsageError
from eyas.export import Manifest, export
from eyas.export import Options as ExportOptions
from eyas.records import Run
from eyas.report.fit import fit
from eyas.report.progress import columns
from eyas.report.summary import exit_code, status
from eyas.state import State
from eyas.transport import Deadlines, HttpTransport, Request, fetch
from eyas.types import STRICT, Label

SETS = ("B3", "B4", "B5", "B6", "B7", "B8")
SCENARIO = ("--scenario", "rough", "--set", "length_median=300", "--set", "length_sigma=0.6", "--set", "speed=4")
RUN_TOML = """\
[run]
dir = {run}
[target]
model = "moonshotai/kimi-k2.5"
base_url = {base_url}
tokenizer = {tokenizer}
max_tokens = 4096
[budget]
usd = 5.0
[providers]
ignore = ["fireworks", "baseten"]
[limits]
in_flight = 400
"""
DATASET = """
[[datasets]]
name = {name}
source = {source}
"""


def command(out: Path, seed: int, limit: int | None) -> int:
    """Answer six prompt sets (B3 to B8) against the built-in simulator on a rough evening, and export them to DIR/rows."""
    scope = Scope(limit)
    out.mkdir(parents=True, exist_ok=True)
    tokenizer = vocab.kimi_folder()
    with simulator(seed, tokenizer) as base_url:
        text = run_toml(out, base_url, tokenizer)
        (out / "RUN.toml").write_text(text, encoding="utf-8")
        config = configs.load(out / "RUN.toml")
        scope.check(config)
        start.allow_open_files(config.limits.in_flight)
        with progress() as view:
            options = Options(False, say_inputs, both(watch_signals, view.begin), view.tick, scope)
            ended = start.run_loop(run_config(config, text, SecretStr("sk-demo"), options))
        books = start.run_loop(_books(base_url))
    code = finish(ended, as_json=False, quiet=True)
    if code == 130:
        return code
    run = Run(config.dir)
    try:
        manifest = export([config.dir], loader(config), ExportOptions(out / "rows"))
        print(table(ended.state, manifest, columns_of(sys.stdout)))
        lost = answers_lost(run.state, books)
        report([config.dir], out / "report.html", workers=None)
    finally:
        run.close()
    said = (
        f"\n{len(books)} requests were answered by the simulator in this call; answers lost by its books: {len(lost)}\n"
        f"rows for SpecForge and speculators: {out / 'rows'}  (`eyas show {config.dir} ID` shows one work)\n"
        f"a page on the run, with answers to read: {out / 'report.html'}"
    )
    print(fit(said, columns_of(sys.stdout)))
    return 1 if lost else exit_code(ended.state)


@contextmanager
def simulator(seed: int, tokenizer: Path) -> Generator[str]:
    """A simulator in a process of its own, ended by its own pid; gives its base URL.

    Raises:
        UsageError: it does not start.
    """
    arguments = [sys.executable, "-m", "eyas", "simulate", *SCENARIO, "--seed", str(seed)]
    arguments += ["--tokenizer", str(tokenizer), "--parent", str(os.getpid())]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:  # noqa: S603  # our own interpreter
        try:
            line = process.stdout.readline().strip() if process.stdout else ""
            if not line:
                raise UsageError("the simulator did not start: see its message above")
            yield line
        finally:
            process.terminate()


def run_toml(out: Path, base_url: str, tokenizer: Path) -> str:
    """The demo's RUN.toml."""
    folder = examples()
    quoted = {"run": str((out / "run").resolve()), "base_url": base_url, "tokenizer": str(tokenizer)}
    head = RUN_TOML.format(**{name: json.dumps(value) for name, value in quoted.items()})
    sets = (DATASET.format(name=json.dumps(s), source=json.dumps(str(folder / f"{s}.jsonl"))) for s in SETS)
    return head + "".join(sets)


def examples() -> Path:
    """The folder of the demo's prompts: in the package once installed, beside it in a checkout.

    Raises:
        UsageError: they are in neither.
    """
    package = Path(__file__).parent.parent
    for folder in (package / "examples", package.parent.parent / "examples" / "demo"):
        if (folder / "B3.jsonl").is_file():
            return folder
    raise UsageError("the demo's prompts are not installed: install eyas from its wheel, or run in a checkout")


async def _books(base_url: str) -> list[dict[str, Any]]:
    url = f"{base_url.removesuffix('/api/v1')}/sim/books"
    async with HttpTransport() as transport:
        status_code, _, body = await fetch(transport, Request("GET", url), Deadlines(total=60))
    if status_code != 200:
        raise EyasError(f"the simulator's books answered {status_code}: this is a defect of the demo, please report it")
    return json.loads(body)["entries"]


def answers_lost(state: State, books: list[dict[str, Any]]) -> list[str]:
    """Generations that the simulator delivered whole and the run has no answer of."""
    kept = {a.generation_id for a in state.attempts.values() if a.settled is not None and a.answered}
    return [g["id"] for g in books if g["status"] == "full" and g["completion_tokens"] > 0 and g["id"] not in kept]


def table(state: State, manifest: Manifest, width: int = 0) -> str:
    """Set by set: prompts, done, partial, output tokens, dollars, labels, yield.

    Where the terminal is narrower (`width`; 0: it is not), the labels stand below.
    """
    figures = status(state, running=False)["datasets"]
    rows: list[tuple[str, ...]] = [
        ("set", "prompts", "done", "partial", "tokens", "usd", "strict rows", "yield", "labels")
    ]
    for name, counts in manifest.datasets.items():
        each = figures[name]
        share = counts.usd["exported"] / each["usd"] if each["usd"] else 0.0
        rows.append(
            (
                name,
                str(each["prompts"]),
                str(each["done"]),
                str(each["partial"]),
                f"{each['output_tokens']:,}",
                f"{each['usd']:.4f}",
                str(sum(count.answers for label, count in counts.labels.items() if label in STRICT)),
                f"{share:.1%}",
                ", ".join(f"{label} {counts.labels[label].answers}" for label in Label if label in counts.labels),
            )
        )
    lines = columns(rows, left=(0, -1))
    if 0 < width < max(map(len, lines)):
        lines = columns([row[:-1] for row in rows])
        lines += ["", *(fit(f"{row[0]}: {row[-1]}", width) for row in rows[1:])]
    return "\n".join(lines)
