"""What every adapter shares: its command line and the prompts. Standard library only: it runs in each tool's own venv.

Two ways to call one:

    python with_TOOL.py --base-url URL --prompts prompts.jsonl --in-flight N --out FOLDER [--stream]
    python with_TOOL.py --out FOLDER --count      prints {"answers": what stands in the tool's own output}
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

MODEL = "moonshotai/kimi-k2.5"
KEY = "sk-load"
MAX_TOKENS = 4096
SECONDS = 600
"""Time limit of a request, where a tool has one: ten times the longest answer."""


@dataclass(frozen=True)
class Job:
    """What is to be asked, and where the answers go."""

    base_url: str
    prompts: list[str]
    in_flight: int
    out: Path
    stream: bool


def main(ask: Callable[[Job], None], count: Callable[[Path], int]) -> None:
    """Run the adapter as its command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", action="store_true")
    parser.add_argument("--base-url", default="")
    parser.add_argument("--prompts", type=Path)
    parser.add_argument("--in-flight", type=int, default=1)
    parser.add_argument("--stream", action="store_true")
    args = parser.parse_args()
    if args.count:
        print(json.dumps({"answers": count(args.out)}))
        return
    with args.prompts.open() as lines:
        prompts = [json.loads(line)["prompt"] for line in lines]
    ask(Job(args.base_url, prompts, args.in_flight, args.out, args.stream))


def rows(files: Iterable[Path]) -> Iterable[dict]:
    """The whole lines of JSON-lines files; a torn last line is no row."""
    for file in files:
        with file.open("rb") as lines:
            for line in lines:
                if line.endswith(b"\n"):
                    yield json.loads(line)
