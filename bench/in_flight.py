"""Two thousand in flight: does the server's own count reach the limit and stay there while work remains?

    python bench/in_flight.py [--in-flight 2000] [--prompts 10000] [--tps 8] [--tokens 160]

One simulator and one `eyas run`, each in a process of its own, over loopback. The simulator counts what is open; its count
is read four times a second. Prints the count over the steady part (from the first time the limit is reached until the
last work was sent), the CPU of both processes, and answers per second against the ideal (in flight / mean seconds).
"""

import argparse
import contextlib
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import kit
from eyas import vocab


def cpu(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def watch(client, sim):
    """(seconds, in flight, requests so far) four times a second, and the CPU seconds of both, until the client ends."""
    samples, usage, began = [], {}, time.monotonic()
    while client.poll() is None:
        state = sim.state()
        samples.append((time.monotonic() - began, state["in_flight"], state["requests"]))
        with contextlib.suppress(FileNotFoundError):
            usage = {"client": cpu(client.pid), "server": cpu(sim.pid)}
        time.sleep(0.25)
    return samples, usage


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--in-flight", type=int, default=2000)
    parser.add_argument("--prompts", type=int, default=10_000)
    parser.add_argument("--tps", type=float, default=8.0)
    parser.add_argument("--tokens", type=int, default=160)
    args = parser.parse_args()
    most, tokenizer = args.in_flight, vocab.kimi_folder()
    changes = {
        "tps": args.tps,
        "length_median": args.tokens,
        "length_sigma": 0.1,
        "slots": 0,
        "keep_ids": "false",
        "drift": 0,
    }
    with tempfile.TemporaryDirectory() as name, kit.simulator(tokenizer, "clean", **changes) as sim:
        kit.write_run(Path(name), sim, tokenizer, args.prompts, usd=1000.0, in_flight=most)
        client = kit.start(Path(name), "run", "RUN.toml", "--yes", "--progress", "none")
        samples, usage = watch(client, sim)
        print(client.communicate()[1], end="")
        peak = sim.state()["peak"]
    rss = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    full = [i for i, (_, count, _) in enumerate(samples) if count >= 0.999 * most]
    last = max(i for i, (_, _, requests) in enumerate(samples) if requests < args.prompts)
    steady = [count for _, count, _ in samples[full[0] : last + 1]] if full else []
    print(f"machine: {os.cpu_count()} cores, Python {sys.version.split()[0]}")
    print(f"peak by the server's count: {peak} of {most}")
    if steady:
        print(
            f"steady part, {samples[full[0]][0]:.1f} s to {samples[last][0]:.1f} s, {len(steady)} samples: min {min(steady)}, "
            f"mean {statistics.mean(steady):.1f}, max {max(steady)}; below 98 %: {sum(c < 0.98 * most for c in steady)}"
        )
    seconds = ", ".join(f"{who} {spent:.1f}" for who, spent in usage.items())
    print(f"wall {samples[-1][0]:.1f} s; CPU s: {seconds}; peak RSS {rss:.0f} MB; exit {client.returncode}")


main()
