"""A run over many machines at the level of leases, in simulated time: 64 workers, 5 million prompts, 10 billion tokens.

    python bench/cluster_model.py [--workers 64] [--prompts 5000000] [--in-flight 1000] [--share 0.95]

Grants, leases and money are those of eyas; workers are rates: answers of 2000 tokens on average at 40 a second, each asked under
a reservation of all of max_tokens. The cap is a share of what all prompts would cost, so that the run ends by its money. Then what
one answer costs the coordinator is measured on real rows, a real State and a real journal, and what would be the next limit is said.
"""

import argparse
import asyncio
import math
import random
import resource
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np

from eyas.engine import grants
from eyas.engine.absorb import absorb
from eyas.engine.grants import Crew, Need
from eyas.events import Granted, Headers, Intent, Labelled, PromptAdded, SessionOpened, Settled, WorkerJoined
from eyas.journal import Journal, Packed, Row
from eyas.ledger import Lease, Money, cost_of, reservation
from eyas.state import State
from eyas.state.workers import named
from eyas.types import Finish, Label, Prices, Verdict, Work

PRICES = Prices(600_000_000, 2_500_000_000)
PROMPT, TOKENS, SPREAD, SPEED, MOST = 300, 2000, 1500, 40.0, 16384
TICK = 0.5
"""Seconds between two words with a worker."""


@dataclass
class Worker:
    """One worker as a rate."""

    lease: Lease = field(default_factory=Lease)
    waiting: int = 0
    flying: int = 0
    settled: int = 0

    def step(self, rng, hold, each):
        """A tick: what flies ends by chance, what waits starts as far as the lease goes. Gives the cost of what ended."""
        ended = int(rng.binomial(self.flying, TICK * SPEED / TOKENS))
        cost = max(0, round(rng.normal(ended * each, math.sqrt(ended) * each * SPREAD / TOKENS)))
        self.flying -= ended
        self.settled += cost
        self.lease = self.lease.use(cost - ended * hold)
        return ended, cost


