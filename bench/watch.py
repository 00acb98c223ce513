"""What looking costs: the throughput of a run with nobody looking, with `eyas watch` beside it, and with its own live view.

    python bench/watch.py [--in-flight 2000] [--prompts 10000] [--tps 8] [--tokens 160] [--rounds 3]

One simulator and one `eyas run`, each in a process of its own, over loopback; the three ways by turns. Views are on
pseudo-terminals of 120 by 40, read as fast as they write. Throughput is answers a second over the steady part, from the first
time the limit is reached until the last work was sent. Prints each round, CPU seconds, and the differences of the medians.
"""

import argparse
import contextlib
import fcntl
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import kit
from eyas import vocab

WAYS = ("nobody", "watch", "live")
SIZE = (40, 120)


def cpu(pid):
    with contextlib.suppress(FileNotFoundError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return None


class Pty:
    """A terminal that is read all the time; `bytes` counts what came."""

    def __init__(self):
        self.master, self.slave = os.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", *SIZE, 0, 0))
        self.bytes = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        with contextlib.suppress(OSError):
            while data := os.read(self.master, 1 << 16):
                self.bytes += len(data)


def start(folder, *arguments, pty=None):
    """`eyas ARGUMENTS`, its stderr (of watch: its stdout) on a terminal."""
    env = {**os.environ, "OPENROUTER_API_KEY": kit.KEY, "TERM": "xterm-256color"}
    name = "stdout" if arguments[0] == "watch" else "stderr"
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **({} if pty is None else {name: pty.slave})}
    return subprocess.Popen([sys.executable, "-m", "eyas", *arguments], cwd=folder, env=env, **streams)


def follow(sim, client, watch):
    """(seconds, in flight, requests so far) four times a second, and CPU seconds, until the run ends."""
    samples, used, began = [], {}, time.monotonic()
    while client.poll() is None:
        state = sim.state()
        samples.append((time.monotonic() - began, state["in_flight"], state["requests"]))
        for who, process in (("run", client), ("watch", watch)):
            spent = None if process is None else cpu(process.pid)
            used[who] = used.get(who, 0.0) if spent is None else spent
        time.sleep(0.25)
    return samples, used


def play(way, args, tokenizer):
    """One run; gives answers a second in its steady part, and CPU seconds."""
    changes = {
        "tps": args.tps, "length_median": args.tokens, "length_sigma": 0.1, "slots": 0, "keep_ids": "false", "drift": 0,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as name, kit.simulator(tokenizer, "clean", **changes) as sim:
        folder, pty = Path(name), None if way == "nobody" else Pty()
        kit.write_run(folder, sim, tokenizer, args.prompts, usd=1000.0, in_flight=args.in_flight)
        shown = "live" if way == "live" else "none"
        client = start(folder, "run", "RUN.toml", "--yes", "--progress", shown, pty=pty if way == "live" else None)
        watch = None
        if way == "watch":
            while not (folder / "run" / "pulse.json").exists() and client.poll() is None:
                time.sleep(0.1)
            watch = start(folder, "watch", "run", pty=pty)
        samples, used = follow(sim, client, watch)
        if watch is not None:
            watch.wait(30)
    full = [i for i, (_, count, _) in enumerate(samples) if count >= 0.99 * args.in_flight]
    last = max(i for i, (_, _, requests) in enumerate(samples) if requests < args.prompts)
    if not full or full[0] >= last:
        sys.exit(f"{way}: the limit was never reached, or no work was left then: give more --prompts")
    first, end = samples[full[0]], samples[last]
    rate = (end[2] - first[2]) / (end[0] - first[0])
    cpus = ", ".join(f"{who} {spent:.1f} s" for who, spent in used.items() if spent)
    drawn = f", {pty.bytes / samples[-1][0] / 1000:.1f} kB/s drawn" if pty else ""
    print(
        f"{way:6} {rate:8.2f} answers/s over {end[0] - first[0]:.0f} s; CPU {cpus} of {samples[-1][0]:.0f} s{drawn}",
        flush=True,
    )
    return rate


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--in-flight", type=int, default=2000)
    parser.add_argument("--prompts", type=int, default=10_000)
    parser.add_argument("--tps", type=float, default=8.0)
    parser.add_argument("--tokens", type=int, default=160)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    tokenizer, rates = vocab.kimi_folder(), {way: [] for way in WAYS}
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, {args.in_flight} in flight")
    for _ in range(args.rounds):
        for way in WAYS:
            rates[way].append(play(way, args, tokenizer))
    base = statistics.median(rates["nobody"])
    for way in WAYS[1:]:
        print(f"{way}: {statistics.median(rates[way]) / base - 1:+.2%} of the throughput with nobody looking")


main()
