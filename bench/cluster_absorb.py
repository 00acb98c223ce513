"""What the coordinator of bench/cluster_model.py pays for an answer: real rows, taken in by the real absorb() as a session does.

A row comes in a report of a worker (msgpack), is folded into a State, and stands in a journal of its own, checkpoint and all.
"""

import asyncio
import contextlib
import gc
import os
import random
import time
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from eyas import events as ev
from eyas.engine.absorb import absorb
from eyas.engine.orders import Report
from eyas.journal import Index, Journal, Keeper, Packed, Row
from eyas.journal.checkpoint import head_of
from eyas.machine import freeze_heap, run_loop
from eyas.state import State
from eyas.state.workers import named
from eyas.types import Finish, Label, Prices, Verdict, Work

BODY, ANSWER = 700, 3000
"""Bytes of a packed request and of a packed answer of 2000 tokens."""
AT_ONCE = 10
"""Answers in a report."""
BATCH = 2000
_decode = msgspec.msgpack.Decoder(Report).decode


@dataclass
class Coordinator:
    """A state and its journal; `seqs` are the last rows of the workers' journals, `loop` and `all` seconds of CPU."""

    journal: Journal
    workers: int
    state: State = field(default_factory=State)
    seqs: dict = field(default_factory=dict)
    asked: dict = field(default_factory=dict)
    loop: float = 0.0
    all: float = 0.0
    bytes: int = 0

    def __post_init__(self):
        self.log = Keeper(self.journal, self.state, Index(), None)
        self.emit(ev.SessionOpened(at=1.0, model="moonshotai/kimi-k2.5", cap=10**15, quotas={"chat": None}))
        for number in range(1, self.workers + 1):
            self.emit(ev.WorkerJoined(at=1.0, who=number, node="10.0.0.1"))
            self.seqs[number] = self.asked[number] = 0

    def emit(self, event, payload=None):
        self.state.apply(event)
        return self.log.write(event, payload)

    def prompts(self, start, count):
        """So many more prompts join."""
        for number in range(start, start + count):
            self.emit(ev.PromptAdded(at=1.0, dataset="chat", prompt_id=f"{number:016x}", tokens=300))

    def grant(self, worker, works):
        """A worker is handed these."""
        number = self.state.workers[worker].grants + 1
        self.emit(ev.Granted(at=1.0, to=worker, number=number, nano=len(works) * 10**7, works=named(works)))

    def report(self, worker, works):
        """What a worker writes of answers to these, as it reports them."""
        rows = []
        for work in works:
            self.asked[worker] += 1
            attempt = self.asked[worker]
            settled = ev.Settled(
                time.time(), attempt=attempt, verdict=Verdict.DONE, cost=1_234_567, tokens=2000, provider="Chutes",
                finish=Finish.STOP, counts=(321, 2000, 800), first_token=1.234567, seconds=51.234567,
            )  # fmt: skip
            prices, mark = Prices(150_000_000, 600_000_000), "0123456789abcdef0123456789abcdef"
            intent = ev.Intent(
                time.time(),
                attempt=attempt,
                work=work,
                number=1,
                tag="chutes/int4",
                prices=prices,
                reserved=10**7,
                mark=mark,
            )
            told = (
                (intent, BODY),
                (ev.Headers(time.time(), attempt=attempt, generation_id=f"gen-1790000000-{attempt:020d}"), 0),
                (settled, ANSWER),
                (ev.Labelled(time.time(), attempt=attempt, label=Label.COUNTED), 0),
            )
            for event, size in told:
                self.seqs[worker] += 1
                text = Packed(4 * size, 1, random.randbytes(size)) if size else None
                rows.append(Row(self.seqs[worker], msgspec.json.encode(event), text))
        return msgspec.msgpack.encode(Report(rows=tuple(rows)))

    async def take(self, reports):
        """Take reports in, and wait until all of it is durable."""
        looped, worked = time.thread_time(), time.process_time()
        for worker, report in reports:
            absorb(self.state, worker, _decode(report).rows, self.emit)
        self.loop += time.thread_time() - looped
        await self.log.flush()
        self.all += time.process_time() - worked


def resident():
    """Bytes of this process in memory."""
    gc.collect()
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def _measure(folder, answers, workers):
    with contextlib.closing(Journal(folder)) as journal:
        at_first = resident()
        lead = Coordinator(journal, workers)
        freeze_heap()
        for start in range(0, answers, BATCH):
            lead.prompts(start, min(BATCH, answers - start))
            await lead.log.flush()
        asked = resident() - at_first
        works = [Work("chat", f"{number:016x}") for number in range(answers)]
        for start in range(0, answers, BATCH):
            some, reports = works[start : start + BATCH], []
            for place in range(0, len(some), AT_ONCE):
                worker = 1 + place // AT_ONCE % workers
                lead.grant(worker, some[place : place + AT_ONCE])
                reports.append((worker, lead.report(worker, some[place : place + AT_ONCE])))
            await lead.take(reports)
            await asyncio.sleep(0)
        del works
        grown = resident() - at_first
        began = time.perf_counter()
        head = len(head_of(lead.state, Index(), lead.state.touched.__class__(), journal.last, []))
        stalled = time.perf_counter() - began
        disk = sum(path.stat().st_size for path in folder.iterdir())
        assert len(lead.state.attempts) == answers
    gc.unfreeze()
    return lead, asked, grown, head, stalled, disk


def measured(folder, answers, workers, prompts, rate):
    """Rows of the table: what so many answers cost here, scaled to a run of so many prompts at so many answers a second."""
    lead, asked, grown, head, stalled, disk = run_loop(_measure(folder, answers, workers))
    scale, loop, every = prompts / answers, lead.loop / answers, lead.all / answers
    return [
        (f"Taken in for real: {answers:,} answers, four events each", ""),
        ("coordinator's loop, ms an answer", f"{loop * 1000:.3f}"),
        ("its journal's thread too", f"{every * 1000:.3f}"),
        ("answers a second that its loop can take in", f"{1 / loop:,.0f} on one core of this machine"),
        ("that this run needs", f"{rate:,.0f}, {rate * loop:.0%} of a core (all threads {rate * every:.0%})"),
        ("memory, measured", f"{asked / 2**20:,.0f} MiB for the prompts, {grown / 2**20:,.0f} MiB with their answers"),
        (f"memory, scaled to {prompts:,}", f"{asked * scale / 2**30:.1f} GiB, {grown * scale / 2**30:.1f} GiB"),
        ("journal, scaled", f"{disk * scale / 1e9:,.0f} GB"),
        (
            "head of its checkpoint, measured",
            f"{head / 1e6:.2f} MB, {stalled * 1000:.0f} ms of the loop each time it is written",
        ),
        ("head, scaled", f"{head * scale / 1e6:.0f} MB, {stalled * scale * 1000:.0f} ms"),
    ]
