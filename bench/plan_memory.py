"""Loads one large prompt set as `eyas plan` does, with a trivial token count: MB/s of JSON, rows, peak memory.

.venv/bin/python bench/plan_memory.py [--gb 2] [--turns 6] [--near 0.8] [--keep FILE]
"""

import argparse
import random
import resource
import tempfile
import time
from pathlib import Path

import msgspec
import zstandard

from eyas.config import Dataset
from eyas.prompts import Counts, interleave, load

WORDS = [
    f"{a}{b}{c}" for a in ("ba", "ke", "li", "mo", "nu", "sta") for b in ("r", "nd", "st", "m", "l") for c in "aeiou"
]


def text(rng, words):
    """Made-up prose."""
    return " ".join(rng.choices(WORDS, k=words))


def rows(target, turns):
    """Conversations as JSON lines until so many bytes are there; answers are three times as long as questions."""
    rng = random.Random(1)
    made = number = 0
    while made < target:
        talk = [
            {"from": who, "value": text(rng, words)}
            for _ in range(turns // 2)
            for who, words in (("human", 40), ("gpt", 120))
        ]
        line = msgspec.json.encode({"id": number, "conversations": talk}) + b"\n"
        made += len(line)
        number += 1
        yield line


def main():
    """Make the file, load it in the run's order, print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--gb", type=float, default=2.0)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--near", type=float)
    parser.add_argument("--keep", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = args.keep or Path(folder) / "made.jsonl.zst"
        if not path.exists():
            with path.open("wb") as file, zstandard.ZstdCompressor(level=1).stream_writer(file) as out:
                for line in rows(args.gb * 1e9, args.turns):
                    out.write(line)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        begun, worked = time.perf_counter(), time.process_time()
        dataset = Dataset(name="A", source=str(path), near_duplicates=args.near)
        loaded = load([dataset], Path(folder), 0, lambda prompt: len(prompt.messages[0]["content"]) // 4)
        one = loaded.sets["A"]
        taken, worked = time.perf_counter() - begun, time.process_time() - worked
        mixed, counts = interleave(loaded.sets.values(), 0), Counts(loaded.sets.values())
        begun = time.perf_counter()
        tokens = sum(counts[prompt.dataset, prompt.id] for prompt in mixed)
        walked = time.perf_counter() - begun
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{args.gb:g} GB of JSON, {one.rows} rows: {one.guess}")
        print(f"{len(one.prompts)} prompts, removed {dict(one.removed)}, {tokens} tokens")
        size = args.gb * 1000
        print(f"loaded in {taken:.0f} s, {size / taken:.0f} MB/s; {size / worked:.0f} MB a second of CPU")
        print(f"every prompt read in order in {walked:.0f} s")
        print(f"peak memory {peak:.0f} MB, {before:.0f} MB of it before")


if __name__ == "__main__":
    main()
