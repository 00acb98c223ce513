"""What a streamed piece costs eyas, all of it included: reading under TLS, decoding, money, journal, labels.

    python bench/stream.py [--in-flight 2000] [--rate 10] [--pieces 200] [--rounds 3] [--plain] [--src src]

The load server (bench/load) streams a piece a token at an absolute schedule; `eyas run` answers in a process of its own,
with a task beside it that measures how late the loop wakes. The steady part is from the first moment the limit is reached
until the last request came in. `--src` measures another tree's source: to compare two, run them by turns.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import load
import uvloop

from eyas import vocab
from eyas.cli import main as eyas

BLINK = 0.02
"""Seconds that the task beside the run sleeps, again and again."""
TREE = Path(__file__).parent.parent
RUN_TOML = """\
[run]
dir = "run"
[target]
model = "moonshotai/kimi-k2.5"
base_url = "{url}"
tokenizer = "{tokenizer}"
max_tokens = {most}
[budget]
usd = 1000.0
[limits]
in_flight = {in_flight}
processes = 1
[[datasets]]
name = "B3"
source = "prompts.jsonl"
"""


def inside(notes: Path, arguments: list[str]) -> None:
    """`eyas ARGUMENTS` in this process, on a loop that notes [when, how late] of each wake-up, and the peak RSS."""
    lags: list[tuple[float, float]] = []

    def made() -> asyncio.AbstractEventLoop:
        loop = plain()

        def look(due: float) -> None:
            now = time.monotonic()
            lags.append((now, now - due))
            loop.call_later(BLINK, look, now + BLINK)

        loop.call_soon(look, time.monotonic())
        return loop

    plain, uvloop.new_event_loop = uvloop.new_event_loop, made  # type: ignore[assignment]  # for this measurement only
    try:
        eyas(arguments)
    finally:
        rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        notes.write_text(json.dumps({"lags": lags, "rss": rss}))


def spent(pid: int) -> float:
    """CPU seconds, user and system, of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def watch(client: subprocess.Popen[bytes], server: load.Server) -> list[dict[str, Any]]:
    """The server's counts four times a second, with the client's CPU seconds, until it ends."""
    samples: list[dict[str, Any]] = []
    while client.poll() is None:
        try:
            samples.append(server.stats() | {"spent": spent(client.pid)})
        except FileNotFoundError:
            break
        time.sleep(0.25)
    return samples


def has_processes(tree: str) -> bool:
    """Whether that source knows `[limits] processes`."""
    return "processes" in (Path(tree) / "eyas/config/sections.py").read_text()


def measure(args: argparse.Namespace, tree: str, server: load.Server, folder: Path) -> dict[str, float]:
    """One run's figures."""
    count = round(args.in_flight * args.rounds)
    (folder / "prompts.jsonl").write_text("".join(f'{{"prompt": "Question {n}?"}}\n' for n in range(count)))
    text = RUN_TOML.format(
        url=server.base_url, tokenizer=vocab.kimi_folder(), most=2 * args.pieces, in_flight=args.in_flight
    )
    (folder / "RUN.toml").write_text(text if has_processes(tree) else text.replace("processes = 1\n", ""))
    environment = {**os.environ, "OPENROUTER_API_KEY": "sk-test-bench", "PYTHONPATH": str(Path(tree).resolve())}
    if server.ca:
        environment["SSL_CERT_FILE"] = server.ca
    notes = folder / "notes.json"
    command = [sys.executable, __file__, "--inside", str(notes), "run", "RUN.toml", "--yes", "--progress", "none"]
    with subprocess.Popen(command, cwd=folder, env=environment) as client:
        samples = watch(client, server)
    if client.returncode != 0:
        raise SystemExit(f"eyas ended with exit code {client.returncode}")
    return figures(args, samples, json.loads(notes.read_text()), server.stats())


def figures(
    args: argparse.Namespace, samples: list[dict[str, Any]], notes: dict[str, Any], end: dict[str, Any]
) -> dict[str, float]:
    """What the samples say of the steady part."""
    full, last = end["full"], end["last"]
    steady = [each for each in samples if full["clock"] <= each["clock"] <= last["clock"]]
    if len(steady) < 2:
        raise SystemExit("the limit was never reached, or not for long: give more --rounds or more --pieces")
    first, final = steady[0], steady[-1]
    pieces = final["pieces"] - first["pieces"]
    mean = (last["integral"] - full["integral"]) / (last["clock"] - full["clock"])
    lags = sorted(late for when, late in notes["lags"] if first["clock"] <= when <= final["clock"])
    return {
        "µs a piece, steady part": (final["spent"] - first["spent"]) / pieces * 1e6,
        "µs a piece, start to end": samples[-1]["spent"] / end["pieces"] * 1e6,
        "pieces a second": pieces / (final["clock"] - first["clock"]),
        "seconds of steady part": final["clock"] - first["clock"],
        "in flight, % of limit": 100 * mean / args.in_flight,
        "loop lag p99, ms": 1000 * lags[int(0.99 * len(lags))],
        "loop lag max, ms": 1000 * lags[-1],
        "peak RSS, MB": notes["rss"],
        "late pieces, %": 100 * end["late"] / end["pieces"],
        "answers": end["finished"],
        "load server, µs a piece": end["cpu"] / end["pieces"] * 1e6,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--in-flight", type=int, default=2000)
    parser.add_argument("--rate", type=float, default=10.0, help="pieces a second of each stream")
    parser.add_argument("--pieces", type=int, default=200)
    parser.add_argument("--rounds", type=float, default=3, help="prompts over in flight")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--plain", action="store_true", help="without TLS")
    parser.add_argument("--src", action="append", help="source trees to measure by turns")
    args = parser.parse_args()
    trees = args.src or [str(TREE / "src")]
    found: dict[str, list[dict[str, float]]] = {tree: [] for tree in trees}
    flags = {"pieces": args.pieces, "rate": args.rate, "full": args.in_flight}
    for _ in range(args.runs):
        for tree in trees:
            with tempfile.TemporaryDirectory() as name, load.start(tls=not args.plain, **flags) as server:
                found[tree].append(measure(args, tree, server, Path(name)))
    print(f"machine: {os.cpu_count()} cores, Python {sys.version.split()[0]}; {'plain' if args.plain else 'TLS'}")
    for tree, runs in found.items():
        print(tree)
        for name in runs[0]:
            values = sorted(run[name] for run in runs)
            print(f"  {name:28} {statistics.median(values):10.1f}   ({values[0]:.1f} to {values[-1]:.1f})")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        inside(Path(sys.argv[2]), sys.argv[3:])
    else:
        main()
