"""Any order of events against a plain model: the books alone, and the engine with outcomes that come as they like.

EYAS_FULL=1 runs 500 examples of 50 steps each instead of the few of an ordinary test run.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from math import ceil
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from eyas.errors import CapReached, LedgerError
from eyas.events import AnyEvent, Corrected, Intent, PromptAdded, SessionOpened, Settled
from eyas.families import Loaded
from eyas.ledger import Money, Quota, cost_of, reservation
from eyas.sim import Action, Reply
from eyas.state import State, fold
from eyas.types import NANO, FailureKind, Prices, StopReason, Verdict, Work
from tests import virtual as v
from tests.stage import Ending, Stage
from tests.test_state import check as consistent
from tests.virtual import VirtualLoop

FULL = bool(os.environ.get("EYAS_FULL"))


def profile(examples: int, steps: int) -> settings:
    """So many examples of so many steps; all of them if the full run is asked for."""
    examples, steps = (500, 50) if FULL else (examples, steps)
    checks = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
    return settings(max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=checks)


PICK = st.integers(0, 99)
SHARE = st.fractions(0, 1, max_denominator=20)
PRICES = st.builds(Prices, st.integers(0, 10**9), st.integers(0, 10**10), st.integers(0, 1000))
WORKS = tuple(Work(name, str(number)) for name in "AB" for number in range(3))
QUOTAS: dict[str, int | None] = {"A": 100, "B": None}


def plain_cost(prices: Prices, prompt: Fraction | int, completion: int) -> int:
    """What tokens cost, by the words of the price list: rounded up once, the fee of the request on top."""
    return ceil(Fraction(prompt * prices.prompt + completion * prices.completion, 1_000_000)) + prices.request


class Ledger(RuleBasedStateMachine):
    """Money, quotas and the fold, against facts that are added up anew at every step.

    `facts` go beside `events`, one for each: what a person with a pencil would note. `bills` is what the server charges.
    """

    def __init__(self) -> None:
        super().__init__()
        self.state = State()
        self.events: list[AnyEvent] = []
        self.facts: list[tuple[Any, ...]] = []
        self.sent: dict[int, Intent] = {}
        self.most: dict[int, tuple[int, int]] = {}
        self.bills: dict[int, int] = {}
        self.durable = self.number = 0

    def happens(self, event: AnyEvent, *fact: Any) -> None:
        """An event, and the fact that it stands for."""
        self.state.apply(event)
        self.events.append(event)
        self.facts.append(fact)

    def add_up(self) -> dict[str, Any]:
        """The whole story from its start."""
        told: dict[str, Any] = {"cap": None, "open": {}, "unknown": {}, "paid": {}, "kept": {}, "first": 0}
        for kind, *fact in self.facts:
            if kind == "cap":
                told["cap"] = fact[0]
                told["first"] = sum(map(sum, (told["paid"].values(), told["open"].values(), told["unknown"].values())))
            elif kind == "send":
                told["open"][fact[0]] = fact[1]
            elif kind == "pay":
                told["open"].pop(fact[0], None)
                told["unknown"].pop(fact[0], None)
                told["paid"][fact[0]] = fact[1]
            elif kind == "hold":
                told["unknown"][fact[0]] = told["open"].pop(fact[0])
            if kind in ("pay", "hold") and fact[2]:
                told["kept"][fact[0]] = fact[2]
        return told

    def pick(self, told: dict[str, Any], kind: str, number: int) -> int:
        """One attempt of those that stand so."""
        found = sorted(told[kind])
        return found[number % len(found)]

    @initialize(cap=st.integers(1_000, 200_000))
    def start(self, cap: int) -> None:
        """A run with three prompts in each of two datasets."""
        self.open(cap)
        for work in WORKS:
            self.happens(PromptAdded(at=0.0, dataset=work.dataset, prompt_id=work.prompt_id, tokens=10), "prompt")
        self.durable = len(self.events)

    def open(self, cap: int) -> None:
        """A session opens under that cap."""
        self.happens(SessionOpened(at=0.0, model="m", cap=cap, quotas=QUOTAS), "cap", cap)

    @rule(pick=PICK, tokens=st.integers(0, 100), most=st.integers(1, 20), prices=PRICES)
    def send(self, pick: int, tokens: int, most: int, prices: Prices) -> None:
        """A request starts if what it may cost at most fits below the cap, and never otherwise."""
        told = self.add_up()
        busy = {self.sent[each].work for kind in ("open", "kept") for each in told[kind]}
        idle = [work for work in WORKS if work not in busy]
        wanted = plain_cost(prices, tokens + 64 + ceil(Fraction(tokens, 20)), most)
        assert reservation(prices, tokens, most) == wanted
        left = told["cap"] - sum(map(sum, (told["paid"].values(), told["open"].values(), told["unknown"].values())))
        if wanted > left:
            assert not self.state.money.fits(wanted)
            with pytest.raises(CapReached):
                self.state.money.reserve(wanted)
            return
        assert self.state.money.reserve(wanted).reserved == self.state.money.reserved + wanted
        if idle:
            self.number += 1
            work = idle[pick % len(idle)]
            number = self.state.work(work).numbers + 1
            intent = Intent(
                at=1.0, attempt=self.number, work=work, number=number, tag="p", prices=prices, reserved=wanted
            )
            self.sent[self.number], self.most[self.number] = intent, (tokens, most)
            self.happens(intent, "send", self.number, wanted)
            self.durable = len(self.events)

    @precondition(lambda self: self.add_up()["open"])
    @rule(pick=PICK, share=SHARE, verdict=st.sampled_from(Verdict), known=st.booleans())
    def finish(self, pick: int, share: Fraction, verdict: Verdict, known: bool) -> None:
        """An outcome: the server bills what it counted, and we are told now or not."""
        attempt = self.pick(self.add_up(), "open", pick)
        (tokens, most), intent = self.most[attempt], self.sent[attempt]
        counted, sampled = int(share * (tokens + 64)), int(share * most)
        cost = plain_cost(intent.prices, counted, sampled)
        assert cost_of(intent.prices, counted, sampled) == cost <= intent.reserved
        self.bills[attempt] = cost
        kept = 1 + sampled if verdict in (Verdict.DONE, Verdict.PARTIAL) else 0
        kind = None if verdict is Verdict.DONE else FailureKind.CUT
        event = Settled(at=2.0, attempt=attempt, verdict=verdict, cost=cost if known else None, tokens=kept, kind=kind)
        self.happens(event, "pay" if known else "hold", attempt, cost, kept)

    @precondition(lambda self: self.add_up()["paid"] or self.add_up()["unknown"])
    @rule(pick=PICK, cost=st.integers(0, 500))
    def settle_again(self, pick: int, cost: int) -> None:
        """A second outcome of one attempt is a defect, and changes nothing."""
        told = self.add_up()
        attempt = self.pick({"ended": [*told["paid"], *told["unknown"]]}, "ended", pick)
        with pytest.raises(LedgerError):
            self.state.apply(Settled(at=2.0, attempt=attempt, verdict=Verdict.AGAIN, cost=cost))

    @precondition(lambda self: self.add_up()["unknown"])
    @rule(pick=PICK, given_up=st.booleans())
    def look_up(self, pick: int, given_up: bool) -> None:
        """What it cost is found, or it is written off at all that was held for it."""
        attempt = self.pick(self.add_up(), "unknown", pick)
        bill = self.bills.setdefault(attempt, 0)
        cost = self.sent[attempt].reserved if given_up else bill
        kept = self.add_up()["kept"].get(attempt, 0)
        self.happens(Corrected(at=3.0, attempt=attempt, cost=cost, written_off=given_up), "pay", attempt, cost, kept)

    @precondition(lambda self: self.add_up()["paid"])
    @rule(pick=PICK, share=SHARE)
    def correct(self, pick: int, share: Fraction) -> None:
        """The server changes its mind, within the reservation."""
        told = self.add_up()
        attempt = self.pick(told, "paid", pick)
        cost = int(told["paid"][attempt] * share)
        self.bills[attempt] = cost
        self.happens(Corrected(at=3.0, attempt=attempt, cost=cost), "pay", attempt, cost, told["kept"].get(attempt, 0))

    @precondition(lambda self: self.add_up()["open"])
    @rule(pick=PICK)
    def correct_too_early(self, pick: int) -> None:
        """What flies has no cost yet."""
        with pytest.raises(LedgerError):
            self.state.apply(Corrected(at=3.0, attempt=self.pick(self.add_up(), "open", pick), cost=1))

    @rule(cap=st.integers(1_000, 400_000))
    def change_cap(self, cap: int) -> None:
        """The next session has another cap, perhaps below what was spent."""
        self.open(cap)
        self.durable = len(self.events)

    @rule(share=SHARE)
    def crash(self, share: Fraction) -> None:
        """The process is killed: a prefix stays that holds all that was sent, and what was left open becomes unknown."""
        cut = self.durable + int(share * (len(self.events) - self.durable))
        del self.events[cut:], self.facts[cut:]
        self.state = fold(self.events)
        for attempt in sorted(self.add_up()["open"]):
            lost = Settled(at=4.0, attempt=attempt, verdict=Verdict.AGAIN, cost=None, kind=FailureKind.LOST)
            self.happens(lost, "hold", attempt, 0, 0)
        self.durable = len(self.events)

    @rule(in_flight=st.integers(0, 100), one_more=st.integers(1, 50))
    def want(self, in_flight: int, one_more: int) -> None:
        """A quota wants one more while less than half of it lies above the limit; while nothing flies, until it is met."""
        quota: Quota = self.state.datasets["A"].quota
        kept = sum(n for attempt, n in self.add_up()["kept"].items() if self.sent[attempt].work.dataset == "A")
        met = Fraction(kept) >= Fraction(995, 10)
        wanted = not met and (in_flight == 0 or Fraction(kept + in_flight) + Fraction(one_more, 2) <= 100)
        assert (quota.met, quota.admits(in_flight, one_more)) == (met, wanted)

    @invariant()
    def agrees(self) -> None:
        """The state is what the facts add up to; I1; and the server never billed more than the books hold."""
        told = self.add_up()
        paid, reserved, held = (sum(told[kind].values()) for kind in ("paid", "open", "unknown"))
        waste = sum(cost for attempt, cost in told["paid"].items() if attempt not in told["kept"])
        assert self.state.money == Money(told["cap"], paid, waste, reserved, held)
        assert told["cap"] is None or paid + reserved + held <= max(told["cap"], told["first"])
        assert sum(self.bills.values()) <= paid + reserved + held
        if self.events:
            consistent(self.state)


def test_any_order_of_events_keeps_the_books() -> None:
    """Sends, outcomes, look-ups, write-offs, corrections, caps and crashes in any order: the state is the plain sum."""
    run_state_machine_as_test(Ledger, settings=profile(50, 30))


FATES: dict[str, Callable[[], Reply]] = {
    "busy": v.failed(429, {"Retry-After": "1"}, message="busy"),
    "down": v.failed(503, message="down"),
    "error": v.failed(502, message="oops"),
    "bad": v.failed(400, message="bad prompt"),
    "page": lambda: v.reply(b"<html>", status=524),
    "reset": lambda: v.reply(status=0, end=Action.RESET),
    "unreachable": v.unreachable,
}
PROMPT_NANO, TOKEN_NANO, POLL = 500, 2000, 0.05


class Generation:
    """An answer that a provider makes, as the rules tell it to; `told` once /generation knows it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tokens = 0
        self.queue: list[bytes | Action] = []
        self.over = self.gone = self.told = False

    @property
    def bill(self) -> int:
        """Nano-dollars: 20 tokens of prompt, and what was sampled; nothing without a token."""
        return (20 * PROMPT_NANO + self.tokens * TOKEN_NANO) if self.tokens else 0

    @property
    def running(self) -> bool:
        """Whether the rules can still do something with it."""
        return not self.over and not self.gone

    def usage(self) -> dict[str, Any]:
        """What the last chunk says."""
        details = {"completion_tokens_details": {"reasoning_tokens": 1}}
        return {"prompt_tokens": 20, "completion_tokens": self.tokens, "cost": self.bill / NANO} | details

    def say(self, tokens: int) -> None:
        """So many more tokens."""
        if self.tokens == 0:
            self.queue += v.sse(v.delta(reasoning=" Hm"), done=False)
        self.queue += v.sse(*[v.delta(content=" word")] * (tokens - (self.tokens == 0)), done=False)
        self.tokens += tokens

    def end(self, usage: bool) -> None:
        """The answer is whole; its usage may be left out."""
        self.queue += v.sse(v.delta(finish="stop"), *[v.delta(self.usage(), "stop")] * usage)
        self.stop(Action.END)

    def stop(self, action: Action) -> None:
        """The stream ends, one way or another."""
        self.queue.append(action)
        self.over = True

    def steps(self) -> Iterator[tuple[float, bytes | Action]]:
        """What the player plays: whatever the rules have put in, else a comment."""
        while True:
            yield (0.0, self.queue.pop(0)) if self.queue else (POLL, b": wait\n\n")

    def leave(self, played: bool) -> None:
        """The client is gone; what ran is billed."""
        self.gone = True


