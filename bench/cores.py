"""Do more reader processes read more? Each gets the same small share of a core, so that two cores carry four of them.

    python bench/cores.py [--share 0.06] [--in-flight 800] [--pieces 200] [--rate 60] [--seconds 45]

More is offered over TLS than the readers can take. Prints the pieces a second that `eyas run` took in with 2 and with 4
reader processes, by the answers that finished in the steady part, and the growth. Needs root and control groups of CPU.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import load

import kit
from eyas import vocab

PERIOD = 20_000
ROOTS = (Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup"))
WARM_UP = 20.0
PROMPTS = 30_000


class Share:
    """A control group of CPU with a quota, for one process."""

    def __init__(self, name: str, share: float) -> None:
        root = next((each for each in ROOTS if (each / "cgroup.procs").exists()), None)
        if root is None or os.geteuid() != 0:
            sys.exit("this needs root and a control group of CPU: run it as root on Linux")
        self._folder = root / name
        self._folder.mkdir(exist_ok=True)
        quota = round(PERIOD * share)
        if (self._folder / "cpu.cfs_quota_us").exists():
            (self._folder / "cpu.cfs_period_us").write_text(str(PERIOD))
            (self._folder / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (self._folder / "cpu.max").write_text(f"{quota} {PERIOD}")

    def take(self, pid: int) -> None:
        """Put a process into it."""
        (self._folder / "cgroup.procs").write_text(str(pid))

    def close(self) -> None:
        """Remove it; it must be empty."""
        self._folder.rmdir()


def children(pid: int) -> list[int]:
    """Child processes."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def measure(args: argparse.Namespace, processes: int) -> float:
    """Pieces a second that so many reader processes take in."""
    tokenizer = vocab.kimi_folder()
    with (
        tempfile.TemporaryDirectory() as name,
        load.start(tls=True, pieces=args.pieces, rate=args.rate, ttft=0.2, full=args.in_flight) as server,
    ):
        sim = kit.Sim(server.base_url, server.pid)
        kit.write_run(Path(name), sim, tokenizer, PROMPTS, in_flight=args.in_flight, processes=processes, usd=1000.0)
        os.environ["SSL_CERT_FILE"] = str(server.ca)
        client = kit.start(Path(name), "run", "RUN.toml", "--yes", "--progress", "none")
        while len(children(client.pid)) < processes:
            time.sleep(0.05)
        while server.stats()["open"] < 0.9 * args.in_flight:  # as fast as the cores allow; only then are they rationed
            if client.poll() is not None:
                sys.exit("the run ended before all its streams flew: is the machine busy?")
            time.sleep(0.25)
        shares = [Share(f"eyas-bench-{number}", args.share) for number in range(processes)]
        for share, pid in zip(shares, children(client.pid), strict=True):
            share.take(pid)
        time.sleep(WARM_UP)
        first, began = server.stats()["finished"], time.monotonic()
        time.sleep(args.seconds)
        finished, seconds = server.stats()["finished"] - first, time.monotonic() - began
        client.kill()
        client.communicate()
        for share in shares:
            while True:
                try:
                    share.close()
                    break
                except OSError:
                    time.sleep(0.1)
    return finished * args.pieces / seconds


def main() -> None:
    """Measure with two and with four."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=0.06)
    parser.add_argument("--in-flight", type=int, default=800)
    parser.add_argument("--pieces", type=int, default=200)
    parser.add_argument("--rate", type=float, default=60.0)
    parser.add_argument("--seconds", type=float, default=45.0)
    args = parser.parse_args()
    found = {}
    for processes in (2, 4):
        found[processes] = measure(args, processes)
        print(
            f"{processes} reader processes at {args.share:.0%} of a core each: {found[processes]:,.0f} pieces/s",
            flush=True,
        )
    print(f"growth {found[4] / found[2]:.2f}; Python {sys.version.split()[0]}, {os.cpu_count()} cores")
    sys.exit(0 if found[4] / found[2] >= 1.7 else 1)


main()
