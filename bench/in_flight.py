"""Two thousand in flight: does the server's own count reach the limit and stay there while work remains?

    python bench/in_flight.py [--in-flight 2000] [--prompts 10000] [--tps 8] [--tokens 160]

One simulator and one `eyas run`, each in a process of its own, over loopback. The simulator counts what is open; its count
is read four times a second. Prints the count over the steady part (from the first time the limit is reached until the
last work was sent), the CPU of both processes, and answers per second against the ideal (in flight / mean seconds).
"""

import argparse
import contextlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from eyas import vocab

RUN = """
[run]
dir = "run"
[target]
model = "moonshotai/kimi-k2.5"
base_url = "{url}"
tokenizer = "{tokenizer}"
max_tokens = 1024
[budget]
usd = 1000.0
[limits]
in_flight = {in_flight}
[[datasets]]
name = "B3"
source = "prompts.jsonl"
"""


def get(url):
    with urllib.request.urlopen(url, timeout=30) as response:
        return json.load(response)


def cpu(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--in-flight", type=int, default=2000)
    parser.add_argument("--prompts", type=int, default=10_000)
    parser.add_argument("--tps", type=float, default=8.0)
    parser.add_argument("--tokens", type=int, default=160)
    args = parser.parse_args()
    tokenizer = vocab.kimi_folder()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "prompts.jsonl").open("w") as file:
            file.writelines(
                json.dumps({"prompt": f"Question {n}: what is {n} + {n}?"}) + "\n" for n in range(args.prompts)
            )
        changes = {
            "tps": args.tps,
            "length_median": args.tokens,
            "length_sigma": 0.1,
            "slots": 0,
            "keep_ids": "false",
            "drift": 0,
        }
        command = [sys.executable, "-m", "eyas", "simulate", "--scenario", "clean", "--parent", str(os.getpid())]
        for key, value in changes.items():
            command += ["--set", f"{key}={value}"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        url = server.stdout.readline().strip()
        (folder / "RUN.toml").write_text(RUN.format(url=url, tokenizer=tokenizer, in_flight=args.in_flight))
        env = {**os.environ, "OPENROUTER_API_KEY": "sk-bench"}
        began = time.monotonic()
        client = subprocess.Popen([sys.executable, "-m", "eyas", "run", "RUN.toml", "--yes"], cwd=folder, env=env)
        samples, usage = [], {}
        state_url = url.removesuffix("/api/v1") + "/sim/state"
        while client.poll() is None:
            state = get(state_url)
            samples.append((time.monotonic() - began, state["in_flight"], state["requests"]))
            with contextlib.suppress(FileNotFoundError):
                usage = {"client": cpu(client.pid), "server": cpu(server.pid)}
            time.sleep(0.25)
        state = get(state_url)
        server.terminate()
        server.wait()
        peak_rss = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    full = [i for i, (_, count, _) in enumerate(samples) if count >= 0.999 * args.in_flight]
    last = max(i for i, (_, _, requests) in enumerate(samples) if requests < args.prompts)
    steady = [count for _, count, _ in samples[full[0] : last + 1]] if full else []
    wall = samples[-1][0]
    print(f"machine: {os.cpu_count()} cores, Python {sys.version.split()[0]}")
    print(f"peak by the server's count: {state['peak']} of {args.in_flight}")
    if steady:
        print(
            f"steady part, {samples[full[0]][0]:.1f} s to {samples[last][0]:.1f} s, {len(steady)} samples: min {min(steady)}, "
            f"mean {statistics.mean(steady):.1f}, max {max(steady)}; below 98 %: {sum(c < 0.98 * args.in_flight for c in steady)}"
        )
    print(
        f"wall {wall:.1f} s; CPU s: "
        + ", ".join(f"{k} {v:.1f}" for k, v in usage.items())
        + f"; peak RSS {peak_rss:.0f} MB"
    )
    print(f"exit {client.returncode}")


main()
