"""The transport that plays replies on the running loop's clock: no sockets, no waiting on a virtual one.

It stands where `transport.HttpTransport` stands in a real run. It sleeps, as a network would; nothing else here does.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncGenerator, Callable, Mapping
from urllib.parse import urlsplit

from eyas.errors import BrokenError
from eyas.sim.clock import now
from eyas.sim.reply import Action, Reply
from eyas.transport import Deadlines, Request, Response

Handler = Callable[[str, str, Mapping[str, str], bytes], Reply]
"""Answers (method, path with query, headers with names in lower case, body): a world's `handle`, or a script."""

GRAIN = 0.03
"""Seconds by which a piece may come early: waiting for each one would cost more than all else."""


class PlayedResponse:
    """Status, headers, and steps played at their times. `silence`: seconds without a step after which it breaks off."""

    def __init__(self, reply: Reply, silence: float) -> None:
        self.status = reply.status
        self.headers = {name.lower(): value for name, value in reply.headers.items()}
        self._silence = silence
        self._reply: Reply | None = reply
        self._until = math.inf
        self._woken = asyncio.Event()
        self._after = 0.0
        reply.on_wake(self._wake)

    def _wake(self, after: float) -> None:
        self._after = after
        self._woken.set()

    async def begin(self) -> None:
        """Wait for the time of the head."""
        if self._reply is not None and self._reply.wait < math.inf:
            await asyncio.sleep(self._reply.wait)
        else:
            await self._turn(math.inf)

    async def _turn(self, most: float) -> None:
        """Wait to be woken.

        Raises:
            BrokenError: that took longer than so many seconds.
        """
        try:
            async with asyncio.timeout(None if most == math.inf else most):
                await self._woken.wait()
        except TimeoutError:
            raise BrokenError("silence") from None
        self._woken.clear()
        await asyncio.sleep(self._after)

    async def read(self, sink: Callable[[bytes], None]) -> None:
        """Play the body at its times.

        Raises:
            BrokenError: it was reset, or fell silent.
        """
        reply = self._reply
        assert reply is not None  # noqa: S101  # a body is read once
        ahead = 0.0
        for delay, step in reply.steps:
            if step is Action.WAIT:
                await self._turn(self._silence)
                continue
            silent = step is Action.HANG or delay > self._silence
            ahead += self._silence if silent else delay
            wait = min(ahead, self._until - now())
            if wait > GRAIN or (wait > 0 and isinstance(step, Action)):
                await asyncio.sleep(wait)
                ahead = 0.0
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

    def close(self) -> None:
        """The client goes away, if the body has not ended."""
        if self._reply is not None:
            self._reply.cancelled()

    def lost(self) -> None:
        """The connection was reset before the headers."""
        reply, self._reply = self._reply, None
        if reply is not None:
            reply.delivered()


class PlayedTransport:
    """Plays what a handler answers. `open_now` and `peak` count chat requests."""

    def __init__(self, handle: Handler) -> None:
        self.handle = handle
        self.open_now = self.peak = 0

    async def sending(self, request: Request) -> None:
        """Hear of a request before it leaves; for whoever watches."""

    def answerer(self, request: Request) -> Handler:
        """Who answers a request; for whoever plays several servers.

        Raises:
            NotSentError: nobody listens there.
        """
        del request
        return self.handle

    @contextlib.asynccontextmanager
    async def open(self, request: Request, deadlines: Deadlines) -> AsyncGenerator[Response]:
        """Send a request; leaving the context ends it, read or not.

        Raises:
            BrokenError: the connection was reset before the headers.
        """
        await self.sending(request)
        url = urlsplit(request.url)
        target = url.path + (f"?{url.query}" if url.query else "")
        chat = request.method == "POST"
        self.open_now += chat
        self.peak = max(self.peak, self.open_now)
        try:
            headers = {name.lower(): value for name, value in request.headers.items()}
            reply = self.answerer(request)(request.method, target, headers, request.body)
            response = PlayedResponse(reply, deadlines.silence)
            try:
                await response.begin()
                if not reply.status:
                    response.lost()
                    raise BrokenError("reset before the headers")
                yield response
            finally:
                response.close()
        finally:
            self.open_now -= chat
