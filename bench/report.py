"""A report at full size: seconds, memory of all processes, and the size of the page.

    python bench/report.py [--answers 30_000] [--tokens 60_000_000] [--workers N] [--keep DIR]

Makes a run directory as `bench/export.py` does, with the times of a run of 2000 in flight over two sessions and failures
between its answers; then `eyas report` runs in a process of its own. Exit 0 if it took less than a minute and the page is below
2 MB.
"""

import argparse
import asyncio
import resource
import subprocess
import sys
import tempfile
import time
from collections import deque
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

import msgspec
from export import SETS, Memory, answers
from tests import exportkit

from eyas import vocab
from eyas.events import Intent, SessionClosed, SessionOpened, Settled
from eyas.types import FailureKind, Prices, StopReason, Verdict

IN_FLIGHT = 2000
EACH = 0.05  # seconds between two answers
FINISHED_BELOW, PAGE_BELOW = 60.0, 2_000_000


class Clock:
    """Writes events with times that go on; every 40th request is refused for its rate, every 300th lost."""

    def __init__(self, journal):
        self.journal, self.at, self.number = journal, 1_700_000_000.0, 0
        self.flying = deque()

    def write(self, event, payload=None):
        return self.journal.write(msgspec.structs.replace(event, at=self.at), payload)

    def open(self):
        quotas = dict.fromkeys(SETS)
        thinking = dict.fromkeys(SETS, True)
        self.write(SessionOpened(0.0, exportkit.MODEL, 10**15, quotas, thinking=thinking))

    def ask(self, record):
        self.at += EACH
        self.number += 1
        record = msgspec.structs.replace(record, attempt=self.number)
        self.write(*exportkit.prompt(record.prompt))
        event, payload = next(iter(exportkit.answered(record, self.number)))
        self.write(event, payload)
        self.flying.append((self.at, record))
        if self.number % 40 == 0:
            self.fail(record, FailureKind.RATE_LIMIT, 0)
        if self.number % 300 == 0:
            self.fail(record, FailureKind.LOST, None)

    def fail(self, record, kind, cost):
        self.number += 1
        self.write(Intent(0.0, self.number, record.work, 2, record.tag, Prices(1, 1), 10**6), b"{}")
        verdict = Verdict.AGAIN if cost == 0 else Verdict.UNKNOWN
        self.write(Settled(0.0, self.number, verdict, cost, kind=kind, detail="the provider is busy; try again"))

    def settle(self):
        asked, record = self.flying.popleft()
        _, *events = exportkit.answered(record, record.attempt)
        for event, payload in events:
            timed = {"seconds": self.at - asked, "first_token": 0.8} if isinstance(event, Settled) else {}
            self.write(msgspec.structs.replace(event, **timed), payload)


async def fill(journal, args, family):
    clock = Clock(journal)
    clock.open()
    for number, record in enumerate(answers(args, family)):
        if number == args.answers // 2:
            while clock.flying:
                clock.settle()
            clock.write(SessionClosed(0.0, StopReason.INTERRUPTED))
            clock.at += 36_000
            clock.open()
        clock.ask(record)
        if len(clock.flying) > IN_FLIGHT:
            clock.settle()
        if number % 500 == 0:
            await journal.flush()
    while clock.flying:
        clock.at += EACH
        clock.settle()
    await clock.write(SessionClosed(0.0, StopReason.COMPLETE))


def report(run, page, workers):
    command = [sys.executable, "-m", "eyas", "report", str(run), "--out", str(page)]
    command += ["--workers", str(workers)] if workers else []
    began = time.perf_counter()
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        memory = Memory(process.pid)
        memory.start()
        said = process.communicate()[1]
    seconds = time.perf_counter() - began
    memory.ended.set()
    if process.returncode:
        sys.exit(said)
    return seconds, memory, said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=30_000)
    parser.add_argument("--tokens", type=int, default=60_000_000)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--keep", type=Path, help="make the run in this folder, or take the one that is there")
    args = parser.parse_args()
    tokenizer = vocab.kimi_folder()
    with tempfile.TemporaryDirectory() as name:
        folder = args.keep or Path(name)
        run, page = folder / "run", folder / "report.html"
        if not run.exists():
            began = time.perf_counter()
            with closing(exportkit.open_run(run, tokenizer, SETS)) as journal:
                asyncio.run(fill(journal, args, exportkit.load_kimi(tokenizer)))
            print(f"made in {time.perf_counter() - began:.0f} s: {(run / 'journal.db').stat().st_size / 2**20:.0f} MB")
        seconds, memory, said = report(run, page, args.workers)
        size = page.stat().st_size
    cpu = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    print(said, end="")
    print(f"report: {seconds:.1f} s, {cpu:.1f} s of CPU, {memory.processes} processes at most")
    print(f"peak RSS of all processes together: {memory.peak:.0f} MB; the page: {size / 1e6:.2f} MB")
    sys.exit(seconds >= FINISHED_BELOW or size >= PAGE_BELOW)


if __name__ == "__main__":
    main()
