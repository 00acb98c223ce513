"""A rehearsal held against the same run for real: a small `founding` over the simulator's HTTP, and in simulated time.

    python bench/rehearse.py [--in-flight 100] [--tokens 330_000] [--max-tokens 2048] [--speed 4] [--seeds 5]

Three sets in a market at four times the speed of the founding night, about four minutes; answers are cut at 2048 tokens, so
that one long answer does not decide how long so small a run takes. The run's minutes are those from its first request to its
last answer, by the simulator's books. They must agree within 10 %, the dollars within 2 %.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from eyas import vocab

EYAS = [sys.executable, "-m", "eyas"]
MINUTES, DOLLARS = 0.10, 0.02
TOML = """
[run]
dir = "run"
[target]
model = "moonshotai/kimi-k2.5"
base_url = "{url}"
tokenizer = "{tokenizer}"
max_tokens = {max_tokens}
[budget]
usd = {usd}
mode = "metered"
output_tokens = {tokens}
[limits]
in_flight = {in_flight}
"""


def prepared(folder, url, args):
    text = TOML.format(
        url=url,
        tokenizer=vocab.kimi_folder(),
        usd=3.5 * args.tokens * 3 / 1e6,
        tokens=args.tokens,
        in_flight=args.in_flight,
        max_tokens=args.max_tokens,
    )
    for name in "ABC":
        text += f'[[datasets]]\nname = "{name}"\nsource = "{name}.jsonl"\n'
        rows = [
            {"prompt": f"Question {number} of set {name}: what follows from it?"}
            for number in range(args.tokens // 500)
        ]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = folder / "RUN.toml"
    path.write_text(text)
    return path


def eyas(folder, *words):
    done = subprocess.run([*EYAS, *words], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"eyas {' '.join(words)} left with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout)


def books(url):
    with urllib.request.urlopen(url.removesuffix("/api/v1") + "/sim/books") as answer:
        return json.load(answer)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--in-flight", type=int, default=100)
    parser.add_argument("--tokens", type=int, default=330_000)
    parser.add_argument("--max-tokens", type=int, default=2048)
    parser.add_argument("--speed", type=float, default=4.0)
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    os.environ["OPENROUTER_API_KEY"] = "sk-or-v1-bench"
    # Long pieces: a machine that is busy otherwise must not slow the market down.
    market = ["--scenario", "founding", "--set", f"speed={args.speed:g}", "--set", "cut=block"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = [*EYAS, "simulate", *market, "--max-seconds", "1200", "--parent", str(os.getpid())]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as simulator:
            try:
                url = simulator.stdout.readline().strip()
                path = prepared(folder, url, args)
                began = time.time()
                told = eyas(
                    folder, "rehearse", path.name, *market[:4], "--seeds", str(args.seeds), "--no-variants", "--json"
                )
                took = time.time() - began
                status = eyas(folder, "run", path.name, "--yes", "--json", "--progress", "none")
                entries = books(url)["entries"]
            finally:
                simulator.terminate()
    minutes = (max(each["ended"] for each in entries) - min(each["accepted"] for each in entries)) / 60
    dollars = status["money"]["settled"]
    print(f"{args.in_flight} in flight, 3 sets of {args.tokens:,} tokens, speed {args.speed:g}")
    print(f"for real    {minutes:6.2f} minutes  ${dollars:.4f}  {len(entries)} generations")
    print(
        f"rehearsed   {told['minutes']['p50']:6.2f} minutes  ${told['usd']['p50']:.4f}  {told['requests']} requests; "
        f"from {told['minutes']['p10']:.2f} to {told['minutes']['p90']:.2f}, {took:.0f} s of real time"
    )
    slower, dearer = told["minutes"]["p50"] / minutes - 1, told["usd"]["p50"] / dollars - 1
    print(f"differs by  {slower:+6.1%} minutes  {dearer:+.2%} dollars")
    sys.exit(abs(slower) > MINUTES or abs(dearer) > DOLLARS)


main()
