"""The end of an attempt: the decision, the one event that holds data and money, and what it means for the endpoint."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from eyas.config import RunConfig
from eyas.engine.admit import Candidate, Pool, Quotas
from eyas.engine.attempt import Flight, Meter
from eyas.engine.fetch import Fetches, cut_short
from eyas.engine.pace import Pace
from eyas.engine.quality import Concern
from eyas.engine.recover import Repeat, booked, doubles, due, lost, originals
from eyas.engine.retry import Case, Decision, Effect, Policy, decide
from eyas.engine.served import Served
from eyas.engine.target import Backend
from eyas.events import Alarm, AnyEvent, Corrected, Headers, Settled
from eyas.families import Family, Loaded
from eyas.journal import Log, Payload
from eyas.ledger import usd
from eyas.providers.choose import served_by
from eyas.records import completed
from eyas.state import State
from eyas.transport import Deadlines, Transport
from eyas.types import Completion, Outcome, Record, StopReason, Verdict, Work


@dataclass(frozen=True, slots=True)
class World:
    """What is handed in: the way out, the journal, clocks (wall and monotonic, seconds). Tests hand in others.

    `apart` counts a long prompt beside the loop, which must not wait for it.
    """

    transport: Transport
    log: Log
    wall: Callable[[], float] = time.time
    clock: Callable[[], float] = time.monotonic
    apart: Callable[[Callable[[], int]], Awaitable[int]] = asyncio.to_thread


@dataclass(frozen=True, slots=True)
class Setting:
    """What is decided before the first request."""

    config: RunConfig
    backend: Backend
    family: Family
    tokens: Loaded
    served: Served
    policy: Policy
    deadlines: Deadlines


async def _alone(_candidate: Candidate, _attempt: int, _outcome: Outcome) -> None:
    """No turn follows."""


@dataclass(slots=True)
class Books:
    """The run's state, and everything that an outcome touches. The one place that emits events while requests fly.

    `held` are works that ended as unknown: they are asked again when a look-up makes their outcomes known. `follow` hears
    of each durable outcome, by its candidate and attempt, and puts the conversation's next turn into the pool. `fold` applies
    an event to the state, where somebody wants to see what it changes. `outside` are works that this session leaves alone.
    """

    world: World
    setting: Setting
    state: State
    pool: Pool
    quotas: Quotas
    pace: Pace
    held: dict[Work, Candidate] = field(default_factory=dict[Work, Candidate])
    fetches: Fetches = field(default_factory=Fetches)
    meters: dict[str, Meter] = field(default_factory=dict[str, Meter])
    follow: Callable[[Candidate, int, Outcome], Awaitable[None]] = _alone
    fold: Callable[[AnyEvent], None] | None = None
    outside: Mapping[str, int] = field(default_factory=dict[str, int])
    last_error: str = ""
    stopping: StopReason | None = None
    stop_detail: str = ""

    def emit(self, event: AnyEvent, payload: Payload = None) -> Awaitable[None]:
        """Fold an event into the state and append it to the journal; awaiting means durable."""
        (self.fold or self.state.apply)(event)
        return self.world.log.write(event, payload)

    def stop(self, reason: StopReason, detail: str) -> None:
        """Start nothing more; the first reason stands."""
        if self.stopping is None:
            self.stopping, self.stop_detail = reason, detail

    def settle(self, flight: Flight, outcome: Outcome) -> tuple[Decision, Awaitable[None]]:
        """Book an outcome; awaiting the second value means durable."""
        decision = self._decide(flight, outcome)
        if isinstance(outcome, Completion) and outcome.usage is not None and outcome.cut is None and flight.pieces:
            self.meters.setdefault(flight.route.tag, Meter()).learn(flight.pieces, outcome.usage.completion_tokens)
        settled = settled_event(flight.attempt, outcome, decision, self.world.wall())
        if outcome.generation_id and not self.state.attempt(flight.attempt).generation_id:
            self.emit(Headers(at=settled.at, attempt=flight.attempt, generation_id=outcome.generation_id))
        durable = self.emit(settled, outcome if isinstance(outcome, Completion) else None)
        self._watch_bill(flight.attempt, flight.route.tag, decision.cost or 0, flight.reserved)
        self._take_effect(flight, decision)
        if flight.source:
            self._recovered(flight)
        self._ask_again(flight, decision)
        if decision.verdict is Verdict.DONE:
            self.quotas.learn(flight.candidate.work, flight.candidate.tokens, decision.tokens, settled.seconds)
        return decision, durable

    def tokens(self, flight: Flight) -> int:
        """The best guess of the tokens that an answer in flight has so far."""
        pieces = flight.pieces
        meter = self.meters.get(flight.route.tag) if pieces else None
        return min(flight.most, meter.guess(pieces)) if meter else pieces

    def correct(self, event: Corrected) -> Awaitable[None]:
        """Book a cost that became known later; awaiting means durable."""
        attempt = self.state.attempt(event.attempt)
        durable = self.emit(event)
        for double in doubles(self.state, attempt):
            durable = self.emit(Corrected(at=event.at, attempt=double.id, cost=0))
        now = self.world.clock()
        self.pool.now_due(attempt.work, attempt.mark, now)
        self.fetches.known(attempt, now)
        self._fetch()
        if attempt.work in self.held and self.state.work(attempt.work).owed:
            self.pool.put_back(self.held.pop(attempt.work))
        self._watch_bill(attempt.id, attempt.tag, event.cost, attempt.reserved)
        return durable

    def now_known(self, record: Record) -> Record:
        """A record with the provider and the counts that became known after its answer came."""
        return msgspec.structs.replace(
            record, completion=completed(record.completion, self.state.attempt(record.attempt))
        )

    def concern(self, concern: Concern) -> None:
        """Report a provider, and ask it no more if that is wished and it can be told apart."""
        self.emit(Alarm(at=self.world.wall(), detail=concern.detail))
        self.last_error = concern.detail
        for route in self.setting.served.routes:
            if concern.aside and all(served_by(concern.provider, (endpoint,)) for endpoint in route.endpoints):
                self.pace.set_aside(route.tag, concern.detail)

    def _ask_again(self, flight: Flight, decision: Decision) -> None:
        """Have the work asked again that this outcome leaves owed, by the body that may have been answered without us."""
        let_in = decision.verdict is not Verdict.AGAIN or decision.counted or decision.cost != 0
        if flight.repeated and let_in:
            self.fetches.landed(flight.route.tag, hit=bool(flight.source), fetch=flight.fetch)
        if flight.repeated and not let_in:
            self.pool.repeats[flight.candidate.work] = Repeat(
                flight.mark, flight.route.tag, self.world.clock(), fetch=flight.fetch
            )
        if flight.fetch and let_in:
            self._fetch()
            return
        self._repeat(flight, decision)
        if decision.verdict is Verdict.AGAIN:
            elsewhere = decision.effect in (Effect.AVOID, Effect.MISSERVED)
            self.pool.put_back(flight.candidate, flight.route.tag if elsewhere else "")
        if decision.verdict is Verdict.UNKNOWN:
            self.held[flight.candidate.work] = flight.candidate
        self._fetch()

    def _repeat(self, flight: Flight, decision: Decision) -> None:
        """Note what may be finished without us: an answer of which nothing is kept, or one that was cut."""
        attempt = self.state.attempt(flight.attempt)
        if flight.mark and lost(decision.kind, decision.verdict):
            after = due(self.state, attempt, self.world.clock())
            self.pool.repeats[attempt.work] = Repeat(flight.mark, flight.route.tag, after)
        elif cut_short(self.state, attempt, flight.route):
            self.fetches.cut[attempt.id] = flight.candidate

    def _fetch(self) -> None:
        for candidate, repeat in self.fetches.release():
            self.pool.repeats[candidate.work] = repeat
            self.pool.put_back(candidate)

    def _recovered(self, flight: Flight) -> None:
        """The answer of a lost attempt came out of the API's cache: it is this attempt's now, and so is its cost.

        Where it was not taken, the cost stays with the attempt that it was bought by.
        """
        again = self.state.attempt(flight.attempt)
        stays = not again.answered and booked(self.state, again, flight.source)
        for attempt in [again] if stays else originals(self.state, again, flight.source):
            if attempt.settled is not None and attempt.cost != 0:
                self.emit(Corrected(at=self.world.wall(), attempt=attempt.id, cost=0))

    def _decide(self, flight: Flight, outcome: Outcome) -> Decision:
        thinking = self.setting.config.thinking(flight.candidate.work.dataset)
        known = self.state.work(flight.candidate.work)
        tokens, misserved = 0, ""
        if isinstance(outcome, Completion):
            if not self.setting.backend.takes_ids:  # its own prompt says the mode
                misserved = self.setting.served.objection(outcome, thinking)
            if outcome.cut is not None or outcome.usage is None:
                tokens = count_tokens(self.setting.tokens, outcome, thinking)
        case = Case(
            tries=known.tries,
            lost=known.lost,
            prices=flight.route.prices,
            tokens=tokens,
            wasted=self.state.money.wasted,
            misserved=misserved,
        )
        return decide(outcome, case, self.setting.policy)

    def _aside(self, tag: str, reason: str) -> None:
        """Say that an endpoint is asked no more, where that is news."""
        if reason:
            self.emit(Alarm(at=self.world.wall(), detail=f"{tag} is asked no more in this session: {reason}"))

    def _watch_bill(self, attempt: int, tag: str, cost: int, reserved: int) -> None:
        if cost <= reserved:
            return
        detail = (
            f"attempt {attempt} at {tag} was billed ${usd(cost):.6f}, above the ${usd(reserved):.6f} reserved for it: "
            "the provider broke max_tokens or its listed price"
        )
        self.emit(Alarm(at=self.world.wall(), detail=detail, attempt=attempt))
        self.stop(StopReason.ALARM, detail)

    def _take_effect(self, flight: Flight, decision: Decision) -> None:
        tag, now = flight.route.tag, self.world.clock()
        if decision.kind is not None:
            self.last_error = f"{tag}: {decision.kind.value}: {decision.detail}"
        match decision.effect:
            case Effect.REJECTED:
                self.pace.rejected(tag, now, decision.retry_after)
            case Effect.UNREACHABLE if not self.setting.backend.bills:
                self.pace.rejected(tag, now, decision.retry_after)  # one replica of several
            case Effect.BUDGET | Effect.UNREACHABLE:
                self.pace.rejected("", now, decision.retry_after)
            case Effect.MISSERVED:
                self._aside(tag, self.pace.misserved(tag))
            case Effect.ASIDE:
                self._aside(tag, self.pace.set_aside(tag, decision.detail, for_good=False))
            case _:
                pass
        if decision.stop is not None:
            self.stop(decision.stop, decision.detail)


def settled_event(attempt: int, outcome: Outcome, decision: Decision, at: float) -> Settled:
    """The event of an attempt's end."""
    answer = outcome if isinstance(outcome, Completion) else None
    usage = outcome.usage
    return Settled(
        at=at,
        attempt=attempt,
        verdict=decision.verdict,
        cost=decision.cost,
        tokens=decision.tokens,
        provider=outcome.provider,
        kind=decision.kind,
        finish=answer.finish if answer else None,
        counts=(usage.prompt_tokens, usage.completion_tokens, usage.reasoning_tokens) if usage else None,
        first_token=answer.first_token if answer else None,
        seconds=answer.seconds if answer else 0.0,
        detail=decision.detail,
        counted_try=decision.counted and decision.verdict is Verdict.AGAIN,
    )


def count_tokens(tokens: Loaded, answer: Completion, thinking: bool) -> int:
    """How many output tokens an answer holds by our own tokenizer, where the API did not count them."""
    parts = tokens.parts(answer, thinking)
    return sum(1 if part.token is not None else len(tokens.vocab.encode(part.text)) for part in parts)
