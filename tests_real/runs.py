"""eyas as a user runs it, in processes of its own, against the real server: RUN.toml, a run watched, its export."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests import kit

from eyas.errors import EyasError
from eyas.records import Run
from eyas.types import Record
from tests_real.gguf import MODEL_NAME
from tests_real.texts import questions

IN_FLIGHT = 8
MAX_TOKENS = 80
SEED = 11
_POLL_SECONDS = 0.1
_RUN_TOML = """\
[run]
dir = "run"
[target]
backend = "{backend}"
base_url = "{url}"
model = "{model}"
family = "template"
tokenizer = "{tokenizer}"
thinking = false
temperature = 1.0
top_p = 1.0
max_tokens = {max_tokens}
extra_body = {{{extra}}}
[limits]
in_flight = {in_flight}
[[datasets]]
name = "Q"
source = "prompts.jsonl"
"""


def write_run(folder: Path, backend: str, url: str, tokenizer: Path, count: int, **extra: object) -> None:
    """RUN.toml and its prompts; `extra` goes to the body of each request, beside the seed."""
    lines = (json.dumps({"prompt": question}) + "\n" for question in questions(count))
    (folder / "prompts.jsonl").write_text("".join(lines), encoding="utf-8")
    pairs = ", ".join(f"{name} = {json.dumps(value)}" for name, value in {"seed": SEED, **extra}.items())
    values = {
        "model": MODEL_NAME,
        "max_tokens": MAX_TOKENS,
        "in_flight": IN_FLIGHT,
        "extra": pairs,
    }
    text = _RUN_TOML.format(backend=backend, url=url, tokenizer=tokenizer, **values)
    (folder / "RUN.toml").write_text(text, encoding="utf-8")


@contextmanager
def started(folder: Path) -> Generator[subprocess.Popen[str]]:
    """`eyas run`, or its resume; killed with the block, if it has not ended."""
    with kit.start(folder, "run", "RUN.toml", "--yes", "--progress", "none") as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                kit.kill(process)


def finish(process: subprocess.Popen[str], seconds: float) -> None:
    """Wait for the end of a run that must be complete.

    Raises:
        AssertionError: it did not end in time, or not with 0.
    """
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"eyas did not end in {seconds:.0f} s") from None
    assert process.returncode == 0, f"exit {process.returncode}\n{out[-2000:]}\n{err[-2000:]}"


def until_answered(folder: Path, process: subprocess.Popen[str], count: int, seconds: float) -> None:
    """Wait until the journal of a run that goes on holds so many answers.

    Raises:
        AssertionError: the run ended before, or the time was over.
    """

    def enough() -> bool:
        assert process.poll() is None, f"eyas ended with {process.returncode}: {process.communicate()}"
        return answered(folder) >= count

    wait(enough, seconds, f"{count} answers")


def wait(true: Callable[[], bool], seconds: float, what: str) -> None:
    """Ask again until it holds.

    Raises:
        AssertionError: the time was over.
    """
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, f"no {what} in {seconds:.0f} s"
        time.sleep(_POLL_SECONDS)


def answered(folder: Path) -> int:
    """Answers in the journal, 0 while there is none."""
    if not (folder / "run" / "journal.db").exists():
        return 0
    try:
        run = Run(folder / "run")
    except EyasError:
        return 0  # it is being made
    try:
        return len(kit.answered(run))
    finally:
        run.close()


def records(folder: Path) -> list[Record]:
    """All answers of a run that has ended."""
    run = Run(folder / "run")
    try:
        return list(run.records())
    finally:
        run.close()


def export(folder: Path) -> dict[str, dict[str, Any]]:
    """Rows of all labels, by their ids."""
    done = kit.eyas(folder, "export", "run", "--out", "rows", "--labels", "loose")
    assert done.returncode == 0, done.stderr
    lines = [line for path in sorted((folder / "rows").glob("*.jsonl")) for line in path.read_bytes().splitlines()]
    return {row["id"]: row for row in map(json.loads, lines)}
