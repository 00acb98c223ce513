"""One run played: the real engine on a virtual clock, in a market of virtual providers. Nothing is sent, written or spent."""

from __future__ import annotations

import asyncio
import copy
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
from pydantic import SecretStr

from eyas.config import RunConfig
from eyas.engine import session
from eyas.engine.admit import Pool
from eyas.engine.inputs import Inputs, Offer, Tokenizer, list_endpoints
from eyas.engine.run import TICK, Engine
from eyas.engine.served import Served
from eyas.engine.settle import Books, World
from eyas.engine.target import backend_of
from eyas.engine.turns import Turns
from eyas.events import PromptAdded, Settled
from eyas.plan import change, owed, routes
from eyas.plan.curve import HORIZON, Curve
from eyas.providers.choose import allowed
from eyas.rehearse.demand import Remembered, dataset_of, family_of
from eyas.rehearse.light import CountingReader, Counts, NoLog
from eyas.rehearse.looks import Stepped, next_look
from eyas.sim import Scenario
from eyas.sim import World as Market
from eyas.sim.ask import Chat
from eyas.sim.clock import play
from eyas.sim.light import Law, Light, LightVocabulary, count_prompt
from eyas.sim.played import PlayedTransport
from eyas.state import State
from eyas.types import Finish, Prompt, Record, StopReason, Verdict

NEVER = 1e9
"""Seconds until the lists are read again: a market that is made up does not change them."""


