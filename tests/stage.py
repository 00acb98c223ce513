"""Whole runs on the virtual clock, in one session or many, and the invariants that hold at every event and at the end."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import random
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from pydantic import SecretStr

from eyas.config import RunConfig
from eyas.engine import session
from eyas.engine.inputs import Inputs, Offer, Tokenizer, list_endpoints
from eyas.engine.lookup import Lookups
from eyas.engine.remote import here
from eyas.engine.run import Engine
from eyas.engine.served import Served
from eyas.engine.settle import Books, World
from eyas.engine.target import backend_of
from eyas.errors import StorageError
from eyas.events import Corrected, Settled
from eyas.families import Loaded, by_name
from eyas.plan import routes
from eyas.providers.choose import allowed
from eyas.sim import Scenario
from eyas.sim import World as Sim
from eyas.state import State, fold
from eyas.types import Completion, Record, StopReason, Verdict, Work
from tests import turnkit
from tests import virtual as v
from tests.virtual import FakeTransport, MemoryLog, Watch, now

TOML = """
[run]
dir = "r"
[target]
model = "moonshotai/kimi-k2.5"
base_url = "https://api.test/api/v1"
max_tokens = 400
[budget]
usd = {usd}
{quota}
[limits]
in_flight = {in_flight}
silence_seconds = 20
[[datasets]]
name = "A"
source = "a"
[[datasets]]
name = "B"
source = "b"
"""
SMALL = {"length_median": 90.0, "length_sigma": 0.5, "speed": 3.0}
LONGEST = 36_000.0
"""Virtual seconds in which every session must have ended."""


@functools.cache
def _tokens(family: Loaded, text: str, thinking: bool) -> int:
    return family.count_prompt(({"role": "user", "content": text},), (), thinking)


def counter(family: Loaded) -> Callable[[list[Any], list[Any], bool], int]:
    """Counts prompts of one turn as the family does, each but once: a simulated world asks for the same ones again."""

    def count(messages: list[Any], tools: list[Any], thinking: bool) -> int:
        if len(messages) == 1:
            return _tokens(family, messages[0]["content"], thinking)
        return family.count_prompt(messages, tools, thinking)

    return count


class Ending(NamedTuple):
    """How a session is ended from outside.

    "kill" and "fault" (a failed write) come `at` so many events from its start; "pull" (a kill), "drain" and "abort" (one
    interrupt, or two) after so many seconds.
    """

    how: str
    at: float


@dataclass
class Stage:
    """One run, in one session or several, and what it leaves behind.

    Of the prompts number n is followed by n modulo `turns` + 1 turns of the user. `more` are further keys of RUN.toml by
    "section.key"; `rng` decides how much of what a kill found half written stays.
    """

    kimi: Loaded
    prompts: int = 20
    usd: float = 100.0
    quota: str = ""
    in_flight: int = 8
    fail_at: int | None = None
    turns: int = 0
    more: Mapping[str, Any] = field(default_factory=dict)
    rng: random.Random | None = None
    state: State = field(default_factory=State)
    answers: list[Record] = field(default_factory=list)
    log: MemoryLog | None = None
    seen: Counter[str] = field(default_factory=Counter)
    engine: Engine | None = None
    kill: Callable[[], None] = lambda: None
    options: session.Options = field(default_factory=session.Options)

    def config(self) -> RunConfig:
        """RUN.toml of the next session."""
        data = tomllib.loads(TOML.format(usd=self.usd, quota=self.quota, in_flight=self.in_flight))
        for name, value in self.more.items():
            section, _, key = name.partition(".")
            for each in data["datasets"] if section == "datasets" else [data.setdefault(section, {})]:
                each[key] = value
        return RunConfig.model_validate({**data, "base": Path("/nowhere")})

    def killed(self) -> None:
        """Of the journal stays what it had acknowledged, and perhaps some more; the next session starts from there."""
        former = self.log
        former.dead = True
        kept = former.acknowledged
        if self.rng is not None and former.failed_at is None:
            kept = self.rng.randint(kept, len(former.events))
        self.state = fold(former.events[:kept])
        self.log = MemoryLog(self.state)
        for number, event in enumerate(former.events[:kept], 1):
            self.log.note(event, former.payloads[number])
        self.log.acknowledged, self.log.bodies = kept, former.bodies
        self.log.drafts = {attempt: list(texts) for attempt, texts in former.safe.items()}
        self.log.safe = {attempt: list(texts) for attempt, texts in former.safe.items()}
        told = {record.attempt: record.completion for record in self.answers}
        for attempt in self.state.attempts.values():
            if attempt.dropped:  # a part that gave way to the whole
                told.pop(attempt.id, None)
        self.answers = self.recorded()
        kept_now = {record.attempt: record.completion for record in self.answers}
        assert told.items() <= kept_now.items(), "I2: an answer that was told is not in the journal"

    def recorded(self) -> list[Record]:
        """Every answer as the journal holds it."""
        found, run = list[Record](), turnkit.opened(self.log, self.state)
        for number, event in enumerate(self.log.events, 1):
            if isinstance(event, Settled) and self.state.attempt(event.attempt).answered:
                attempt = self.state.attempt(event.attempt)
                answer = msgspec.json.decode(self.log.payloads[number], type=Completion)
                found.append(Record(attempt.work, run.asked(attempt), answer, attempt.tag, event.cost, attempt.id))
        return found

    async def _parts(self, handle: v.Handler) -> session.Parts:
        """What a session reads before it starts."""
        config = self.config()
        backend = backend_of(config, SecretStr("sk-or-v1-test"))
        offer = await list_endpoints(config, backend, FakeTransport(handle))
        prompts = turnkit.prompts(self.prompts, self.turns)
        thinks = {name: config.thinking(name) for name in "AB"}
        counts = {(p.dataset, p.id): _tokens(self.kimi, p.messages[0]["content"], thinks[p.dataset]) for p in prompts}
        tokenizer = Tokenizer(by_name("kimi-k2.5"), self.kimi)
        return session.Parts(config, backend, tokenizer, Inputs(prompts, counts, (), 0), offer)

    def _books(self, parts: session.Parts, offer: Offer, handle: v.Handler) -> Books:
        barred = [each.endpoint for each in offer.verdicts if not each.use]
        served = Served(routes(parts.config, allowed(offer.verdicts), barred))
        self.transport = FakeTransport(handle, self.log)
        return session.books_of(parts, served, World(self.transport, self.log, now, now, turnkit.at_once), self.state)

    async def run(self, handle: v.Handler, act: Callable[[Stage], Any] | None = None) -> StopReason:
        """One whole session against that handler; `act` runs beside it."""
        parts = await self._parts(handle)
        self.log = self.log or MemoryLog(self.state, self.fail_at)
        self.watch = Watch(self.state, self.log.events, strict=parts.config.budget.mode == "strict")
        self.log.see = self.watch.see
        books = self._books(parts, parts.offer, handle)
        left = self.state.left_open()
        self.answers += (
            await session.open_session(parts, books, turnkit.opened(self.log, self.state), self.options)
        ).unlabelled
        self.seen["left open by a kill"] += len(left)
        self.seen["kept from drafts"] += sum(attempt.answered for attempt in left)
        self._owes(parts, books)
        self.engine = Engine(books, session.admission_of(books), here(books), self.answers.append)
        beside = asyncio.ensure_future(act(self) if act else asyncio.sleep(0))
        try:
            return await self.engine.run()
        finally:
            await beside
            self.seen["endpoints set aside"] += sum(bool(w.aside) for w in books.pace.endpoints.values())

    def _owes(self, parts: session.Parts, books: Books) -> None:
        """I4: a session asks for exactly what has no end yet, each once; what is unknown waits for its look-up."""
        wanted = {
            Work(prompt.dataset, prompt.id, turn, sample)
            for prompt in parts.inputs.prompts
            for sample in range(parts.config.dataset(prompt.dataset).samples)
            for turn in range(1 + len(prompt.turns))
            if turn == 0 or self.watch.whole(Work(prompt.dataset, prompt.id, turn - 1, sample))
        }
        waiting = [c.work for c in books.pool.again] + [c.work for q in books.pool.fresh.values() for _, c in q]
        ended = {work for work, verdict in self.watch.verdicts.items() if verdict is not Verdict.AGAIN}
        unknown = {work for work, verdict in self.watch.verdicts.items() if verdict is Verdict.UNKNOWN}
        assert sorted(waiting) == sorted(wanted - ended), "I4"
        assert books.held.keys() == unknown, "I4"

    async def session(self, handle: v.Handler, ending: Ending | None = None) -> StopReason | None:
        """One session that ends by itself or as `ending` says; None if it was killed. Then the next one may follow."""
        self.log = self.log or MemoryLog(self.state)
        loop, before = asyncio.get_running_loop(), len(self.log.events)
        how, at = ending or ("", 0)
        task = asyncio.ensure_future(self.run(handle))
        self.kill = lambda: self._die(task)
        timers = [loop.call_later(LONGEST, task.cancel)]
        if how == "fault":
            self.log.fail_at = before + int(at)
        elif how == "kill":
            self.log.written = lambda count: self._die(task) if count == before + int(at) else None
        elif how == "pull":
            timers.append(loop.call_later(at, self._die, task))
        elif how in ("drain", "abort"):
            times = (at, at + 0.05) if how == "abort" else (at,)
            timers += [loop.call_later(each, self._interrupt) for each in times]
        try:
            return await self._ended(task)
        finally:
            for timer in timers:
                timer.cancel()

    async def _ended(self, task: asyncio.Future[StopReason]) -> StopReason | None:
        try:
            reason = await task
        except asyncio.CancelledError:
            assert self.log.dead, "the session did not end"
            self.seen["killed"] += 1
            self.killed()
            return None
        except StorageError:
            assert all(when <= self.log.failed_at for when, _ in self.transport.sent), "sent after a failed write"
            self.seen["store faults"] += 1
            self.killed()
            return StopReason.STORAGE
        self.seen[f"session ended: {reason}"] += 1
        self.log.fail_at, self.log.written = None, lambda count: None
        self.check()
        return reason

    def _die(self, task: asyncio.Future[StopReason]) -> None:
        self.log.dead = True
        task.cancel()
        task.get_loop().call_later(1.0, task.cancel)  # Python 3.11: a wait_for may swallow the first one

    def _interrupt(self) -> None:
        if self.engine is not None:
            self.seen["interrupted"] += 1
            self.engine.interrupt()

    async def reconcile(self, handle: v.Handler) -> None:
        """What `eyas reconcile --write-off all` does: look up what has an id, give up the rest at its reservation."""
        parts = await self._parts(handle)
        books = self._books(parts, parts.offer, handle)
        await Lookups(books.world.transport, books.setting.backend, books.correct, now).settle_all(self.state.unknown())
        self.seen["unknown at the end"] += len(self.state.unknown())
        for attempt in self.state.unknown():
            await books.emit(Corrected(at=now(), attempt=attempt.id, cost=attempt.reserved, written_off=True))
            self.seen["written off"] += 1

    def ended(self) -> Counter[Verdict | None]:
        """Works by verdict."""
        return Counter(known.verdict for known in self.state.works.values())

    def check(self) -> None:
        """The journal alone tells the same, nothing flies, and each answer was told once."""
        assert fold(self.log.events) == self.state
        assert self.state.left_open() == []
        assert self.state.money.reserved == 0
        assert self.transport.open_now == 0
        told = sorted(record.attempt for record in self.answers if self.state.attempt(record.attempt).answered)
        assert told == sorted(a.id for a in self.state.attempts.values() if a.answered)

    def fingerprint(self) -> str:
        """sha256 over every event of the run, as the journal would hold it."""
        return hashlib.sha256(b"\n".join(map(msgspec.json.encode, self.log.events))).hexdigest()


def simulated(stage: Stage, scenario: Scenario, seed: int) -> Callable[[], Any]:
    """A run in a simulated world, as a coroutine function; the world is kept on the stage."""

    async def main() -> StopReason:
        stage.sim = Sim(scenario, seed, stage.kimi.vocab, now, stage.kimi.count_prompt)
        return await stage.run(stage.sim.handle)

    return main
