"""The simulator's HTTP server: loopback only, one timer for all streams, a client that goes away is noticed at once."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import math
import os
import signal
import socket
import struct
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import cast

import httptools
import msgspec

from eyas.sim.process import gone, more_files
from eyas.sim.reply import Action, Reply
from eyas.sim.site import Site

PATH = "/api/v1"
"""How the base URL of an OpenRouter-compatible API ends."""

_TICK = 0.005
_MOST_BODY = 64 * 1024 * 1024
_PHRASES = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found",
            422: "Unprocessable Entity", 429: "Too Many Requests", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout"}  # fmt: skip


class _Timer:
    """Advances every connection that is due, a few milliseconds coarse: one wake-up serves them all."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._heap: list[tuple[float, int, _Connection]] = []
        self._numbers = itertools.count()
        self._armed: asyncio.TimerHandle | None = None
        self._when = 0.0  # uvloop's handle of a moment that has come does not tell it

    def at(self, due: float, connection: _Connection) -> None:
        heapq.heappush(self._heap, (due, next(self._numbers), connection))
        if self._armed is None or due < self._when - _TICK:
            self._arm()

    def _arm(self) -> None:
        if self._armed is not None:
            self._armed.cancel()
        self._when = max(self._heap[0][0], self._loop.time() + _TICK)
        self._armed = self._loop.call_at(self._when, self._tick)

    def _tick(self) -> None:
        self._armed, heap, now = None, self._heap, self._loop.time()
        again = list[tuple[float, int, _Connection]]()
        while heap and heap[0][0] <= now:
            connection = heapq.heappop(heap)[2]
            due = connection.advance(now)
            if due is not None:
                again.append((due, next(self._numbers), connection))
        for entry in again:
            heapq.heappush(heap, entry)
        if heap and self._armed is None:
            self._arm()


class _Connection(asyncio.Protocol):
    """One keep-alive connection; its requests are answered one after the other."""

    def __init__(self, site: Site, timer: _Timer, connections: set[_Connection]) -> None:
        self._site = site
        self._timer = timer
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._url, self._body = b"", bytearray()
        self._headers: dict[str, str] = {}
        self._waiting: deque[tuple[str, str, dict[str, str], bytes]] = deque()
        self._reply: Reply | None = None
        self._pending: bytes | Action | None = None
        self._due = 0.0
        self._paused = self._held = self._chunked = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._transport = None
        self._connections.discard(self)
        self._waiting.clear()
        reply, self._reply = self._reply, None
        if reply is not None:
            reply.cancelled()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.abort()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        if self._held:
            self._held = False
            self._timer.at(self._loop.time(), self)

    def on_message_begin(self) -> None:
        self._url, self._body, self._headers = b"", bytearray(), {}

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._headers.get("expect", "").lower() == "100-continue" and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._body += body
        if len(self._body) > _MOST_BODY:
            self.abort()

    def on_message_complete(self) -> None:
        method, url = self._parser.get_method().decode("latin-1"), self._url.decode("latin-1")
        self._waiting.append((method, url, self._headers, bytes(self._body)))
        if self._reply is None:
            self._next()

    def _next(self) -> None:
        if self._transport is None or not self._waiting:
            return
        self._reply = reply = self._site.handle(*self._waiting.popleft())
        reply.on_wake(self._resume)
        self._due, self._pending = self._loop.time() + reply.wait, _head(reply)
        self._chunked = False
        if reply.wait > 0:
            if reply.wait < math.inf:
                self._timer.at(self._due, self)
            return
        due = self.advance(self._loop.time())
        if due is not None:
            self._timer.at(due, self)

    def _resume(self, after: float) -> None:
        """Go on with what waited."""
        self._due = self._loop.time() + after
        if self._pending is Action.WAIT:
            self._pending = b""
        self._timer.at(self._due, self)

    def advance(self, now: float) -> float | None:
        """Play what is due; returns when the next step is, or None if there is none."""
        if self._paused:
            self._held = True
            return None
        reply, out = self._reply, list[bytes]()
        if reply is None:
            return None
        while self._due <= now:
            pending = self._pending
            if isinstance(pending, Action):
                self._stop(pending, out, reply)
                return None
            if pending:
                out.append(b"%x\r\n%b\r\n" % (len(pending), pending) if self._chunked else pending)
            self._chunked = reply.length is None
            delay, self._pending = next(reply.steps)
            self._due += delay
        self._write(out)
        return self._due

    def _write(self, out: list[bytes]) -> None:
        if out and self._transport is not None:
            self._transport.write(out[0] if len(out) == 1 else b"".join(out))

    def _stop(self, action: Action, out: list[bytes], reply: Reply) -> None:
        if action is Action.END and self._chunked:
            out.append(b"0\r\n\r\n")
        self._write(out)
        if action in (Action.HANG, Action.WAIT):
            return
        self._reply = None
        reply.delivered()
        if action is Action.RESET:
            self.abort()
        else:
            self._loop.call_soon(self._next)

    def abort(self) -> None:
        """Reset the connection: what was not read yet may be lost, as on a real network."""
        if self._transport is not None:
            raw: socket.socket | None = self._transport.get_extra_info("socket")
            if raw is not None:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()


