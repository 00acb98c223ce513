"""A run over three workers of a Ray cluster on this machine, beside the same run of one machine at equal total in flight.

    .venv-ray/bin/python bench/cluster.py --in-flight 600 --prompts 3000 --runs 3

Prints answers a second over the middle half of each run, by turns, and the CPU that the process that was typed takes an answer
in that time, all its threads and Ray's part included. Answers come whole (`stream = false`), so that two cores carry simulator,
cluster and workers; the simulator keeps an answer as long as its tokens take.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

from ray.cluster_utils import Cluster
from stream import spent
from tests import kit

from eyas import vocab
from eyas.events import Settled
from eyas.journal import Store
from eyas.standing import ANSWERED

WORKERS = 3
LOOK = 0.5
"""Seconds between two looks at a process."""


def run(folder: Path, prompts: int, given: argparse.Namespace, on: str) -> tuple[float, float]:
    """Of the middle half of a run by a simulator of its own: answers a second, and milliseconds of CPU an answer."""
    folder.mkdir()
    quiet = ("--yes", "--progress", "none", *(("--on", on) if on else ()))
    command = [sys.executable, "-m", "eyas", "run", "RUN.toml", *quiet]
    with (
        kit.simulator(vocab.kimi_folder(), length_median=300, speed=given.speed) as sim,
        tempfile.TemporaryFile() as out,
    ):
        write(folder, sim, prompts, given.in_flight)
        env = {**os.environ, "OPENROUTER_API_KEY": kit.KEY}
        with subprocess.Popen(command, cwd=folder, env=env, stderr=out) as process:
            used = watched(process)
        if process.returncode:
            out.seek(0)
            raise SystemExit(out.read().decode())
    with closing(Store(folder / "run")) as store:
        ends = sorted(e.at for _, e in store.events() if isinstance(e, Settled) and e.verdict in ANSWERED)
    first, last = ends[len(ends) // 4], ends[3 * len(ends) // 4]
    amid = [each for each in used if first <= each[0] <= last]
    share = (amid[-1][1] - amid[0][1]) / (amid[-1][0] - amid[0][0])
    rate = len(ends) / 2 / (last - first)
    return rate, 1000 * share / rate


def watched(process: subprocess.Popen[bytes]) -> list[tuple[float, float]]:
    """(seconds since 1970, its CPU seconds) again and again until it ends."""
    seen: list[tuple[float, float]] = []
    while process.poll() is None:
        seen.append((time.time(), spent(process.pid)))
        time.sleep(LOOK)
    return seen


def write(folder: Path, sim: kit.Sim, prompts: int, in_flight: int) -> None:
    """The run's files."""
    kit.write_run(folder, sim, vocab.kimi_folder(), prompts, usd=1000.0, in_flight=in_flight, max_tokens=2048)
    path = folder / "RUN.toml"
    text = path.read_text().replace("max_tokens = 2048", "max_tokens = 2048\nstream = false")
    path.write_text(f"{text}[cluster]\nworkers = {WORKERS}\nin_flight_per_worker = {in_flight // WORKERS}\n")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--in-flight", type=int, default=600)
    parser.add_argument("--prompts", type=int, default=3000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--speed", type=float, default=2, help="how many times faster than life the simulator answers")
    given = parser.parse_args()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    for _ in range(WORKERS):
        cluster.add_node(num_cpus=2)
    on = f"ray:{cluster.address}"
    rates: dict[str, list[float]] = {"one machine": [], "three workers": []}
    costs: list[float] = []
    try:
        with tempfile.TemporaryDirectory() as name:
            for number in range(given.runs):
                for what, where in (("one machine", ""), ("three workers", on)):
                    rate, each = run(Path(name) / f"{number}{bool(where)}", given.prompts, given, where)
                    rates[what].append(rate)
                    costs += [each] if where else []
                    print(f"{what}: {rate:.1f} answers/s, {each:.2f} ms of CPU an answer", flush=True)
    finally:
        cluster.shutdown()
    one, three = (statistics.median(rates[what]) for what in rates)
    print(f"median: one machine {one:.1f}, three workers {three:.1f} answers/s: {three / one - 1:+.1%}")
    print(f"the leading process: {statistics.median(costs):.2f} ms of CPU an answer")


if __name__ == "__main__":
    main()
