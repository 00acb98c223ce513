"""What end-to-end tests and benchmarks share: a simulator and `eyas` in processes of their own, and its books."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from eyas.records import Run
from eyas.types import Prompt, Verdict, Work

KEY = "sk-test-canary"
RUN_TOML = """\
[run]
dir = "run"
[target]
model = "moonshotai/kimi-k2.5"
base_url = "{url}"
tokenizer = "{tokenizer}"
max_tokens = {max_tokens}
[budget]
usd = {usd}
[limits]
in_flight = {in_flight}
draft_seconds = {draft_seconds}
processes = {processes}
[[datasets]]
name = "B3"
source = "prompts.jsonl"
"""


class Sim:
    """A simulator over HTTP."""

    def __init__(self, url: str, pid: int) -> None:
        self.url = url
        self.pid = pid
        self._root = url.removesuffix("/api/v1")

    def state(self) -> dict[str, Any]:
        """Counts: in_flight, peak, requests, billed_nano."""
        return self._get("/sim/state")

    def books(self, *, ids: bool = False) -> dict[str, dict[str, Any]]:
        """Every generation by its id."""
        return {row["id"]: row for row in self._get("/sim/books" + ("?ids=1" if ids else ""))["entries"]}

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(self._root + path, timeout=60) as response:  # noqa: S310  # loopback
            return json.load(response)


@contextmanager
def simulator(tokenizer: Path, scenario: str = "clean", seed: int = 0, **changes: object) -> Generator[Sim]:
    """A simulator on a free port, ended by its own pid; `faults__x=1` sets faults.x."""
    command = [sys.executable, "-m", "eyas", "simulate", "--scenario", scenario, "--seed", str(seed)]
    command += ["--tokenizer", str(tokenizer), "--parent", str(os.getpid()), "--max-seconds", "1800"]
    for name, value in changes.items():
        command += ["--set", f"{name.replace('__', '.')}={value}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Sim(process.stdout.readline().strip(), process.pid)
        finally:
            process.terminate()


def write_run(folder: Path, sim: Sim, tokenizer: Path, prompts: int, **limits: object) -> None:
    """prompts.jsonl and RUN.toml of a run over so many different prompts."""
    lines = (json.dumps({"prompt": f"Question {n}: what is {n} + {n}?"}) + "\n" for n in range(prompts))
    (folder / "prompts.jsonl").write_text("".join(lines), encoding="utf-8")
    values = {"max_tokens": 1024, "usd": 100.0, "in_flight": 100, "draft_seconds": 3.0, "processes": 1, **limits}
    text = RUN_TOML.format(url=sim.url, tokenizer=tokenizer, **values)
    (folder / "RUN.toml").write_text(text, encoding="utf-8")


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """`eyas ARGUMENTS` in a folder."""
    env = {**os.environ, "OPENROUTER_API_KEY": KEY}
    return subprocess.Popen(
        [sys.executable, "-m", "eyas", *arguments],
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def until(process: subprocess.Popen[str], what: Callable[[], bool]) -> None:
    """Look again and again, while a process goes on, until it is so."""
    while not what():
        with contextlib.suppress(subprocess.TimeoutExpired):
            pytest.fail(f"it ended with {process.wait(0.05)} before that")


def eyas(folder: Path, *arguments: str, timeout: float = 170) -> subprocess.CompletedProcess[str]:
    """The same to its end."""
    with start(folder, *arguments) as process:
        out, err = process.communicate(timeout=timeout)
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def kill(process: subprocess.Popen[str]) -> None:
    """SIGKILL, and wait."""
    process.send_signal(signal.SIGKILL)
    process.communicate()


def prompt_key(prompt: Prompt) -> str:
    """The simulator's key of a prompt."""
    text = json.dumps(
        [list(prompt.messages), list(prompt.tools)], sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    return hashlib.sha256(text.encode()).hexdigest()


def answered(run: Run) -> set[Work]:
    """Works that the journal holds an answer of."""
    return {work for work, known in run.state.works.items() if known.verdict in (Verdict.DONE, Verdict.PARTIAL)}


def asked(books: Iterable[dict[str, Any]]) -> Counter[str]:
    """Requests that the simulator took, by prompt key."""
    return Counter(row["prompt_key"] for row in books)


def money(run: Run, books: dict[str, dict[str, Any]]) -> dict[str, int]:
    """Nano-dollars: settled and unknown by our books, billed by theirs, and billed for what we have no id of."""
    ours = {attempt.generation_id for attempt in run.state.attempts.values() if attempt.generation_id}
    return {
        "settled": run.state.money.settled,
        "unknown": run.state.money.unknown,
        "billed": sum(row["billed_nano"] for row in books.values()),
        "billed without id": sum(row["billed_nano"] for name, row in books.items() if name not in ours),
    }
