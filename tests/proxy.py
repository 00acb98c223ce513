"""A fault proxy on loopback: it stands between a client and a server and does to chat requests what it is told."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

GIGABYTE = 1 << 30
_BLOCK = 1 << 18


@dataclass(frozen=True, slots=True)
class Fault:
    """What befalls one answer.

    Attributes:
        delay: seconds before its first byte.
        after: bytes of it that pass before `end` comes; None: all of it, and no end.
        end: "close", "reset" (RST), or "half" (our side is closed, the other is still read).
        piece, pause: it drips: so many bytes at once, so many seconds between.
        answer: these bytes come instead, whole; the request goes no further. `more` bytes of body follow them.
    """

    delay: float = 0.0
    after: int | None = None
    end: str = "close"
    piece: int = 0
    pause: float = 0.0
    answer: bytes | None = None
    more: int = 0


NONE = Fault()


def made(status: str, body: bytes, kind: str = "application/json", more: int = 0, **headers: str) -> Fault:
    """An answer that the proxy makes itself; underscores in header names stand for hyphens."""
    fields = {"Content-Type": kind, "Content-Length": str(len(body) + more)}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return Fault(answer=f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body, more=more)


@dataclass(slots=True)
class _Link:
    """One client's connection; `passed` bytes of the answer to its present request went through."""

    writer: asyncio.StreamWriter
    fault: Fault = NONE
    passed: int = 0
    ended: bool = False

    async def back(self, upstream: asyncio.StreamReader) -> None:
        """Bring answers back, as far as the fault lets them."""
        with suppress(ConnectionError):
            while data := await upstream.read(65536):
                if not self.ended:
                    await self._bring(data)
        if not self.ended:
            self.writer.close()

    async def _bring(self, data: bytes) -> None:
        fault = self.fault
        if fault.delay and not self.passed:
            await asyncio.sleep(fault.delay)
        if fault.after is not None:
            data = data[: fault.after - self.passed]
        self.passed += len(data)
        for start in range(0, len(data), fault.piece or len(data) or 1):
            self.writer.write(data[start : start + (fault.piece or len(data))])
            await self.writer.drain()
            await asyncio.sleep(fault.pause)
        if self.passed == fault.after:
            self.end(fault.end)

    def end(self, way: str) -> None:
        """End the connection in one of the ways."""
        self.ended = True
        if way == "half":
            self.writer.write_eof()
            return
        if way == "reset":
            raw: socket.socket = self.writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.writer.transport.abort()
        self.writer.close()


@dataclass(slots=True)
class Proxy:
    """A running proxy. The first chat requests meet `faults` one by one, the others pass."""

    upstream: int
    faults: list[Fault] = field(default_factory=list[Fault])
    chats: list[bytes] = field(default_factory=list[bytes])
    port: int = 0
    sent: int = 0
    _clients: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])

    @property
    def url(self) -> str:
        """What a client takes as its base URL."""
        return f"http://127.0.0.1:{self.port}/api/v1"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client's connection."""
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.upstream)
        link = _Link(writer)
        back = asyncio.create_task(link.back(up_reader))
        try:
            while not link.ended:
                request = await _request(reader)
                link.fault, link.passed = self._next(request), 0
                if link.fault.answer is None:
                    up_writer.write(request)
                else:
                    await self._answer(link.fault, writer)
                    if link.fault.after is not None:
                        link.end(link.fault.end)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._clients.discard(task)
            back.cancel()
            up_writer.close()
            writer.close()

    def _next(self, request: bytes) -> Fault:
        if not request.startswith(b"POST"):
            return NONE
        self.chats.append(request)
        return self.faults.pop(0) if self.faults else NONE

    async def _answer(self, fault: Fault, writer: asyncio.StreamWriter) -> None:
        writer.write(fault.answer or b"")
        block, left = b"x" * _BLOCK, fault.more
        while left > 0 and not writer.is_closing():
            writer.write(block[:left])
            await writer.drain()
            left -= len(block)
            self.sent += len(block)

    async def close(self) -> None:
        """End what is still connected."""
        for task in tuple(self._clients):
            task.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)


@asynccontextmanager
async def proxy(upstream: int, *faults: Fault) -> AsyncGenerator[Proxy]:
    """A proxy on a free port before a server on loopback."""
    running = Proxy(upstream, list(faults))
    server = await asyncio.start_server(running.serve, "127.0.0.1", 0)
    running.port = server.sockets[0].getsockname()[1]
    try:
        yield running
    finally:
        server.close()
        await running.close()


async def _request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    lengths = (line[15:] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    return head + await reader.readexactly(int(next(lengths, b"0")))
