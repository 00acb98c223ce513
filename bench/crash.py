"""Crash the real `eyas run` at more than 200 points: kill, failing disk, full disk, power loss. Is anything lost or bought twice?

    python bench/crash.py [--every N] [--kind NAME] [--seed N]

Needs Linux, root, strace, mkfs.ext4, loop devices; what cannot be done here is said and fails the bench. `--every 4` takes each
fourth point. Exit 0 if nothing was violated.
"""

import argparse
import collections
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests import crash, kit
from tests.crash import JOURNAL, KILLED, Point

from eyas import vocab

FILES = (*JOURNAL, "journal.db-shm", "lock", "run.toml", "run.tmp", "quarantine.jsonl", "quarantine.jsonl.tmp", "")
WRITES, SYNCS = "pwrite64", "fdatasync"


def kills():
    """SIGKILL at the N-th call, of the main thread while the journal is made, of its writer's after that."""
    for n in (*range(1, 26, 3), *range(26, 130, 3)):
        yield Point("kill at a write", "call", f"{WRITES}:signal=SIGKILL:when={n}", ends=(KILLED,))
    for n in range(1, 36):
        yield Point("kill at a sync", "call", f"{SYNCS}:signal=SIGKILL:when={n}", (*JOURNAL, ""), (KILLED,))
    for call, last in (("openat", 8), ("ftruncate", 3), ("unlink", 2), ("rename", 2), ("write", 1)):
        for n in range(1, last + 1):
            yield Point("kill at a file's making or end", "call", f"{call}:signal=SIGKILL:when={n}", FILES, (KILLED,))
    for n in range(1, 14, 3):  # the log of the journal is carried into its file when the run ends
        yield Point("kill at the last checkpoint", "call", f"{WRITES}:signal=SIGKILL:when={n}", JOURNAL[:1], (KILLED,))
    for n in range(5, 25, 2):
        first = Point("kill, and kill the resume", "call", f"{SYNCS}:signal=SIGKILL:when={n}", ends=(KILLED,))
        again = Point(first.kind, "call", f"{WRITES}:signal=SIGKILL:when={3 * n - 14}", ends=(KILLED,))
        yield Point(first.kind, "call", first.where, ends=(KILLED,), again=again)


def errors():
    """A write or sync that fails, for once or from then on; writes that end short."""
    for n in range(2, 122, 8):
        yield Point("ENOSPC at a write", "call", f"{WRITES}:error=ENOSPC:when={n}+")
    for n in range(30, 120, 9):
        yield Point("ENOSPC at one write", "call", f"{WRITES}:error=ENOSPC:when={n}")
    for n in range(2, 122, 8):
        yield Point("EIO at a write", "call", f"{WRITES}:error=EIO:when={n}+")
    for n in range(7, 32, 2):
        yield Point("EIO at one sync", "call", f"{SYNCS}:error=EIO:when={n}")
        yield Point("EIO at each sync from then on", "call", f"{SYNCS}:error=EIO:when={n}+")
    for n in range(30, 120, 9):
        yield Point("a write of no byte", "call", f"{WRITES}:retval=0:when={n}+")
    for kilobytes in range(30, 250, 20):
        yield Point("a short write at a size limit", "limit", str(kilobytes * 1000 + 123))
    for kilobytes in (8, 12, 36, 44, 60, 80, 120, 160, 200, 240, 280, 320):
        yield Point("a full tmpfs", "full", f"{kilobytes}k")


def power():
    """The disk is gone at the N-th write or sync."""
    for n in range(1, 134, 6):
        yield Point("power loss at a write", "power", f"{WRITES}:signal=SIGSTOP:when={n}")
    for n in range(1, 32):
        yield Point("power loss at a sync", "power", f"{SYNCS}:signal=SIGSTOP:when={n}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, help="take each N-th point")
    parser.add_argument("--kind", default="", help="only kinds with this word")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    points = [point for point in (*kills(), *errors(), *power()) if args.kind in point.kind][:: args.every]
    lacking = {crash.missing(way) for way in {point.way for point in points}} - {""}
    if lacking:
        sys.exit("\n".join(sorted(lacking)))
    began, tokenizer = time.monotonic(), vocab.kimi_folder()
    with kit.simulator(tokenizer, "clean", args.seed, **crash.PACE) as sim:
        results = []
        for result in crash.sweep(points, sim, tokenizer):
            results.append(result)
            if len(results) % 20 == 0:
                print(f"{len(results)} of {len(points)} points", file=sys.stderr, flush=True)
            for violation in result.violations:
                print(f"VIOLATION {result.point.kind} {result.point.where}: {violation}", flush=True)
            if not result.hit:
                print(f"not met: {result.point.kind} {result.point.where}", flush=True)
    sys.exit(table(results, time.monotonic() - began))


def table(results, seconds):
    kinds = collections.defaultdict(list)
    for result in results:
        kinds[result.point.kind].append(result)
    print(f"{'kind':32} {'points':>6} {'met':>5} {'answers before':>15} {'with unknown':>13} {'violations':>11}")
    for kind, group in [*kinds.items(), ("all", results)]:
        met, answers = sum(each.hit for each in group), sum(each.answers for each in group)
        unknown, bad = sum(each.unknown > 0 for each in group), sum(len(each.violations) for each in group)
        print(f"{kind:32} {len(group):6} {met:5} {answers:15} {unknown:13} {bad:11}")
    print(f"{seconds:.0f} s; a violation is an answer lost or bought again, a dollar unexplained, a request without an")
    print("intent, a damaged journal, a work in no state, a wrong exit code, or no clear sentence")
    return 1 if any(result.violations for result in results) else 0


if __name__ == "__main__":
    main()