class Running(RuleBasedStateMachine):
    """The engine in any weather that the rules can make, killed and taken up again; the stage checks every event."""

    kimi: ClassVar[Loaded]

    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualLoop()
        self.stage = Stage(self.kimi, prompts=4, in_flight=3, usd=0.01, more={"target.recover": False})
        self.generations: list[Generation] = []
        self.fates: list[str] = []
        self.calm = False
        self.session: asyncio.Task[StopReason | None] | None = None

    def handle(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """The server: what the rules say comes of a request."""
        if "/endpoints" in target:
            return v.reply(json.dumps({"data": {"endpoints": v.ENDPOINTS}}).encode())
        if method == "GET":
            return self._known(target)
        if self.fates and not self.calm:
            return FATES[self.fates.pop(0)]()
        made = Generation(f"gen-{len(self.generations)}")
        self.generations.append(made)
        if self.calm:
            made.say(5)
            made.end(usage=True)
        found = Reply(200, made.steps(), headers={"X-Generation-Id": made.name})
        found.on_close(made.leave)
        return found

    def _known(self, target: str) -> Reply:
        for made in self.generations:
            if target.endswith(f"id={made.name}") and (made.told or self.calm):
                row = {
                    "total_cost": made.bill / NANO,
                    "native_tokens_prompt": 20,
                    "native_tokens_completion": made.tokens,
                }
                return v.reply(json.dumps({"data": {"id": made.name, "provider_name": "Chutes", **row}}).encode())
        return v.reply(b'{"data": []}') if "/providers" in target else v.failed(404, message="not found")()

    def pass_time(self, seconds: float) -> None:
        """Let the engine work; a session that has ended is followed by the next one."""
        if self.session is None or self.session.done():
            if self.session is not None:
                self.session.result()
            self.session = self.loop.create_task(self.stage.session(self.handle, self.ending()))
            self.next_ending = None
        self.loop.run_until_complete(asyncio.sleep(seconds))

    next_ending: Ending | None = None

    def ending(self) -> Ending | None:
        """How the session that starts now is to be ended."""
        return None if self.calm else self.next_ending

    @property
    def running(self) -> list[Generation]:
        """Answers on their way."""
        return [made for made in self.generations if made.running]

    @rule(seconds=st.sampled_from([0.01, 0.3, 2.0, 25.0]))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.pass_time(seconds)

    @rule(fates=st.lists(st.sampled_from(sorted(FATES)), min_size=1, max_size=4))
    def weather(self, fates: list[str]) -> None:
        """The next requests get nowhere."""
        self.fates += fates
        self.pass_time(0.3)

    @precondition(lambda self: self.running)
    @rule(pick=PICK, tokens=st.integers(1, 120), how=st.sampled_from(["go on", "whole", "no usage", "close", "reset"]))
    def stream(self, pick: int, tokens: int, how: str) -> None:
        """Tokens come, and the stream goes on or ends in some way."""
        made = self.running[pick % len(self.running)]
        made.say(min(tokens, 400 - made.tokens))
        if how in ("whole", "no usage"):
            made.end(usage=how == "whole")
        elif how != "go on":
            made.stop(Action.END if how == "close" else Action.RESET)
        self.pass_time(0.1)

    @precondition(lambda self: self.running)
    @rule(pick=PICK, action=st.sampled_from([Action.END, Action.RESET]))
    def lose(self, pick: int, action: Action) -> None:
        """A stream ends where it is."""
        self.running[pick % len(self.running)].stop(action)
        self.pass_time(0.1)

    @rule()
    def tell(self) -> None:
        """Generations that ended can be looked up from now on."""
        for made in self.generations:
            made.told |= made.gone
        self.pass_time(1.0)

    @rule(how=st.sampled_from(["kill", "fault"]), at=st.integers(1, 40))
    def doom(self, how: str, at: int) -> None:
        """The next session will be killed, or its journal fail, at some event."""
        self.next_ending = Ending(how, at)

    @precondition(lambda self: self.session is not None and not self.session.done())
    @rule(times=st.integers(0, 2))
    def stop(self, times: int) -> None:
        """The user interrupts, once or twice; or the process is killed."""
        if times and self.stage.engine is not None:
            for _ in range(times):
                self.stage.engine.interrupt()
        else:
            self.stage.kill()
        self.pass_time(0.1)

    def teardown(self) -> None:
        """At last all goes well: every work ends, and every dollar of the server stands in the books."""
        try:
            self.calm = True
            for made in self.running:
                made.stop(Action.END)
            for _ in range(4):
                self.pass_time(300.0)
            self.loop.run_until_complete(self.session)
            self.loop.run_until_complete(self.stage.session(self.handle))
            self.check()
        finally:
            self.loop.close()

    def check(self) -> None:
        """I1, I5 and I6 of the whole run."""
        state, billed = self.stage.state, sum(made.bill for made in self.generations)
        self.stage.check()
        consistent(state)
        assert billed <= state.money.settled + state.money.unknown
        assert billed <= 10_000_000
        assert state.money.unknown or state.money.settled == billed
        assert self.stage.ended().keys() <= set(Verdict) - {Verdict.AGAIN} or state.closed is not StopReason.COMPLETE


def test_any_interleaving_of_outcomes_keeps_the_run(kimi: Loaded) -> None:
    """Answers, losses, refusals, kills, failed writes and interrupts as they come: nothing lost, nothing bought twice."""
    Running.kimi = kimi
    run_state_machine_as_test(Running, settings=profile(25, 25))