def _head(reply: Reply) -> bytes | Action:
    if not reply.status:
        return Action.RESET
    size = "Transfer-Encoding: chunked" if reply.length is None else f"Content-Length: {reply.length}"
    lines = [f"HTTP/1.1 {reply.status} {_PHRASES.get(reply.status, 'Status')}", size, "Server: eyas-sim"]
    lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


class Server:
    """A running simulator. `port` is bound on 127.0.0.1."""

    def __init__(self, server: asyncio.Server, connections: set[_Connection], path: str) -> None:
        self._server = server
        self._path = path
        self._connections = connections
        self.port: int = server.sockets[0].getsockname()[1]

    @property
    def base_url(self) -> str:
        """What a client takes as its base URL."""
        return f"http://127.0.0.1:{self.port}{self._path}"

    async def close(self) -> None:
        """Stop listening and drop every connection."""
        self._server.close()
        for connection in list(self._connections):
            connection.abort()
        await asyncio.sleep(0)
        await self._server.wait_closed()


async def serve(site: Site, port: int = 0, path: str = PATH) -> Server:
    """Serve a site on 127.0.0.1; port 0 takes a free one, `path` is how its base URL ends.

    Raises:
        OSError: the port is taken.
    """
    loop = asyncio.get_running_loop()
    timer, connections = _Timer(loop), set[_Connection]()
    server = await loop.create_server(lambda: _Connection(site, timer, connections), "127.0.0.1", port, backlog=4096)
    return Server(server, connections, path)


def run_forever(
    site: Site,
    *,
    port: int = 0,
    parent: int | None = None,
    max_seconds: float | None = None,
    books: Path | None = None,
    path: str = PATH,
) -> None:
    """Serve until SIGTERM, SIGINT, the end of process `parent`, or `max_seconds`; the base URL is printed when ready.

    `books` is a file that the books are written to at the end, ids included.

    Raises:
        OSError: the port is taken, or the books cannot be written.
    """
    try:
        import uvloop  # noqa: PLC0415  # not there on Windows

        factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    except ImportError:
        factory = asyncio.new_event_loop
    more_files()
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(_until_told(site, (port, path), parent, max_seconds))
    if books is not None:
        books.write_bytes(msgspec.json.encode(site.books.to_json(ids=True)))


async def _until_told(site: Site, place: tuple[int, str], parent: int | None, max_seconds: float | None) -> None:
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    server = await serve(site, *place)
    print(server.base_url, flush=True)
    end = None if max_seconds is None else loop.time() + max_seconds
    first = os.getppid()
    while not told.is_set() and (end is None or loop.time() < end) and not gone(parent, first):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(told.wait(), 0.5 if end is None else max(0.0, min(0.5, end - loop.time())))
    await server.close()
