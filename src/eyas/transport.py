"""The run's only way out: a plain HTTP request in, status, headers and a byte stream out.

aiohttp behind one method: HTTP/1.1, no limit of its own (the engine counts), no redirects, no retries, no proxies from
the environment. The simulator and the tests take its place.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

import aiohttp

from eyas.errors import EyasError

MOST_BODY = 256 * 1024 * 1024
"""A response body above this many bytes is cut off as garbage."""


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds: to connect, to the response's headers, between two bytes of the body, and in all."""

    connect: float = 30.0
    headers: float = 300.0
    silence: float = 240.0
    total: float = 7200.0


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request. `headers` hold the key: they are never printed (repr leaves them out)."""

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False, default_factory=dict[str, str])
    body: bytes = b""


class NotSentError(EyasError):
    """No connection: the request provably did not start."""


class BrokenError(EyasError):
    """The connection broke, fell silent or ran out of time after the request was sent."""


class Response(Protocol):
    """Status, headers (lower-case names) and the body as it comes."""

    @property
    def status(self) -> int:
        """HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Header fields, names in lower case."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The body's bytes as they come; raises BrokenError if it breaks off."""
        ...


class Transport(Protocol):
    """The seam."""

    def open(self, request: Request, deadlines: Deadlines) -> AbstractAsyncContextManager[Response]:
        """Send a request; leaving the context ends it, read or not. Raises NotSentError or BrokenError."""
        ...


class _Response:
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers: dict[str, str] = {name.lower(): value for name, value in response.headers.items()}

    async def chunks(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for chunk in self._response.content.iter_any():
                size += len(chunk)
                if size > MOST_BODY:
                    raise BrokenError(f"the body passed {MOST_BODY} bytes")
                yield chunk
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise BrokenError(_words(error)) from None


class HttpTransport:
    """aiohttp. Use as an async context manager."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        context = ssl.create_default_context()
        connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=3600, ssl=context, keepalive_timeout=30)
        self._session = aiohttp.ClientSession(
            connector=connector,
            auto_decompress=False,
            trust_env=False,
            raise_for_status=False,
            skip_auto_headers=("User-Agent",),
            read_bufsize=2**18,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    @contextlib.asynccontextmanager
    async def open(self, request: Request, deadlines: Deadlines) -> AsyncGenerator[Response]:
        """Send a request; leaving the context ends it, read or not.

        Raises:
            NotSentError: no connection could be made.
            BrokenError: the connection broke or timed out before the headers.
        """
        if self._session is None:
            raise NotSentError("the transport is not open")
        timeout = aiohttp.ClientTimeout(
            total=deadlines.total, sock_connect=deadlines.connect, sock_read=max(deadlines.headers, deadlines.silence)
        )
        headers = {"User-Agent": "eyas", "Accept-Encoding": "identity", **request.headers}
        try:
            response = await self._session.request(
                request.method,
                request.url,
                data=request.body or None,
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
            )
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as error:
            raise NotSentError(_words(error)) from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise BrokenError(_words(error)) from None
        try:
            yield _Response(response)
        finally:
            # A body read to its end has given its connection back already; any other one is cut here.
            response.close()


def _words(error: BaseException) -> str:
    """An aiohttp error in words; its repr can hold the request's headers, so it is never shown."""
    text = str(error) if isinstance(error, OSError | TimeoutError | aiohttp.ClientPayloadError) else ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


async def fetch(transport: Transport, request: Request, deadlines: Deadlines) -> tuple[int, Mapping[str, str], bytes]:
    """Send a small request and read its whole body: (status, headers, body)."""
    async with transport.open(request, deadlines) as response:
        body = b"".join([chunk async for chunk in response.chunks()])
        return response.status, response.headers, body