@dataclass(frozen=True, slots=True)
class Job:
    """A run to play.

    Attributes:
        config: with what is asked, how, and for how much.
        prompts, counts: texts of them stand for tokens (`sim.light`); counts by (dataset, prompt id).
        scenario: the market; its endpoints are those of the offer.
        offer: what the API's own list says; None: the scenario's list is read.
        curves: lengths of answers by dataset; the scenario's law holds for one that is not in it.
        state: where the run stands.
    """

    config: RunConfig
    prompts: tuple[Prompt, ...]
    counts: Mapping[tuple[str, str], int]
    scenario: Scenario
    offer: Offer | None = None
    curves: Mapping[str, Curve] = field(default_factory=dict[str, Curve])
    state: State = field(default_factory=State)


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one play. Times are virtual seconds, money is nano-dollars; what the run had before is not in them.

    Attributes:
        seconds: from the first request to the last outcome; `tail` from 99 % of the answers on.
        reason: why it ended.
        paid: settled; `wasted` of it; `kept`: of it for answers that are kept; `unknown`: held to the end.
        peak_exposure: the most that was reserved or unknown at a time.
        tokens: output tokens kept; `answers` that hold them; `cut`: answers that max_tokens ended.
        requests, refused: chat requests, and those of them that got 429; `failed`: other requests without an answer.
        peak, flying: most in flight, and their mean until 99 % of the answers.
        datasets: tokens kept by dataset; `providers`: answers by tag.
    """

    seconds: float
    tail: float
    reason: str
    paid: int
    wasted: int
    kept: int
    unknown: int
    peak_exposure: int
    tokens: int
    answers: int
    cut: int
    requests: int
    refused: int
    failed: int
    peak: int
    flying: float
    datasets: dict[str, int]
    providers: dict[str, int]


class _Watch:
    """Notes the course of a play."""

    def __init__(self, books: Books, clock: Callable[[], float], often: float | None) -> None:
        self._state, self._clock, self._often = books.state, clock, often
        self._began = self._last = clock()
        self._flights: Sized = ()
        self._flown = 0.0
        self.answers: list[tuple[float, float]] = []
        self.exposure = 0

    def follow(self, engine: Engine) -> None:
        """Watch that engine."""
        self._flights = engine.flights
        engine.on_answer, engine.on_tick = self._answered, self._ticked

    def _answered(self, record: Record) -> None:
        del record
        self.answers.append((self._see() - self._began, self._flown))

    def _ticked(self, engine: Engine) -> None:
        self._see()
        if self._often is None:
            engine.tick = next_look(engine)

    def _see(self) -> float:
        now, money = self._clock(), self._state.money
        self._flown += (now - self._last) * len(self._flights)
        self._last = now
        self.exposure = max(self.exposure, money.reserved + money.unknown)
        return now

    def seconds(self) -> float:
        """How long it has taken."""
        return self._clock() - self._began

    def nearly(self) -> tuple[float, float]:
        """When 99 % of the answers had come, and how many flew until then on average."""
        if not self.answers:
            return self.seconds(), 0.0
        at, flown = self.answers[-(-len(self.answers) * 99 // 100) - 1]
        return at, flown / at if at else 0.0


def rehearse(job: Job, seed: int, often: float | None = None) -> Played:
    """Play a run to its end; the seed decides lengths, speeds and faults.

    It looks at what flies every so `often` seconds; None: as often as something hangs on it.

    Raises:
        UsageError: no endpoint may answer, or none takes a dataset's max_tokens.
    """
    return play(lambda: _play(job, seed, often))


async def _play(job: Job, seed: int, often: float | None) -> Played:
    clock = asyncio.get_running_loop().time
    market = Market(job.scenario, seed, LightVocabulary(), clock, count_prompt, Light(law_of(job.curves)))
    books = await _books(job, market, clock)
    books.pace = Stepped(books.setting.config.limits.in_flight)
    _open(job, books)
    before, watch = _Before.of(books.state), _Watch(books, clock, often)
    reader = CountingReader(books, market)
    engine = Engine(books, session.admission_of(books), reader, tick=often or TICK)
    watch.follow(engine)
    reason = await engine.run()
    return _played(reason, watch, books.state, before, market)


async def _books(job: Job, market: Market, clock: Callable[[], float]) -> Books:
    limits = job.config.limits.model_copy(update={"reread_seconds": NEVER})
    target = job.config.target.model_copy(update={"stream": True})
    config = job.config.model_copy(update={"limits": limits, "target": target})
    backend, transport = backend_of(config, SecretStr("sk-rehearsal")), PlayedTransport(market.handle)
    offer = job.offer or await list_endpoints(config, backend, transport)
    tokenizer = Tokenizer(family_of(config), Counts())
    parts = session.Parts(config, backend, tokenizer, Inputs(job.prompts, job.counts, (), 0), offer)
    barred = [verdict.endpoint for verdict in offer.verdicts if not verdict.use]
    served = Served(routes(config, allowed(offer.verdicts), barred))
    session.check_size(parts, served)
    world = World(transport, NoLog(), clock, clock, _at_once)
    return session.books_of(parts, served, world, copy.deepcopy(job.state))


def _open(job: Job, books: Books) -> None:
    """Open a session, as `session` does: what a kill left is asked again, what nobody knows the cost of stays so."""
    config, state, now = books.setting.config, books.state, books.world.wall
    for attempt in state.left_open():
        books.emit(Settled(at=now(), attempt=attempt.id, verdict=Verdict.AGAIN, cost=0))
    for attempt in state.unknown():
        attempt.generation_id = ""  # no look-up of this market finds it
    books.emit(session.opening(books))
    for prompt in change(state, job.prompts).added:
        tokens = job.counts[prompt.dataset, prompt.id]
        books.emit(PromptAdded(now(), prompt.dataset, prompt.id, tokens, len(prompt.turns)))
    named = {(prompt.dataset, prompt.id): prompt for prompt in job.prompts}
    turns = Turns(books, Remembered(state, named))
    candidates = turns.candidates(owed(config, state, job.prompts), job.counts)
    books.pool = Pool.of(sorted(candidates, key=lambda candidate: candidate.work.turn == 0))
    books.follow = turns.next


async def _at_once(work: Callable[[], int]) -> int:
    return work()


def law_of(curves: Mapping[str, Curve]) -> Law:
    """Lengths by the curve of the dataset that a prompt names."""

    def law(chat: Chat, rng: random.Random) -> int | None:
        curve = curves.get(dataset_of(chat.messages)) if curves else None
        return None if curve is None else max(1, round(curve.quantile(rng.random(), HORIZON)))

    return law


class _Before(NamedTuple):
    """What a run had before it was played."""

    attempts: int
    settled: int
    wasted: int
    tokens: int

    @classmethod
    def of(cls, state: State) -> _Before:
        kept = sum(dataset.quota.kept for dataset in state.datasets.values())
        return cls(state.last_attempt, state.money.settled, state.money.wasted, kept)


def _played(reason: StopReason, watch: _Watch, state: State, before: _Before, market: Market) -> Played:
    fresh = [attempt for attempt in state.attempts.values() if attempt.id > before.attempts]
    answers = [attempt for attempt in fresh if attempt.answered]
    seconds, statuses = watch.seconds(), market.books.statuses
    nearly, flying = watch.nearly()
    return Played(
        seconds=seconds,
        tail=seconds - nearly,
        reason=reason.value,
        paid=state.money.settled - before.settled,
        wasted=state.money.wasted - before.wasted,
        kept=sum(attempt.cost or 0 for attempt in answers),
        unknown=state.money.unknown,
        peak_exposure=watch.exposure,
        tokens=sum(dataset.quota.kept for dataset in state.datasets.values()) - before.tokens,
        answers=len(answers),
        cut=sum(attempt.settled is not None and attempt.settled.finish is Finish.LENGTH for attempt in answers),
        requests=statuses.total(),
        refused=statuses[429],
        failed=statuses.total() - statuses[200] - statuses[429],
        peak=market.books.peak,
        flying=flying,
        datasets={name: dataset.quota.kept for name, dataset in state.datasets.items()},
        providers=dict(Counter(attempt.tag for attempt in answers)),
    )
