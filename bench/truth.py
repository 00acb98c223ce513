"""Exported ids against the ids that the simulator sampled, by provider and label.

    python bench/truth.py [--prompts 2000] [--drift 0.05] [--seed 0]

Prints for each provider and label: rows, and how many hold exactly the sampled ids, for answers as the tokenizer would
split them and for drifted ones. Exit 1 if a `streamed` row is wrong, or an undrifted `counted` one.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import kit
from eyas import vocab


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=2000)
    parser.add_argument("--drift", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    tokenizer = vocab.kimi_folder()
    # Few slots at each provider, so that all of them serve a share.
    changes = {"tps": 400, "ttft": 0.05, "length_median": 250, "length_sigma": 0.5, "slots": 40, "drift": args.drift}
    with tempfile.TemporaryDirectory() as name, kit.simulator(tokenizer, "rough", args.seed, **changes) as sim:
        folder = Path(name)
        kit.write_run(folder, sim, tokenizer, args.prompts, in_flight=300)
        kit.eyas(folder, "run", "RUN.toml", "--yes", "--progress", "none", timeout=900)
        kit.eyas(folder, "export", "run", "--out", "rows", "--labels", "loose", timeout=300)
        books = sim.books(ids=True)
        lines = (folder / "rows" / "rows-00000.jsonl").read_bytes().split(b"\n")
    rows = [json.loads(line) for line in lines if line]
    counts, wrong = Counter(), 0
    for row in rows:
        meta = row["metadata"]
        truth = books[meta["generation_id"]]
        ids = row["input_ids"][row["loss_mask"].index(1) :]
        ended = meta["finish"] in ("stop", "tool_calls")
        exact = ids == (truth["ids"] if ended else truth["ids"][: len(ids)])
        if meta["label"] == "stripped":
            exact = supervised_ids_hold(row, truth["ids"])
        counts[meta["provider"], meta["label"], truth["drifted"], exact] += 1
        wrong += not exact and (meta["label"] == "streamed" or (meta["label"] == "counted" and not truth["drifted"]))
    print(f"{len(rows)} rows; for `stripped`, exact means: the supervised ids stand in the sampled ones in order")
    print(f"{'provider':14} {'label':10} {'undrifted':>10} {'exact':>7} {'drifted':>8} {'exact':>7}")
    for provider, label in sorted({key[:2] for key in counts}):
        plain = [counts[provider, label, False, exact] for exact in (True, False)]
        drifted = [counts[provider, label, True, exact] for exact in (True, False)]
        print(f"{provider:14} {label:10} {sum(plain):10} {plain[0]:7} {sum(drifted):8} {drifted[0]:7}")
    sys.exit(1 if wrong else 0)


def supervised_ids_hold(row, sampled):
    """Whether the supervised ids are a subsequence of the sampled ones."""
    place = iter(sampled)
    return all(number in place for number, mask in zip(row["input_ids"], row["loss_mask"], strict=True) if mask)


main()
