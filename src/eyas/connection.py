"""One HTTP/1.1 connection: a channel and httptools (llhttp).

Bytes go from the socket through the parser to the reader's sink with no task woken between, all pieces of a turn at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import httptools

from eyas.channel import Channel
from eyas.errors import BrokenError

MOST_BODY = 256 * 1024 * 1024
"""A response body above this many bytes is cut off as garbage."""
MOST_ERROR = 1024 * 1024
"""The same for a response with a status other than 200: its body is kept whole until it is read."""
FIRST = 1024
"""Bytes of a body that are read as soon as they come, so that its first token has its time; a stream's further ones may wait."""
MOST_HEAD = 1024 * 1024
"""The same for what comes before a body."""

VEILED = b"[the key]"

Sink = Callable[[bytes], None]
"""Takes the bytes of a body as they come."""


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds: to connect, to the response's headers, between two bytes of the body, and in all."""

    connect: float = 30.0
    headers: float = 300.0
    silence: float = 240.0
    total: float = 7200.0


class Veil:
    """Takes a secret out of a stream of bytes, cut anywhere: a server that says our key again does not get it written."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._held = b""

    def take(self, data: bytes) -> bytes:
        """The bytes without the secret; what may be its beginning is held back."""
        if not self._secret:
            return data
        data = (self._held + data).replace(self._secret, VEILED)
        held = 0
        if data[-1:] in self._secret:  # a chunk of a stream ends its line: nearly never
            held = next((n for n in range(min(len(self._secret) - 1, len(data)), 0, -1) if self._begins(data, n)), 0)
        self._held = data[len(data) - held :]
        return data[: len(data) - held]

    def rest(self) -> bytes:
        """What was held back, at the end."""
        held, self._held = self._held, b""
        return held

    def _begins(self, data: bytes, length: int) -> bool:
        return data.endswith(self._secret[:length])


class Connection:
    """One connection, one response at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, channel: Channel) -> None:
        self._loop = loop
        self._channel = channel
        self.closed = False
        self.idle_since = 0.0
        self._begin(Deadlines())
        self.done.set_result(None)
        channel.start(self)

    def _begin(self, deadlines: Deadlines, secret: bytes = b"") -> None:
        self.deadlines = deadlines
        self.veil = Veil(secret)
        self.headers: dict[str, str] = {}
        self.status = 0
        self.head: asyncio.Future[None] = self._loop.create_future()
        self.done: asyncio.Future[None] = self._loop.create_future()
        self.done.add_done_callback(_seen)
        self.sent = self.last = self._loop.time()
        self.size = self.head_size = 0
        self.sink: Sink | None = None
        self.early: list[bytes] = []
        self._came: list[bytes] = []
        self._whole = False
        self.on_body = self._came.append  # no frame of ours for each piece
        self.parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)

    def send(self, message: bytes, deadlines: Deadlines, secret: bytes = b"") -> None:
        """Write one request; its answer comes without the secret."""
        self._begin(deadlines, secret)
        if self.closed:
            self.fail("the connection was closed before the request")
        else:
            self._channel.hurry()
            self._channel.write(message)

    def look(self) -> None:
        """See whether the other side has closed it meanwhile."""
        self._channel.read()

    def data_received(self, data: memoryview) -> None:
        """Bytes came; httptools calls the on_ methods."""
        if self.done.done():  # nobody has asked for it
            self.close()
            return
        self.last = self._loop.time()
        if not self.head.done():
            self.head_size += len(data)
            if self.head_size > MOST_HEAD:
                self.fail(f"the response headers passed {MOST_HEAD} bytes")
                return
        why = self._parse(data)
        self._pass_on()
        if why or self.size > (MOST_BODY if self.status == 200 else MOST_ERROR):
            self.fail(why or f"the body passed {MOST_BODY if self.status == 200 else MOST_ERROR} bytes")
        elif self._whole:
            self.finish()

    def _parse(self, data: memoryview) -> str:
        """Why it is no HTTP; empty if it is."""
        try:
            if self.parser is not None:
                self.parser.feed_data(data)
        except httptools.HttpParserError as error:
            return f"not HTTP: {type(error).__name__}"
        except httptools.HttpParserUpgrade:
            return "the server wants another protocol"
        return ""

    def connection_lost(self, error: Exception | None) -> None:
        """The socket is closed: the end of a body without a length, or a break."""
        self.closed = True
        framed = "content-length" in self.headers or "chunked" in self.headers.get("transfer-encoding", "").lower()
        if error is None and self.head.done() and not framed:
            self.finish()
        else:
            self.fail(words(error) if error is not None else "the connection was closed before the response ended")

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header field."""
        value = self.veil.take(value) + self.veil.rest()
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """The headers are whole; an informational response is waited out."""
        self.status = self.parser.get_status_code() if self.parser is not None else 0
        if self.status >= 200 and not self.head.done():
            self.head.set_result(None)

    def _pass_on(self) -> None:
        """Give what came in this turn to the reader, in one piece and without the secret."""
        if self._came:
            came = self._came[0] if len(self._came) == 1 else b"".join(self._came)
            self._came.clear()
            self.size += len(came)
            if self.size > FIRST:
                self._channel.calm()
            self._pass(self.veil.take(came))

    def _pass(self, data: bytes) -> None:
        if data and self.sink is not None:
            self.sink(data)
        elif data:
            self.early.append(data)

    def on_message_complete(self) -> None:
        """The response is whole."""
        if self.status < 200:
            self.headers = {}
            return
        self.closed = self.closed or self.parser is None or not self.parser.should_keep_alive()
        self._whole = True

    def finish(self) -> None:
        """The body ended."""
        if not self.done.done():
            self._pass(self.veil.rest())
            self.done.set_result(None)

    def fail(self, why: str) -> None:
        """The response will not come to its end."""
        for future in (self.head, self.done):
            if not future.done():
                future.set_exception(BrokenError(why))
        self.close()

    async def read(self, sink: Sink) -> None:
        """Give the body to `sink` as it comes."""
        self.sink = sink
        early, self.early = self.early, []
        for data in early:
            sink(data)
        await asyncio.shield(self.done)

    def enough(self, seconds: float) -> None:
        """End the body if it goes on for so long."""
        self._loop.call_later(seconds, self._end, self.done)

    def _end(self, done: asyncio.Future[None]) -> None:
        if not done.done():
            done.set_result(None)
            self.close()

    def watch(self, now: float, lag: float) -> None:
        """End a response that fell silent or ran out of time; the loop's own lag is not the server's silence."""
        if self.done.done():
            return
        if now - self.last - lag > self.deadlines.silence:
            self._channel.read()  # what came may still wait for its turn
        if self.done.done():
            return
        if now - self.last - lag > self.deadlines.silence:
            self.fail(f"silent for {self.deadlines.silence:g} s")
        elif now - self.sent - lag > self.deadlines.total:
            self.fail(f"not done after {self.deadlines.total:g} s")

    def close(self) -> None:
        """Close at once."""
        self.closed = True
        self.parser = None  # it names this connection, and this names it
        self._channel.close()


def words(error: BaseException) -> str:
    """An error of the network in words; it never holds a request's headers."""
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _seen(future: asyncio.Future[None]) -> None:
    if not future.cancelled():
        future.exception()
