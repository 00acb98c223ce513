"""A whole run without waiting, sockets or disk: a virtual clock, a transport that plays replies, a journal in memory."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from eyas.errors import NotSentError, StorageError
from eyas.events import (
    AnyEvent,
    Corrected,
    Intent,
    PromptAdded,
    Retried,
    SessionOpened,
    Settled,
    TurnAdded,
    TurnRefused,
)
from eyas.journal import Payload
from eyas.ledger import Money
from eyas.sim import Action, Reply
from eyas.sim.clock import VirtualLoop, now, play
from eyas.sim.played import Handler, PlayedTransport
from eyas.state import State
from eyas.transport import Request
from eyas.types import DraftText, Finish, Prompt, Verdict, Work

__all__ = ["Handler", "VirtualLoop", "now", "play"]
COMMIT = 0.002
"""Virtual seconds that the journal takes for a commit."""


class FakeTransport(PlayedTransport):
    """Plays what a handler (a simulated world, or a script) answers; keeps what was sent and when."""

    def __init__(self, handle: Handler, log: MemoryLog | None = None) -> None:
        super().__init__(handle)
        self.log = log
        self.sent: list[tuple[float, bytes]] = []
        self.gets = 0

    async def sending(self, request: Request) -> None:
        """A body leaves only when the journal holds it."""
        chat = request.method == "POST"
        if self.log is not None and self.log.dead:
            await asyncio.get_running_loop().create_future()  # a killed process sends nothing
        if chat:
            assert self.log is None or request.body in self.log.bodies, "sent before its intent was durable"
            self.sent.append((now(), request.body))
        self.gets += not chat


class Watch:
    """The books kept a second time, from the events alone and in the plainest way: the state must agree at every event.

    `over`: a bill above its reservation came, and from then on nothing may start. `at_first` is what was committed when
    the session began: its cap may be below that. `strict`: all that flies is reserved in full, so that I1 holds.
    """

    def __init__(self, state: State, events: Iterable[AnyEvent] = (), *, strict: bool = True) -> None:
        self.state = state
        self.strict = strict
        self.cap: int | None = None
        self.over = False
        self.flying: dict[int, Intent] = {}
        self.unknown: dict[int, Intent] = {}
        self.costs: dict[int, int] = {}
        self.works: dict[int, Work] = {}
        self.marks: dict[int, str] = {}
        self.tokens: dict[int, int] = {}
        self.answers: dict[Work, int] = {}
        self.verdicts: dict[Work, Verdict] = {}
        self.finishes: dict[Work, Finish | None] = {}
        self.lost_on: Counter[Work] = Counter()
        self.wasted_before: dict[Work, int] = {}
        self.most_waste: int | None = None
        self.killed: set[int] = set()
        self.reserved = self.held = self.settled = self.wasted = self.at_first = 0
        for event in events:
            self._book(event)

    def see(self, event: AnyEvent) -> None:
        """One more event happened; it is folded already."""
        if isinstance(event, Intent):
            self._may_start(event)
        self._book(event)
        assert self.state.money == Money(self.cap, self.settled, self.wasted, self.reserved, self.held), (
            "I5: the books differ"
        )
        if self.strict and self.cap is not None and not self.over:
            most = self.cap if isinstance(event, Intent) else max(self.cap, self.at_first)
            assert self.committed <= most, "I1"

    @property
    def committed(self) -> int:
        """What can be spent already."""
        return self.settled + self.reserved + self.held

    def whole(self, work: Work) -> bool:
        """Whether a turn of the user can come after it."""
        return self.finishes.get(work) in (Finish.STOP, Finish.TOOL_CALLS)

    def _may_start(self, event: Intent) -> None:
        assert event.work not in self.answers or self._fetched(event), (
            "I5: an answer that reached the journal is bought again"
        )
        assert all(event.work != other.work for other in self.flying.values()), "a work flies twice"
        may_waste = self.most_waste is None or self.wasted_before.get(event.work, 0) <= self.most_waste
        assert may_waste or not self.lost_on.get(event.work), (
            "asked again after waste, though the bound on waste was passed"
        )
        tokens = self.state.prompt_tokens(event.work)
        if event.work.turn:
            assert tokens, "a later turn is asked that was not counted"
            assert self.whole(msgspec.structs.replace(event.work, turn=event.work.turn - 1)), "a turn before its time"
        assert event.reserved * 1_000_000 >= tokens * event.prices.prompt, "the reservation does not cover the prompt"
        assert not self.over, "a request starts after a bill above its reservation"

    def _fetched(self, event: Intent) -> bool:
        """Whether it asks the cache for the rest of an answer that was cut: by its very body, where it was paid in full."""
        standing = self.answers[event.work]
        return event.mark != "" and event.mark == self.marks[standing] and self.verdicts[event.work] is Verdict.PARTIAL

    def _book(self, event: AnyEvent) -> None:
        match event:
            case SessionOpened():
                self.cap, self.over, self.at_first = event.cap, False, self.committed
                self.most_waste, self.killed = event.waste_limit, set(self.flying)
            case Intent():
                self.flying[event.attempt] = event
                self.works[event.attempt] = event.work
                self.marks[event.attempt] = event.mark
                self.reserved += event.reserved
                self.verdicts.setdefault(event.work, Verdict.AGAIN)
            case Settled():
                self._settled(event)
            case Corrected():
                self._corrected(event)
            case TurnAdded():
                self.verdicts.setdefault(event.work, Verdict.AGAIN)
            case TurnRefused():
                self.verdicts[event.work] = Verdict.REFUSED
            case Retried():
                self.verdicts[event.work], self.lost_on[event.work] = Verdict.AGAIN, 0
            case _:
                pass

    def _settled(self, event: Settled) -> None:
        intent = self.flying.pop(event.attempt)
        if event.cost != 0:  # whether it is asked again is decided now, by this; a kill never counts against a work
            self.wasted_before[intent.work] = 0 if event.attempt in self.killed else self.wasted
        self.reserved -= intent.reserved
        answered = event.verdict in (Verdict.DONE, Verdict.PARTIAL)
        if event.cost is None:
            self.unknown[event.attempt] = intent
            self.held += intent.reserved
        else:
            self.over |= event.cost > intent.reserved
            self.settled += event.cost
            self.wasted += 0 if answered else event.cost
        self.costs[event.attempt] = event.cost or 0
        self.lost_on[intent.work] += 0 if answered else event.cost or 0
        if intent.work not in self.answers:
            self.verdicts[intent.work] = event.verdict
        self.tokens[event.attempt] = event.tokens
        standing = self.answers.get(intent.work)
        if answered and standing is not None:
            assert self.marks[standing] == intent.mark != "", "two answers of one work"
            assert event.cost is None, "a fetched answer costs what its generation did, which is not known yet"
            answered = event.verdict is Verdict.DONE or event.tokens >= self.tokens[standing]
            if answered:  # what was kept of it until now counts no more
                self.wasted += self.costs[standing]
                self.lost_on[intent.work] += self.costs[standing]
        if answered:
            self.answers[intent.work], self.verdicts[intent.work] = event.attempt, event.verdict
            self.finishes[intent.work] = event.finish if event.verdict is Verdict.DONE else None

    def _corrected(self, event: Corrected) -> None:
        work = self.works[event.attempt]
        intent = self.unknown.pop(event.attempt, None)
        if intent is not None:
            self.held -= intent.reserved
            self.over |= event.cost > intent.reserved
        change = event.cost - self.costs[event.attempt]
        self.costs[event.attempt] = event.cost
        self.settled += change
        waste = 0 if self.answers.get(work) == event.attempt else change
        self.wasted += waste
        self.lost_on[work] += waste
        if self.verdicts[work] is Verdict.UNKNOWN and all(other.work != work for other in self.unknown.values()):
            self.verdicts[work] = self.state.works[work].verdict or Verdict.AGAIN  # again, or failed: as waste allows
            self.wasted_before[work] = self.wasted


class MemoryLog:
    """A journal in memory: a write is durable a moment later, in order; from `fail_at` on, every one fails.

    `see` hears of every event, before it is noted; `written` hears how many there are, after. A dead one, of a process
    that was killed, takes nothing and promises nothing. `safe` are drafts that are durable.
    """

    def __init__(self, state: State, fail_at: int | None = None) -> None:
        self.state = state
        self.fail_at = fail_at
        self.failed_at: float | None = None
        self.dead = False
        self.late = self.acknowledged = 0
        self.events: list[AnyEvent] = []
        self.payloads: dict[int, bytes] = {}
        self.bodies: set[bytes] = set()
        self.drafts: dict[int, list[DraftText]] = {}
        self.safe: dict[int, list[DraftText]] = {}
        self.see: Callable[[AnyEvent], None] = lambda event: None
        self.written: Callable[[int], None] = lambda count: None
        self._prompts: dict[tuple[str, str], int] = {}
        self._ends: dict[int, int] = {}

    def write(self, event: AnyEvent, payload: Payload = None) -> Awaitable[None]:
        """Note an event; the books must be sound at every one."""
        if self.dead:
            return asyncio.get_running_loop().create_future()
        self.see(event)
        if isinstance(event, TurnAdded):
            answer = self.state.works[msgspec.structs.replace(event.work, turn=event.work.turn - 1)].answer
            assert self._ends[answer] <= self.acknowledged, "a turn before the answer that it follows is durable"
        self.late += self.failed_at is not None
        if self._fails():
            return self._later(None)
        raw = payload if isinstance(payload, bytes) else msgspec.json.encode(payload)
        self.note(event, raw)
        durable = self._later(lambda: self._acknowledge(event, raw))
        self.written(len(self.events))
        return durable

    def note(self, event: AnyEvent, raw: bytes) -> None:
        """An event and its payload stand in the journal."""
        self.events.append(event)
        self.payloads[len(self.events)] = raw
        if isinstance(event, Settled):
            self._ends[event.attempt] = len(self.events)
        elif isinstance(event, PromptAdded):
            self._prompts[event.dataset, event.prompt_id] = len(self.events)

    def draft(self, attempt: int, part: int, text: DraftText) -> Awaitable[None]:
        """Keep a draft."""
        if self.dead:
            return asyncio.get_running_loop().create_future()
        parts = self.drafts.setdefault(attempt, [])
        parts.append(text)
        assert len(parts) == part
        return self._later(None if self._fails() else lambda: self.safe.setdefault(attempt, []).append(text))

    def flush(self) -> Awaitable[None]:
        """All that was written before is durable a moment later."""
        return self._later(None if self._fails() else lambda: None)

    def prompt(self, dataset: str, prompt_id: str) -> Prompt:
        """A prompt by its name."""
        return msgspec.json.decode(self.payloads[self._prompts[dataset, prompt_id]], type=Prompt)

    def _fails(self) -> bool:
        return self.failed_at is not None or (self.fail_at is not None and len(self.events) >= self.fail_at)

    def _acknowledge(self, event: AnyEvent, raw: bytes) -> None:
        self.acknowledged += 1
        if isinstance(event, Intent):
            self.bodies.add(raw)

    def _later(self, durable: Callable[[], None] | None) -> Awaitable[None]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        future.add_done_callback(lambda done: None if done.cancelled() else done.exception())
        loop.call_later(COMMIT, self._end, future, durable)
        return future

    def _end(self, future: asyncio.Future[None], durable: Callable[[], None] | None) -> None:
        if self.dead:
            return
        if durable is not None:
            durable()
        elif self.failed_at is None:
            self.failed_at = now()
        if future.done():
            return
        if durable is None:
            future.set_exception(StorageError("the disk is full: free some space"))
        else:
            future.set_result(None)


def sse(*chunks: Any, done: bool = True) -> list[bytes]:
    """Events of a stream."""
    return [b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks] + [b"data: [DONE]\n\n"] * done


def delta(usage: dict[str, Any] | None = None, finish: str | None = None, **texts: Any) -> dict[str, Any]:
    """A chunk of an answer."""
    chunk: dict[str, Any] = {
        "id": "gen-1",
        "provider": "Chutes",
        "choices": [{"delta": texts, "finish_reason": finish}],
    }
    return chunk if usage is None else chunk | {"usage": usage}


def reply(*parts: bytes, status: int = 200, headers: Mapping[str, str] | None = None, **ending: Any) -> Reply:
    """A scripted reply: each part `every` seconds after the one before; `end` says how it ends."""
    every, end = ending.get("every", 0.1), ending.get("end", Action.END)

    def steps() -> Iterator[tuple[float, bytes | Action]]:
        for part in parts:
            yield every, part
        yield 0.0, end

    return Reply(status, steps(), headers=headers)


def unreachable(*_: Any) -> Reply:
    """No connection."""
    raise NotSentError("connection refused")


USAGE = {"prompt_tokens": 12, "cost": 0.0001, "completion_tokens_details": {"reasoning_tokens": 9}}
ENDPOINTS = [
    {"provider_name": name, "tag": f"{name.lower()}/int4", "quantization": "int4", "status": 0,
     "pricing": {"prompt": "0.0000005", "completion": price}}
    for name, price in (("Chutes", "0.000002"), ("Inceptron", "0.0000022"))
]  # fmt: skip


def script(answers: list[Callable[[], Reply]]) -> Handler:
    """Answers chat requests in order (the last one for ever), the endpoint list, and look-ups."""
    asked = 0

    def handle(method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        nonlocal asked
        assert headers["authorization"] == "Bearer sk-or-v1-test"
        if "/endpoints" in target:
            return reply(json.dumps({"data": {"endpoints": ENDPOINTS}}).encode())
        if method == "GET":
            return reply(b'{"data": []}')
        asked += 1
        return answers[min(asked, len(answers)) - 1]()

    return handle


def good(tokens: int = 90, text: str = " well") -> Reply:
    """A whole answer, streamed."""
    usage = USAGE | {"completion_tokens": tokens}
    parts = [delta(reasoning=" Hm"), *[delta(content=text)] * tokens, delta(finish="stop"), delta(usage, "stop")]
    return reply(*sse(*parts), headers={"X-Generation-Id": "gen-1"}, every=0.01)


def failed(status: int, headers: Mapping[str, str] | None = None, **error: Any) -> Callable[[], Reply]:
    """An error envelope."""
    return lambda: reply(json.dumps({"error": {"code": status, **error}}).encode(), status=status, headers=headers)
