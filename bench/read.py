"""How fast prompts are read: an N GB jsonl.zst of conversations through `rows`, with its memory.

    .venv/bin/python bench/read.py --gb 2

The rows are made of words drawn by Zipf's law, with the line breaks, quotes, code and other scripts of real talk; each row
is new, so Zstandard packs them about as it packs real text. One process reads, on one core.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import zstandard

from eyas.prompts.read import Row, rows

WORDS = 30_000
PIECES = ("\n\n", '"quoted"', "```python\nprint('x')\n```", "naïve", "问题", "x = {'a': [1, 2]}", "\\frac{1}{2}")


def made(size: int, seed: int) -> Iterator[bytes]:
    """Lines of conversations, `size` bytes or a little more."""
    rng = random.Random(seed)
    words = ["".join(rng.choices("etaoinshrdlucmfw", k=rng.randint(2, 9))) for _ in range(WORDS)]
    words[:: WORDS // 700] = [rng.choice(PIECES) for _ in words[:: WORDS // 700]]
    weights = [1 / (rank + 3) for rank in range(WORDS)]
    pool = rng.choices(words, weights, k=2_000_000)
    number = 0
    while size > 0:
        row = {"id": f"row-{number}", "messages": [turn(rng, pool, at) for at in range(rng.choice((2, 2, 4, 6)))]}
        line = json.dumps(row, ensure_ascii=False).encode() + b"\n"
        yield line
        size -= len(line)
        number += 1


def turn(rng: random.Random, pool: list[str], at: int) -> dict[str, str]:
    """A turn of a talk: answers are longer than questions, and lengths have a long tail."""
    length = min(20_000, int(rng.lognormvariate(5.5 if at % 2 else 4, 1)))
    start = rng.randrange(len(pool) - length)
    return {"role": "assistant" if at % 2 else "user", "content": " ".join(pool[start : start + length])}


def write(path: Path, size: int) -> int:
    """Writes the file; returns bytes of JSON."""
    total = 0
    with path.open("wb") as file, zstandard.ZstdCompressor(level=3).stream_writer(file) as packed:
        for line in made(size, 0):
            total += len(line)
            packed.write(line)
    return total


def read(path: Path) -> None:
    """Reads the file in this process and prints rows, seconds, seconds of CPU and the most memory in MB."""
    began, count = time.perf_counter(), 0
    for row in rows(path, path.parent):
        if not isinstance(row, Row):
            raise SystemExit(f"a made row is bad: {row}")
        count += 1
    used = resource.getrusage(resource.RUSAGE_SELF)
    figures = {"rows": count, "seconds": time.perf_counter() - began, "cpu": used.ru_utime + used.ru_stime}
    # ru_maxrss of a child counts the memory of the process that it was forked from.
    most = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    print(json.dumps({**figures, "rss_mb": int(most[1]) / 1024 if most else used.ru_maxrss / 1024}))


def main() -> None:
    """Makes the file and reads it in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gb", type=float, default=2.0, help="GB of JSON to make (default 2)")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.read:
        read(asked.read)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "talk.jsonl.zst"
        size = write(path, int(asked.gb * 1e9))
        command = [sys.executable, __file__, "--read", str(path)]
        told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        print(
            f"{size / 1e9:.2f} GB of JSON in {path.stat().st_size / 1e9:.2f} GB of Zstandard, {told['rows']:,} rows: "
            f"{size / 1e6 / told['seconds']:.0f} MB/s by the clock, {size / 1e6 / told['cpu']:.0f} MB/s of CPU, "
            f"peak memory {told['rss_mb']:.0f} MB"
        )


if __name__ == "__main__":
    main()
