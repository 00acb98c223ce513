"""A whole run without waiting, sockets or disk: a virtual clock, a transport that plays replies, a journal in memory."""

from __future__ import annotations

import asyncio
import contextlib
import json
import selectors
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from eyas.errors import BrokenError, NotSentError, StorageError
from eyas.events import AnyEvent, Event, Intent
from eyas.journal import Payload
from eyas.sim import Action, Reply
from eyas.state import State
from eyas.transport import Deadlines, Request, Response
from eyas.types import DraftText, Prompt

T = TypeVar("T")
Handler = Callable[[str, str, Mapping[str, str], bytes], Reply]
COMMIT = 0.002
"""Virtual seconds that the journal takes for a commit."""


class _Idle(selectors.DefaultSelector):
    """Where a real loop would sleep, the clock jumps."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready; nothing ever is but the loop's own pipe."""
        if timeout is None:
            raise RuntimeError("deadlock: the run waits for something that will never happen")
        self.now += max(timeout, 0.0)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only when nothing else is to do."""

    def __init__(self) -> None:
        self._idle = _Idle()
        super().__init__(self._idle)

    def time(self) -> float:
        """Virtual seconds."""
        return self._idle.now + 1_000.0


def play(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main())


def now() -> float:
    """Virtual seconds of the running loop."""
    return asyncio.get_running_loop().time()


class PlayedResponse:
    """Status, headers, and steps played at their times."""

    def __init__(self, reply: Reply, silence: float) -> None:
        self.status = reply.status
        self.headers = {name.lower(): value for name, value in reply.headers.items()}
        self._silence = silence
        self._reply: Reply | None = reply
        self._until = float("inf")

    async def read(self, sink: Callable[[bytes], None]) -> None:
        """Play the body at its times."""
        reply = self._reply
        assert reply is not None
        for delay, step in reply.steps:
            silent = step is Action.HANG or delay > self._silence
            wait = min(self._silence if silent else delay, self._until - now())
            await asyncio.sleep(wait)
            if now() >= self._until:
                return
            if silent:
                raise BrokenError("silence")
            if isinstance(step, Action):
                self._reply = None
                reply.delivered()
                if step is Action.RESET:
                    raise BrokenError("reset")
                return
            sink(step)

    def enough(self, seconds: float) -> None:
        """The reader needs no more: the body ends by then."""
        self._until = min(self._until, now() + seconds)

    def leave(self) -> None:
        """The client goes away."""
        if self._reply is not None:
            self._reply.cancelled()


class FakeTransport:
    """Plays what a handler (a simulated world, or a script) answers; keeps what was sent and when."""

    def __init__(self, handle: Handler, log: MemoryLog | None = None) -> None:
        self.handle = handle
        self.log = log
        self.sent: list[tuple[float, bytes]] = []
        self.open_now = self.peak = self.gets = 0

    @contextlib.asynccontextmanager
    async def open(self, request: Request, deadlines: Deadlines) -> AsyncGenerator[Response]:
        """Send: a body leaves only when the journal holds it."""
        chat = request.method == "POST"
        if chat:
            assert self.log is None or request.body in self.log.bodies, "sent before its intent was durable"
            self.sent.append((now(), request.body))
        self.gets += not chat
        url = urlsplit(request.url)
        target = url.path + (f"?{url.query}" if url.query else "")
        self.open_now += chat
        self.peak = max(self.peak, self.open_now)
        try:
            headers = {name.lower(): value for name, value in request.headers.items()}
            reply = self.handle(request.method, target, headers, request.body)
            async with self._playing(reply, deadlines) as response:
                yield response
        finally:
            self.open_now -= chat

    @contextlib.asynccontextmanager
    async def _playing(self, reply: Reply, deadlines: Deadlines) -> AsyncGenerator[Response]:
        response = PlayedResponse(reply, deadlines.silence)
        try:
            await asyncio.sleep(reply.wait)
            if not reply.status:
                response._reply = None
                reply.delivered()
                raise BrokenError("reset before the headers")
            yield response
        finally:
            response.leave()


class MemoryLog:
    """A journal in memory: a write is durable a moment later, in order; from `fail_at` on, every one fails."""

    def __init__(self, state: State, fail_at: int | None = None) -> None:
        self.state = state
        self.fail_at = fail_at
        self.failed_at: float | None = None
        self.late = self.acknowledged = 0
        self.events: list[AnyEvent] = []
        self.payloads: dict[int, bytes] = {}
        self.bodies: set[bytes] = set()
        self.drafts: dict[int, list[DraftText]] = {}

    def write(self, event: AnyEvent, payload: Payload = None) -> Awaitable[None]:
        """Note an event; the books must be sound at every one."""
        assert self.state.money.cap is None or self.state.money.committed <= self.state.money.cap, "I1"
        self.late += self.failed_at is not None
        if self.fail_at is not None and len(self.events) >= self.fail_at:
            return self._later(None, b"")
        self.events.append(event)
        raw = payload if isinstance(payload, bytes) else msgspec.json.encode(payload)
        self.payloads[len(self.events)] = raw
        return self._later(event, raw)

    def draft(self, attempt: int, part: int, text: DraftText) -> Awaitable[None]:
        """Keep a draft."""
        parts = self.drafts.setdefault(attempt, [])
        parts.append(text)
        assert len(parts) == part
        return self._later(None if self.failed_at is not None else text, b"")

    def flush(self) -> Awaitable[None]:
        """All that was written before is durable a moment later."""
        return (
            self._later(None, b"")
            if self.fail_at is not None and len(self.events) >= self.fail_at
            else self._later(DraftText(), b"")
        )

    def prompt(self, dataset: str, prompt_id: str) -> Prompt:
        """A prompt by its name."""
        prompts = (
            msgspec.json.decode(raw, type=Prompt) for raw in self.payloads.values() if b'"messages"' in raw[:120]
        )
        return next(each for each in prompts if (each.dataset, each.id) == (dataset, prompt_id))

    def _later(self, what: Any, raw: bytes) -> Awaitable[None]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        future.add_done_callback(lambda done: None if done.cancelled() else done.exception())
        loop.call_later(COMMIT, self._durable, future, what, raw)
        return future

    def _durable(self, future: asyncio.Future[None], what: Any, raw: bytes) -> None:
        self.acknowledged += isinstance(what, Event)
        if isinstance(what, Intent):
            self.bodies.add(raw)
        if what is None and self.failed_at is None:
            self.failed_at = now()
        if future.done():
            return
        if what is None:
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
