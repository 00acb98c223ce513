"""Whole runs in simulated time, drawn by seeds: is an answer lost, bought twice, or a dollar unexplained, anywhere?

    python bench/simulate.py [--runs 1000] [--seed 0] [--workers 2] [--most 4000]
    python bench/simulate.py --seed 417 --only 1 --verbose      replays one run and shows where it breaks

Every run draws a market, faults, a cap, quotas, kills, failed writes and interrupts from its seed, and is checked at each
event and at its end (tests/test_simulation.py). Exit 1 on a violation, or when some fault path was never taken.
"""

import argparse
import multiprocessing
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.test_simulation import KINDS, PATHS, draw, live

from eyas import vocab
from eyas.families import by_name

LOADED = {}


def one(job):
    """(seed, kind, outcome or None, what broke, seconds of CPU) of one run."""
    seed, most = job
    if not LOADED:
        LOADED["kimi"] = by_name("kimi-k2.5").load(vocab.kimi_folder())
    began, case, outcome, broke = time.process_time(), draw(seed, most), None, ""
    try:
        outcome = live(case, LOADED["kimi"])
    except Exception:  # noqa: BLE001  # whatever broke is the finding
        broke = traceback.format_exc()
    return seed, case.kind, outcome, broke, time.process_time() - began


def last_words(broke):
    """The line of a traceback that says what broke, out of groups too."""
    lines = [line.strip(" |") for line in broke.splitlines()]
    return next((line for line in reversed(lines) if "Error" in line.partition(":")[0]), lines[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--only", type=int, help="so many runs, and no demand on the paths that they take")
    parser.add_argument("--seed", type=int, default=0, help="the first seed; the runs take the ones that follow")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--most", type=int, default=4000, help="requests of the largest runs")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    vocab.kimi_folder()
    jobs = [(args.seed + number, args.most) for number in range(args.only or args.runs)]
    began = time.monotonic()
    with multiprocessing.Pool(min(args.workers, len(jobs))) as pool:
        violations, paths = collect(pool.imap_unordered(one, jobs), args, len(jobs))
    print(f"{len(jobs)} runs of {len(KINDS)} kinds in {time.monotonic() - began:.0f} s, {len(violations)} violations")
    missing = [] if args.only else [path for path in PATHS if not paths[path]]
    for path in sorted(paths):
        print(f"{paths[path]:10,} {path}")
    for path in missing:
        print(f"NEVER TAKEN: {path}")
    sys.exit(1 if violations or missing else 0)


def collect(results, args, total):
    """Take the runs in as they end; gives the seeds that broke, and how often each path was taken."""
    violations, paths, requests, largest, began, shown = [], Counter(), 0, 0, time.monotonic(), 0.0
    for number, (seed, kind, outcome, broke, seconds) in enumerate(results, 1):
        if broke:
            violations.append(seed)
            print(f"VIOLATION in seed {seed} ({kind}): {broke if args.verbose else last_words(broke)}")
            print(f"    replay: python bench/simulate.py --seed {seed} --only 1 --most {args.most} --verbose")
        if outcome is not None:
            paths += outcome.paths
            requests, largest = requests + outcome.requests, max(largest, outcome.requests)
            if args.verbose:
                print(
                    f"seed {seed} ({kind}): {outcome.requests} requests, {seconds:.1f} s, events {outcome.fingerprint[:16]}"
                )
        spent = time.monotonic() - began
        if spent - shown > 30:
            shown = spent
            print(f"{number} of {total} runs, {number / spent:.1f} a second, {requests:,} requests", file=sys.stderr)
    print(f"{requests:,} requests, {largest:,} in the largest run")
    return violations, paths


if __name__ == "__main__":
    main()
