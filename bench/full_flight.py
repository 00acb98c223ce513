"""One SIGKILL at full flight, 2000 requests of about 8000 tokens each: what of it is kept, and what is waste?

    python bench/full_flight.py [--in-flight 2000] [--tokens 8000] [--usd 100] [--at 0.5] [--seed 0]

`--at` is how far the answers are when the kill comes. Exit 0 if waste is 1 % of the cap or less and the rest is kept.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import kit
from eyas import vocab
from eyas.records import Run
from eyas.types import Verdict

TPS = 40


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--in-flight", type=int, default=2000)
    parser.add_argument("--tokens", type=int, default=8000)
    parser.add_argument("--usd", type=float, default=100.0)
    parser.add_argument("--at", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    tokenizer = vocab.kimi_folder()
    # Blocks of a hundred tokens: what flies is what counts here, not how finely it is cut.
    changes = {"tps": TPS, "length_median": args.tokens, "length_sigma": 0.02, "slots": 0, "cut": "block"}
    with tempfile.TemporaryDirectory() as name, kit.simulator(tokenizer, "clean", args.seed, **changes) as sim:
        sys.exit(fly_and_kill(args, Path(name), sim, tokenizer))


def fly_and_kill(args, folder, sim, tokenizer):
    limits = {"in_flight": args.in_flight, "max_tokens": 2 * args.tokens, "usd": args.usd}
    kit.write_run(folder, sim, tokenizer, 2 * args.in_flight, **limits)
    process = kit.start(folder, "run", "RUN.toml", "--yes", "--progress", "none")
    while sim.state()["in_flight"] < args.in_flight:
        if process.poll() is not None:
            sys.exit(f"the run ended early: {process.stderr.read()}")
        time.sleep(0.5)
    time.sleep(args.at * args.tokens / TPS)
    flying = sim.state()["in_flight"]
    kit.kill(process)
    while sim.state()["in_flight"]:  # providers that do not stop run on, and bill
        time.sleep(1)
    told = kit.eyas(folder, "reconcile", "run", timeout=900)
    run, books = Run(folder / "run"), sim.books()
    killed = [a for a in run.state.attempts.values() if a.settled and "killed" in a.settled.detail]
    kept = [a for a in killed if a.settled.verdict is Verdict.PARTIAL]
    tokens = sum(a.settled.tokens for a in kept)
    sampled = sum(row["produced"] for row in books.values())
    money = run.state.money
    waste = money.wasted / money.cap
    print(told.stderr.strip())
    print(
        f"{flying} in flight at the kill, {len(killed)} open in the journal, {len(kept)} kept as partial answers with "
        f"{tokens:,} tokens of {sampled:,} sampled"
    )
    print(
        f"settled ${money.settled / 1e9:.4f}, billed ${sum(row['billed_nano'] for row in books.values()) / 1e9:.4f}, "
        f"unknown ${money.unknown / 1e9:.4f}, wasted ${money.wasted / 1e9:.4f}: {waste:.3%} of the cap"
    )
    return 0 if waste <= 0.01 and len(kept) >= 0.99 * len(killed) else 1


main()
