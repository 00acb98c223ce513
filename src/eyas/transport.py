"""The run's only way out: a plain HTTP request in, status, headers and a byte stream out.

It never re-sends a request, follows no redirect, knows no proxy, and closes a connection whose response was not read to
its end. The simulator and the tests take its place.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from types import TracebackType
from typing import NamedTuple, Protocol, Self
from urllib.parse import urlsplit

from eyas.channel import Channel, Turns
from eyas.connection import Connection, Deadlines, Sink, words
from eyas.errors import BrokenError, NotSentError

__all__ = ["Deadlines", "HttpTransport", "Request", "Response", "Sink", "Transport", "fetch"]

IDLE = 15.0
"""Seconds after which an idle connection is not used again: the server may be closing it."""
NAMES = 300.0
"""Seconds for which the addresses of a name are kept."""
MOST_FETCHED = 32 * 1024 * 1024
"""A body that is read whole at once may have so many bytes: lists of endpoints and costs of generations are far smaller."""
SHORTEST_KEY = 12
WATCH = 1.0
"""Seconds between two looks at who has fallen silent."""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request. `headers` hold the key: they are never printed (repr leaves them out)."""

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False, default_factory=dict[str, str])
    body: bytes = b""


class Response(Protocol):
    """Status, headers (names in lower case) and the body as it comes."""

    @property
    def status(self) -> int:
        """HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Header fields, names in lower case."""
        ...

    async def read(self, sink: Sink) -> None:
        """Give the body to `sink` as it comes, to its end; raises BrokenError if it breaks off."""
        ...

    def enough(self, seconds: float) -> None:
        """The reader has what it needs: end the body, as if it had ended itself, if it goes on for so long."""
        ...


class Transport(Protocol):
    """The seam."""

    def open(self, request: Request, deadlines: Deadlines) -> AbstractAsyncContextManager[Response]:
        """Send a request; leaving the context ends it, read or not. Raises NotSentError or BrokenError."""
        ...


class Address(NamedTuple):
    """Where a request goes: scheme, host, port, and the path with its query."""

    tls: bool
    host: str
    port: int
    path: str


class HttpTransport:
    """Connections by address, the last used first. Use as an async context manager."""

    def __init__(self) -> None:
        self._idle: dict[tuple[bool, str, int], list[Connection]] = {}
        self._busy: set[Connection] = set()
        self._names: dict[str, tuple[float, list[str]]] = {}
        self._turns: Turns | None = None
        self._tls = ssl.create_default_context()
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0

    async def __aenter__(self) -> Self:
        self._watch()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for connection in (*self._busy, *(each for group in self._idle.values() for each in group)):
            connection.close()
        self._idle.clear()
        if self._turns is not None:
            self._turns.close()
            self._turns = None

    @contextlib.asynccontextmanager
    async def open(self, request: Request, deadlines: Deadlines) -> AsyncGenerator[Response]:
        """Send a request; leaving the context ends it, read or not.

        Raises:
            NotSentError: no connection could be made.
            BrokenError: the connection broke or timed out before the headers.
        """
        address = _address(request.url)
        connection = self._reuse(address) or await self._connect(address, deadlines)
        self._busy.add(connection)
        try:
            connection.send(_head(request, address) + request.body, deadlines, _secret(request))
            try:
                async with asyncio.timeout(deadlines.headers):
                    await connection.head
            except TimeoutError:
                raise BrokenError(f"no response headers after {deadlines.headers:g} s") from None
            yield connection
        finally:
            self._busy.discard(connection)
            self._give_back(address, connection)

    def _reuse(self, address: Address) -> Connection | None:
        group = self._idle.get(address[:3], [])
        oldest = asyncio.get_running_loop().time() - IDLE
        while group:
            connection = group.pop()
            connection.look()
            if not connection.closed and connection.idle_since > oldest:
                return connection
            connection.close()
        return None

    async def _connect(self, address: Address, deadlines: Deadlines) -> Connection:
        loop = asyncio.get_running_loop()
        turns = self._turns = self._turns or Turns(loop)
        tls = self._tls if address.tls else None
        failure: Exception = OSError("the name has no address")
        try:
            async with asyncio.timeout(deadlines.connect):
                for ip in await self._resolve(address):
                    try:
                        channel = await Channel.open(turns, ip, address.port, tls, address.host)
                    except OSError as error:
                        failure = error  # the next address may answer
                    else:
                        return Connection(loop, channel)
        except (OSError, ValueError) as error:
            failure = error
        raise NotSentError(f"no connection to {address.host}:{address.port}: {words(failure)}")

    async def _resolve(self, address: Address) -> list[str]:
        """The addresses of a name, asked for once in five minutes: not once for each of two thousand connections."""
        loop = asyncio.get_running_loop()
        until, found = self._names.get(address.host, (0.0, []))
        if loop.time() >= until:
            answers = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
            found = list(dict.fromkeys(str(answer[4][0]) for answer in answers))
            self._names[address.host] = (loop.time() + NAMES, found)
        return found

    def _give_back(self, address: Address, connection: Connection) -> None:
        whole = connection.done.done() and not connection.done.cancelled() and connection.done.exception() is None
        if connection.closed or not whole:
            connection.close()
            return
        connection.idle_since = asyncio.get_running_loop().time()
        self._idle.setdefault(address[:3], []).append(connection)

    def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        lag = max(0.0, now - self._due) if self._due else 0.0
        for connection in tuple(self._busy):
            connection.watch(now, lag)
        self._due = now + WATCH
        self._timer = loop.call_later(WATCH, self._watch)


@lru_cache(maxsize=1024)
def _address(url: str) -> Address:
    parts = urlsplit(url)
    tls = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Address(tls, parts.hostname or "", parts.port or (443 if tls else 80), path)


def _head(request: Request, address: Address) -> bytes:
    # Looked at first: an error that is raised further down would have the key among its locals.
    if any(
        "\r" in text or "\n" in text
        for text in (request.method, address.host, address.path, *chain(*request.headers.items()))
    ):
        raise NotSentError("a header or the address holds a line break: check [target] extra_headers and base_url")
    host = f"[{address.host}]" if ":" in address.host else address.host
    port = "" if address.port == (443 if address.tls else 80) else f":{address.port}"
    fields = {
        "Host": host + port,
        "User-Agent": "eyas",
        "Accept": "*/*",
        "Accept-Encoding": "identity",
        **request.headers,
    }
    if request.body or request.method == "POST":
        fields["Content-Length"] = str(len(request.body))
    lines = [f"{request.method} {address.path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def _secret(request: Request) -> bytes:
    """The key that a request carries; a word so short that it may stand in any text is none."""
    key = request.headers.get("Authorization", "").rpartition(" ")[2].encode("latin-1", "replace")
    return key if len(key) >= SHORTEST_KEY else b""


async def fetch(transport: Transport, request: Request, deadlines: Deadlines) -> tuple[int, Mapping[str, str], bytes]:
    """Send a small request and read its whole body: (status, headers, body).

    Raises:
        NotSentError: no connection could be made.
        BrokenError: the response broke off, or its body is too large.
    """
    body = bytearray()
    async with transport.open(request, deadlines) as response:

        def take(data: bytes) -> None:
            body.extend(data)
            if len(body) > MOST_FETCHED:
                response.enough(0)

        await response.read(take)
        if len(body) > MOST_FETCHED:
            raise BrokenError(f"the body passed {MOST_FETCHED} bytes")
        return response.status, dict(response.headers), bytes(body)
