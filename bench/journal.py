"""Does the journal stall the loop? Answers of 20 kB at 500 a second through the real writer, on the loop of the product.

    python bench/journal.py [--rate 500] [--kb 20] [--seconds 20] [--dir DIR] [--plain]

An answer is four events with their texts, folded into a State and written as a session does, checkpoint and all (`--plain`:
without). Printed are how late a sleeper of 5 ms wakes, how long it takes until an answer is durable, and the CPU time of an
answer, all threads together. Exit 0 if the lag's p99 is 20 ms or less.
"""

import argparse
import asyncio
import contextlib
import gc
import random
import sys
import tempfile
import time
from pathlib import Path

from eyas import events as ev
from eyas.journal import Index, Journal, Keeper
from eyas.machine import freeze_heap, run_loop
from eyas.state import State
from eyas.types import Completion, Finish, Label, Pieces, Prices, Usage, Verdict, Work

LIMIT = 0.020
NAP = 0.005
EVERY = 0.01
WORDS = [
    "the",
    "of",
    "tensor",
    "gradient",
    "because",
    "answer",
    "we",
    "find",
    "that",
    "is",
    "small",
    "(x)",
    "=",
    "0.25",
    "\n\n",
]


def share(values, part):
    """A quantile, in milliseconds."""
    return sorted(values)[int(part * (len(values) - 1))] * 1000


def texts(size):
    """Some answers of that many bytes; no two are alike, and they pack about as prose does."""
    rng = random.Random(1)
    made = []
    for _ in range(64):
        words = rng.choices(WORDS, k=size // 5) + [f"{rng.random()}" for _ in range(size // 60)]
        rng.shuffle(words)
        text = " ".join(words)[:size]
        pieces = Pieces(content=tuple(len(word) + 1 for word in words))
        made.append(
            Completion("", text, finish=Finish.STOP, usage=Usage(30, size // 4), provider="Chutes", pieces=pieces)
        )
    return made


class Writer:
    """Folds and writes answers; `late` are seconds until each was durable."""

    def __init__(self, journal, answers, plain):
        self.state, self.answers, self.late, self.number, self.tasks = State(), answers, [], 0, set()
        self.log = journal if plain else Keeper(journal, self.state, Index(), None)
        self.emit(ev.SessionOpened(at=1.0, model="m", cap=10**15, quotas={"A": None}))

    def emit(self, event, payload=None):
        self.state.apply(event)
        return self.log.write(event, payload)

    def answer(self):
        """One answer, from its intent to its label."""
        self.number += 1
        number, work = self.number, Work("A", f"{self.number:016x}")
        self.emit(ev.PromptAdded(at=1.0, dataset="A", prompt_id=work.prompt_id, tokens=30), b"{}" * 300)
        self.emit(
            ev.Intent(at=1.0, attempt=number, work=work, number=1, tag="p", prices=Prices(1, 2), reserved=1000),
            b"b" * 2000,
        )
        self.emit(ev.Headers(at=1.0, attempt=number, generation_id=f"gen-{number}"))
        answer = self.answers[number % len(self.answers)]
        settled = ev.Settled(at=2.0, attempt=number, verdict=Verdict.DONE, cost=300, tokens=5000, provider="Chutes")
        task = asyncio.create_task(self.wait(self.emit(settled, answer)))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        self.emit(ev.Labelled(at=2.0, attempt=number, label=Label.COUNTED))

    async def wait(self, durable):
        began = time.perf_counter()
        await durable
        self.late.append(time.perf_counter() - began)


async def nap(lags):
    """Sleep, and note how late it wakes."""
    while True:
        began = time.perf_counter()
        await asyncio.sleep(NAP)
        lags.append(time.perf_counter() - began - NAP)


async def measure(folder, args):
    lags, answers = [], texts(args.kb * 1000)
    with contextlib.closing(Journal(folder)) as journal:
        writer = Writer(journal, answers, args.plain)
        freeze_heap()
        sleeper = asyncio.create_task(nap(lags))
        began, worked = time.perf_counter(), time.process_time()
        while (passed := time.perf_counter() - began) < args.seconds:
            while writer.number < args.rate * passed:
                writer.answer()
            await asyncio.sleep(EVERY)
        await asyncio.gather(*writer.tasks)
        worked = time.process_time() - worked
        sleeper.cancel()
    gc.unfreeze()
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    print(f"{writer.number} answers of {args.kb} kB in {args.seconds} s, {size:.0f} MB on disk")
    print(f"loop lag: p50 {share(lags, 0.5):.1f} ms, p99 {share(lags, 0.99):.1f} ms, most {max(lags) * 1000:.0f} ms")
    print(f"durable after: p50 {share(writer.late, 0.5):.1f} ms, p99 {share(writer.late, 0.99):.1f} ms")
    print(f"CPU: {worked / writer.number * 1e6:.0f} us an answer, {worked / args.seconds:.0%} of a core")
    return share(lags, 0.99) <= LIMIT * 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--kb", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--dir", type=Path)
    parser.add_argument("--plain", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.dir) as name:
        sys.exit(not run_loop(measure(Path(name), args)))


if __name__ == "__main__":
    main()
