"""CPU that eyas takes to start: help, and completion on TAB. User and system time of a process of its own, in milliseconds.

    .venv/bin/python bench/startup.py [--runs N] [--run RUNDIR]

The promise is `eyas --help` under 200 ms. tests/test_declared.py holds what makes it so: help loads nothing heavy.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

HELP = [["--help"], ["--version"], *([name, "--help"] for name in ("run", "plan", "show", "retry", "export", "report"))]
LINES = ["eyas sh", "eyas run ", "eyas retry . --where label=", "eyas export . --format "]


def taken(command: list[str], environment: dict[str, str]) -> float:
    """Milliseconds of CPU of one call."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main() -> None:
    """Print the median and the most of each."""
    options = argparse.ArgumentParser()
    options.add_argument("--runs", type=int, default=20)
    options.add_argument("--run", type=Path, help="complete the ids of this run too")
    given = options.parse_args()
    eyas = str(Path(sys.executable).parent / "eyas")
    lines = [*LINES, *([f"eyas show {given.run} ", f"eyas tune {given.run} drop="] if given.run else [])]
    calls = [(" ".join(words), [eyas, *words], {}) for words in HELP]
    calls += [(f"TAB {line!r}", [eyas], {"EYAS_LINE": line, "_EYAS_COMPLETE": "bash_complete"}) for line in lines]
    print(f"{'CPU, ms':<44}{'median':>8}{'most':>8}")
    for name, command, environment in calls:
        found = [taken(command, environment) for _ in range(given.runs)]
        print(f"{name:<44}{statistics.median(found):>8.0f}{max(found):>8.0f}")


if __name__ == "__main__":
    main()
