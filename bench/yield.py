"""A rough run with one kill at full flight: what share of the dollars paid stands in the strict export?

    python bench/yield.py [--prompts 2000] [--in-flight 200] [--kills 1] [--seed 0]

Prints the yield table of the export. Exit 0 if the yield is 97 % or more, and waste 0.5 % or less of what was paid.
"""

import argparse
import json
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
    parser.add_argument("--prompts", type=int, default=2000)
    parser.add_argument("--in-flight", type=int, default=200)
    parser.add_argument("--kills", type=int, default=1)
    parser.add_argument("--scenario", default="rough")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--length", type=int, default=1500, help="median of the answers' tokens")
    parser.add_argument("--require-streamed", action="store_true", help="[providers] require_streamed = true")
    parser.add_argument("--keep", type=Path, help="work in this folder and leave it")
    args = parser.parse_args()
    tokenizer = vocab.kimi_folder()
    changes = {"tps": 100, "length_median": args.length, "length_sigma": 0.6, "slots": 0}
    with tempfile.TemporaryDirectory() as name, kit.simulator(tokenizer, args.scenario, args.seed, **changes) as sim:
        folder = args.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        kit.write_run(
            folder, sim, tokenizer, args.prompts, in_flight=args.in_flight, draft_seconds=1, max_tokens=16384, usd=100
        )
        if args.require_streamed:
            toml = folder / "RUN.toml"
            toml.write_text(toml.read_text().replace("[limits]", "[providers]\nrequire_streamed = true\n[limits]"))
        for _ in range(args.kills):
            process = kit.start(folder, "run", "RUN.toml", "--yes", "--progress", "none")
            # At half of the answers everything flies, and much is behind it.
            while _answers(folder) < args.prompts // 2 and process.poll() is None:
                time.sleep(0.5)
            kit.kill(process)
        last = kit.eyas(folder, "run", "RUN.toml", "--yes", "--progress", "none", timeout=900)
        again = kit.eyas(folder, "reconcile", "run", timeout=600)
        done = kit.eyas(folder, "export", "run", "--out", "rows", timeout=300)
        print(f"run exit {last.returncode}; {again.stderr.strip()}\n{done.stderr}")
        manifest = json.loads((folder / "rows" / "manifest.json").read_bytes())
        billed = sim.books()
    steps = {step["step"]: step for step in manifest["yield"]["total"]["steps"]}
    for loss in manifest["yield"]["total"]["losses"]:
        print(loss)
    paid, kept = steps["prompts"]["usd"], steps["supervised"]["usd"]
    print(
        f"yield {kept / paid:.2%} of ${paid:.4f}; the market billed ${sum(e['billed_nano'] for e in billed.values()) / 1e9:.4f}"
    )
    sys.exit(0 if kept >= 0.97 * paid else 1)


def _answers(folder):
    if not (folder / "run" / "journal.db").exists():
        return 0
    run = Run(folder / "run")
    try:
        return sum(known.answer is not None for known in run.state.works.values())
    finally:
        run.close()


main()
