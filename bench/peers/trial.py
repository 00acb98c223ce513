"""One trial: a load server, one tool in a process of its own, watched from outside until it ends or its time is up."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import load

from eyas.errors import EyasError
from eyas.records import Run
from eyas.types import Verdict
from peers import figures, tools, watch
from peers.case import Case
from peers.figures import Trial
from peers.tools import Tool
from peers.watch import Seen

RUN_TOML = """\
[run]
dir = "run"
[target]
model = "{model}"
base_url = "{url}"
tokenizer = "{tokenizer}"
max_tokens = 16384
stream = {stream}
[budget]
usd = 1000000
[limits]
in_flight = {in_flight}
{limits}
[[datasets]]
name = "bench"
source = "prompts.jsonl"
"""
FILLER = " ".join(["Explain it step by step, with one example for each step, and say what may go wrong."] * 12)
GRACE = 60.0


@dataclass(frozen=True)
class Setting:
    """What a trial needs beside tool and case: seconds at most (0: three times the ideal and a minute), lines for [limits]."""

    time_limit: float = 0.0
    limits: tuple[str, ...] = ()
    tokenizer: Path = Path()
    prompt_tokens: int = 20


@dataclass
class _Run:
    """What is gathered while a tool runs."""

    looks: list[Seen] = field(default_factory=list)
    counts: list[dict[str, Any]] = field(default_factory=list)
    cut: float = 0.0
    exit: int = 0
    cpu: float = 0.0


def prompt(number: int) -> str:
    """The text of a prompt; all have the same number of tokens."""
    return f"Question {number:06d}. {FILLER}"


def why_not(tool: Tool, case: Case) -> str:
    """Why a tool is not measured in this case; empty if it is."""
    if tool.name == "drain" and not case.stream:
        return "it reads streams only"
    return tool.why_not if case.stream else ""


def measure(tool: Tool, case: Case, run: int, setting: Setting) -> Trial:
    """Run one tool once. What keeps it from running is said in the trial, and not raised."""
    reason = why_not(tool, case)
    if reason:
        return Trial(tool.name, run, error=reason)
    try:
        tools.python(tool)
    except tools.NotInstalledError as error:
        return Trial(tool.name, run, error=f"cannot be installed: {error}")
    flags = {**case.flags, "full": math.ceil(0.99 * case.in_flight), "prompt_tokens": setting.prompt_tokens}
    with tempfile.TemporaryDirectory(prefix="eyas-bench-") as name, load.start(tls=case.tls, **flags) as server:
        folder = Path(name)
        with (folder / "prompts.jsonl").open("w") as file:
            file.writelines(json.dumps({"prompt": prompt(n)}) + "\n" for n in range(case.prompts))
        (folder / "out").mkdir()
        journal = watch.JournalWatch(folder / "run" / "journal.db") if tool.name == "eyas" else None
        before, began = watch.busy(), time.monotonic()
        with (folder / "log").open("wb") as log:
            seen = _watched(_start(tool, case, folder, server, setting), server, _limit(case, setting), log)
        wall = time.monotonic() - began
        stats, finished = server.stats(), server.finished()
        others = (watch.busy() - before - seen.cpu - stats["cpu"]) / wall
        delays = journal.stop(finished) if journal else []
        answers = _answers(tool, folder)
        if seen.exit and not seen.cut:
            tail = (folder / "log").read_text(errors="replace").strip()[-600:]
            print(f"{tool.name} ended with {seen.exit}:\n{tail}")
    return _judged(tool, case, run, seen, (stats, finished, delays, answers, others))


def _start(tool: Tool, case: Case, folder: Path, server: load.Server, setting: Setting):
    env = {**os.environ, "OPENROUTER_API_KEY": "sk-load", **tool.env}
    if server.ca:
        env["SSL_CERT_FILE"] = server.ca
    if tool.name == "drain":
        port = server.base_url.rpartition(":")[2].partition("/")[0]
        return [str(load.drain()), port, server.ca, str(case.in_flight)], folder, env
    if tool.name == "eyas":
        text = RUN_TOML.format(
            model=load.MODEL, url=server.base_url, tokenizer=setting.tokenizer, in_flight=case.in_flight,
            stream=str(case.stream).lower(), limits="\n".join(setting.limits),
        )  # fmt: skip
        (folder / "RUN.toml").write_text(text)
        return [str(tools.python(tool)), "-m", "eyas", "run", "RUN.toml", "--yes", "--progress", "none"], folder, env
    command = [str(tools.python(tool)), str(tools.HERE / "adapters" / tool.adapter), "--base-url", server.base_url]
    command += ["--prompts", "prompts.jsonl", "--in-flight", str(case.in_flight), "--out", "out"]
    return [*command, *(["--stream"] if case.stream else [])], folder, env


def _limit(case: Case, setting: Setting) -> float:
    return setting.time_limit or 3 * case.ideal() + GRACE


def _watched(what, server: load.Server, limit: float, log) -> _Run:
    command, folder, env = what
    found, end = _Run(), time.monotonic() + limit
    process = subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log, start_new_session=True)
    usage = None
    try:
        while usage is None:
            count = server.stats()
            found.looks.append(Seen(count["clock"], *watch.session(process.pid), count["requests"]))
            found.counts.append(count)
            if not found.cut and time.monotonic() > end:
                found.cut = limit
                os.killpg(process.pid, signal.SIGKILL)
            time.sleep(0.25 if count["requests"] else 0.05)
            pid, status, used = os.wait4(process.pid, os.WNOHANG)
            if pid:
                usage, process.returncode = used, os.waitstatus_to_exitcode(status)
    finally:
        if usage is None:
            os.killpg(process.pid, signal.SIGKILL)
    found.exit = process.returncode or 0
    # A tool that was killed has children that nobody waited for: what was seen of them is more then.
    found.cpu = max(usage.ru_utime + usage.ru_stime, *(look.cpu for look in found.looks))
    return found


def _answers(tool: Tool, folder: Path) -> int | None:
    """Answers that stand in the tool's own output."""
    if tool.name == "drain":
        return None
    if tool.name == "eyas":
        return _eyas_answers(folder)
    command = [str(tools.python(tool)), str(tools.HERE / "adapters" / tool.adapter), "--out", "out", "--count"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return int(json.loads(done.stdout)["answers"]) if done.returncode == 0 else None


def _eyas_answers(folder: Path) -> int:
    try:
        run = Run(folder / "run")
    except EyasError:
        return 0
    return sum(known.verdict is Verdict.DONE for known in run.state.works.values())


def _judged(tool: Tool, case: Case, run: int, seen: _Run, got: tuple[Any, ...]) -> Trial:
    stats, finished, delays, answers, others = got
    done, drains = stats["finished"], tool.name == "drain"
    flow = None if drains else figures.throughput(stats, seen.counts, case)
    cpu = figures.since_first(seen.looks, seen.cpu)
    wall = max(finished, default=0) / 1000 - stats["first"]["clock"] if done else 0.0
    p99 = figures.percentile(delays, 0.99)
    return Trial(
        tool=tool.name,
        run=run,
        cut=seen.cut,
        rate=flow and flow[0],
        share=flow and flow[1],
        whole=case.ideal() / wall if wall and not seen.cut and not drains else None,
        cpu_ms=1e3 * cpu / done if done else None,
        cpu_us=1e6 * cpu / stats["pieces"] if stats["pieces"] else None,
        cpu_total=seen.cpu,
        rss_mb=max(look.rss for look in seen.looks) / 2**20,
        peak=stats["peak"],
        answers=answers,
        lost=None if answers is None else done - answers,
        resent=None if drains else max(0, stats["requests"] - case.prompts),
        journal_ms=None if p99 is None else 1e3 * p99,
        late=stats["late"] / stats["pieces"] if stats["pieces"] else None,
        others=others,
        load=os.getloadavg()[0],
        server_cpu=stats["cpu"],
        exit=seen.exit,
    )
