"""Kill -9 at random moments, resume each time: is anything lost, asked twice, or unaccounted for?

    python bench/kills.py [--kills 50] [--prompts 2000] [--in-flight 200] [--seed 0]

After each kill the journal is read: works with an answer may never be asked again. At the end every dollar that the
simulator billed must stand in the run's books. Exit 0 if all holds.
"""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import kit
from eyas import vocab
from eyas.records import Run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--prompts", type=int, default=2000)
    parser.add_argument("--in-flight", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    tokenizer = vocab.kimi_folder()
    with (
        tempfile.TemporaryDirectory() as name,
        kit.simulator(tokenizer, "clean", args.seed, tps=40, length_median=300, length_sigma=0.5, slots=0) as sim,
    ):
        sys.exit(kit_run(args, Path(name), sim, tokenizer))


def kit_run(args, folder, sim, tokenizer):
    rng = random.Random(args.seed)
    kit.write_run(folder, sim, tokenizer, args.prompts, in_flight=args.in_flight, draft_seconds=0.5)
    began, kills, frozen, early = time.monotonic(), 0, {}, 0
    while kills < args.kills:
        process = kit.start(folder, "run", "RUN.toml", "--yes", "--progress", "none")
        time.sleep(rng.uniform(0.3, 6.0))
        if process.poll() is not None:
            print(f"the run ended after {kills} kills (exit {process.returncode}): {process.stderr.read()}")
            break
        kit.kill(process)
        kills += 1
        if not (folder / "run" / "journal.db").exists():
            early += 1
            continue
        run = Run(folder / "run")
        counts = kit.asked(sim.books().values())
        for work in kit.answered(run):
            frozen.setdefault(work, counts[kit.prompt_key(run.prompt(work.dataset, work.prompt_id))])
        run.close()
    last = kit.eyas(folder, "run", "RUN.toml", "--yes", "--json", timeout=600)
    run = Run(folder / "run")
    before = kit.money(run, sim.books())
    run.close()
    reconciled = kit.eyas(folder, "reconcile", "run", timeout=600)
    run, books = Run(folder / "run"), sim.books()
    counts = kit.asked(books.values())
    again = [w for w, n in frozen.items() if counts[kit.prompt_key(run.prompt(w.dataset, w.prompt_id))] != n]
    after = kit.money(run, books)
    states = run.state.datasets["B3"].ended
    by_kill = [a for a in run.state.attempts.values() if a.settled and "killed" in a.settled.detail]
    partial = [a for a in by_kill if a.answered]
    no_id = sum(not a.generation_id for a in run.state.attempts.values())
    print(
        f"{kills} kills ({early} before the journal was there), {time.monotonic() - began:.0f} s, last run exit {last.returncode}"
    )
    print(f"works by state: { {k.value: v for k, v in states.items() if v} } of {args.prompts}")
    print(f"answers journalled before a kill: {len(frozen)}, asked again: {len(again)}")
    print(f"attempts open at a kill: {len(by_kill)}, kept as partial answers: {len(partial)}, without an id: {no_id}")
    print(f"before reconcile: {before}")
    print(f"after reconcile:  {after} ({reconciled.stderr.strip()})")
    explained = after["settled"] + after["billed without id"] == after["billed"]
    covered = before["settled"] + before["unknown"] >= before["billed"]
    checks = {
        "every work in one state": sum(states.values()) == args.prompts,
        "no journalled answer asked again": not again,
        "partial answers kept": bool(partial),
        "settled + unknown >= billed": covered,
        "after reconcile every dollar explained": explained,
    }
    for what, holds in checks.items():
        print(("ok    " if holds else "FAILS ") + what)
    return 0 if all(checks.values()) else 1


main()