def play(crew, prompts, cap):
    """The run; figures."""
    rng, hold = np.random.default_rng(0), reservation(PRICES, PROMPT, MOST)
    each = cost_of(PRICES, PROMPT, TOKENS)
    money, workers = Money(cap), [Worker() for _ in range(crew.workers)]
    left, answers, calls, given, size, seconds = prompts, 0, 0, 0, 0, 0.0
    while True:
        seconds += TICK
        short = money.free < hold
        moved = 0
        for worker in workers:
            before = worker.lease
            ended, cost = worker.step(rng, hold, each)
            money = money.released(before, worker.lease)  # what it gained or lost of its lease
            money = Money(money.cap, money.settled + cost, 0, money.reserved - ended * hold, 0, money.leased)
            answers += ended
            moved += ended
            if short and worker.lease.left < hold and worker.lease.left:  # squeezed
                back = worker.lease.give_back(worker.lease.left)
                money, worker.lease = money.released(worker.lease, back), back
            calls += 1
            works = grants.prompts(crew, worker.waiting, left)
            need = Need(worker.waiting + works, worker.flying, hold)
            nano = grants.money(crew, need, worker.lease, max(0, money.free))
            if works or nano:
                money = money.lease(nano)
                worker.lease = worker.lease.grant(nano)
                left, worker.waiting, given = left - works, worker.waiting + works, given + 1
                size += sizes(works)
            begun = min(worker.waiting, crew.in_flight - worker.flying, worker.lease.left // hold)
            before, worker.lease = worker.lease, worker.lease.use(begun * hold)
            money = money.released(before, worker.lease)
            money = Money(money.cap, money.settled, 0, money.reserved + begun * hold, 0, money.leased)
            worker.waiting, worker.flying = worker.waiting - begun, worker.flying + begun
            moved += begun
            assert money.committed <= cap
        if not moved and not any(worker.flying for worker in workers):
            stranded = cap - money.settled
            return {"hours": seconds / 3600, "answers": answers, "calls a second": calls / seconds, "grants": given,
                    "journal of grants, MB": size / 1e6, "stranded": stranded / cap, "left": left}  # fmt: skip


def sizes(works, known={}):  # noqa: B006  # a memory of sizes
    """Bytes of a grant of so many works in the journal."""
    if works not in known:
        names = named(Work("B3", f"{number:016x}") for number in range(works))
        known[works] = len(msgspec.json.encode(Granted(at=1.8e9, to=17, number=999, nano=10**9, works=names)))
    return known[works]


def rows_of(answers):
    """The rows of a worker's journal for so many answers, each with 20 kB of text before it is packed."""
    text, body = Packed(20_000, 1, random.Random(0).randbytes(6_000)), Packed(2_000, 1, bytes(700))
    rows = []
    for number in range(1, answers + 1):
        work = Work("B3", f"{number:016x}")
        settled = Settled(1.8e9, number, Verdict.DONE, 5_000_000, TOKENS, "Chutes", None, Finish.STOP,
                          (PROMPT, TOKENS, 1500), 0.7, 50.0)  # fmt: skip
        for event, held in (
            (Intent(1.8e9, number, work, 1, "chutes/int4", PRICES, 50_000_000), body),
            (Headers(1.8e9, number, f"gen-{number}"), None),
            (settled, text),
            (Labelled(1.8e9, number, Label.STREAMED), None),
        ):
            rows.append(Row(len(rows) + 1, msgspec.json.encode(event), held))
    return rows


async def absorbed(answers):
    """(milliseconds of CPU an answer, bytes of memory an answer) of taking answers in, the journal's thread included."""
    state = State()
    with tempfile.TemporaryDirectory() as name, closing(Journal(Path(name))) as journal:

        def emit(event, text=None):
            state.apply(event)
            return journal.write(event, text)

        emit(SessionOpened(1.8e9, "m", 10**15, {"B3": None}))
        for number in range(1, answers + 1):
            state.apply(PromptAdded(1.8e9, "B3", f"{number:016x}", PROMPT))
        emit(WorkerJoined(1.8e9, 1))
        works = named(Work("B3", f"{number:016x}") for number in range(1, answers + 1))
        emit(Granted(1.8e9, 1, 1, 10**14, works))
        rows = rows_of(answers)
        await journal.flush()
        before, began = resource.getrusage(resource.RUSAGE_SELF), time.process_time()
        for start in range(0, len(rows), 400):
            absorb(state, 1, rows[start : start + 400], emit)
            await journal.flush()
        used = time.process_time() - began
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before.ru_maxrss
    return 1000 * used / answers, 1024 * grown / answers


def main():
    """Model, then measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--prompts", type=int, default=5_000_000)
    parser.add_argument("--in-flight", type=int, default=1000, help="of each worker")
    parser.add_argument("--lease", type=int, default=1000, help="prompts handed at once")
    parser.add_argument("--share", type=float, default=0.95, help="of what all prompts would cost")
    given = parser.parse_args()
    began = time.perf_counter()
    cap = round(given.share * given.prompts * cost_of(PRICES, PROMPT, TOKENS))
    found = play(Crew(given.workers, given.in_flight, given.lease), given.prompts, cap)
    print(f"{given.workers} workers, {given.prompts:,} prompts, cap ${cap / 1e9:,.2f}: "
          f"{time.perf_counter() - began:.0f} s of this machine")  # fmt: skip
    print(
        f"simulated: {found['hours']:.2f} h, {found['answers']:,} answers, {found['answers'] * TOKENS / 1e9:.2f} G tokens"
    )
    print(f"coordinator: {found['calls a second']:.0f} calls a second, {found['grants']:,} grants, "
          f"{found['journal of grants, MB']:.0f} MB of them in the journal")  # fmt: skip
    print(f"money stranded at the end: {found['stranded']:.3%} of the cap")
    cpu, memory = asyncio.run(absorbed(50_000))
    rate = found["answers"] / found["hours"] / 3600
    print(f"an answer taken in: {cpu:.2f} ms of CPU, {memory:.0f} bytes of memory (50,000 answers, state and index)")
    print(f"so {given.prompts:,} answers: {memory * given.prompts / 1e9:.1f} GB of memory; {rate:.0f} answers a second take "
          f"{rate * cpu / 1000:.2f} cores; the next limit is the coordinator's one core at {1000 / cpu:,.0f} answers a second")  # fmt: skip


if __name__ == "__main__":
    main()
