"""Bytes over TCP, under TLS or not, read in turns: one look at all sockets at once instead of a wake-up for each.

At twenty thousand pieces a second most of a client's time goes into being woken: a callback of the loop, a system call and
a protocol's layers for each piece. Here the sockets stand in a selector of their own. Once something came it is read out of
all that have something, and then nothing is looked at for a moment, so that one turn serves hundreds. TLS is OpenSSL over
memory BIOs: one system call takes all records that came.
"""

from __future__ import annotations

import asyncio
import selectors
import socket
import ssl
from collections import deque
from collections.abc import Callable
from typing import Protocol, cast

REST = 0.02
"""Seconds between two turns, at least: how long bytes may wait while the loop is free."""
VISITS = 10_000
"""Reads a second, at most. With 2000 streams each is read five times a second: what comes of it in two pieces at once costs
half, most of which is memory that has gone cold."""
AT_ONCE = 64
"""Sockets that are read before the loop may do something else: about a millisecond."""
ROOM = 256 * 1024
"""Bytes that are taken from one socket in one turn; the rest stays with the kernel, which slows the sender."""

RECORD = 32 * 1024
"""More than a TLS record has: what came of one before this turn stands with OpenSSL."""


class Receiver(Protocol):
    """Takes what comes over a channel."""

    def data_received(self, data: memoryview) -> None:
        """Bytes came; the memory is used again when this returns."""
        ...

    def connection_lost(self, error: Exception | None) -> None:
        """The other side ended it, or it broke. Called once, and not after `close`."""
        ...


class Round:
    """Sockets that are read by turns, at most `VISITS` reads a second: the more of them have something, the longer the rest."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._selector = selectors.DefaultSelector()
        self._ready: deque[Callable[[], None]] = deque()
        self._rest = REST
        self._next: asyncio.Handle | None = None
        self._listen()

    def add(self, sock: socket.socket, read: Callable[[], None]) -> None:
        """Have `read` called when something came."""
        self._selector.register(sock, selectors.EVENT_READ, read)

    def remove(self, sock: socket.socket) -> None:
        """No more of that."""
        self._selector.unregister(sock)

    def close(self) -> None:
        """No more of anything."""
        self._loop.remove_reader(self._selector)
        self._selector.close()
        if self._next is not None:
            self._next.cancel()

    def _listen(self) -> None:
        self._next = None
        self._loop.add_reader(self._selector, self._wake)

    def _wake(self) -> None:
        self._loop.remove_reader(self._selector)
        self._begin()

    def _begin(self) -> None:
        self._ready.extend(key.data for key, _ in self._selector.select(0))
        self._rest = max(REST, len(self._ready) / VISITS)
        if self._ready:
            self._go_on()
        else:  # only then: to listen to a selector costs a look at every socket in it
            self._listen()

    def _go_on(self) -> None:
        try:
            for _ in range(min(AT_ONCE, len(self._ready))):
                self._ready.popleft()()
        finally:
            rest = self._loop.call_later(self._rest, self._begin) if not self._ready else None
            self._next = rest or self._loop.call_soon(self._go_on)


class Turns:
    """The open sockets of one loop: in the `quick` round those from which a little is awaited, in the `calm` one streams."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.raw = memoryview(bytearray(ROOM))
        self.clear = memoryview(bytearray(ROOM + RECORD))
        self.quick = Round(loop)
        self.calm = Round(loop)

    def close(self) -> None:
        """Read no more."""
        self.quick.close()
        self.calm.close()


class Channel:
    """One open socket. `open` makes it; once it is started its receiver has what comes."""

    def __init__(self, turns: Turns, sock: socket.socket) -> None:
        self._turns = turns
        self._round = turns.quick
        self._sock = sock
        self._tls: ssl.SSLObject | None = None
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._unsent = bytearray()
        self._writing = False
        self._closed = False
        self._receiver: Receiver | None = None

    @classmethod
    async def open(cls, turns: Turns, ip: str, port: int, tls: ssl.SSLContext | None, name: str) -> Channel:
        """Connect; under TLS the certificate must be that of `name`.

        Raises:
            OSError: it cannot be reached, or its certificate is not trusted.
        """
        sock = socket.socket(socket.AF_INET6 if ":" in ip else socket.AF_INET, socket.SOCK_STREAM)
        channel = cls(turns, sock)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await turns.loop.sock_connect(sock, (ip, port))
            if tls is not None:
                await channel._shake_hands(tls.wrap_bio(channel._incoming, channel._outgoing, server_hostname=name))
        except BaseException:
            sock.close()
            raise
        return channel

    async def _shake_hands(self, tls: ssl.SSLObject) -> None:
        self._tls = tls
        loop, whole = self._turns.loop, False
        while not whole:
            try:
                tls.do_handshake()
                whole = True
            except ssl.SSLWantReadError:
                pass
            if self._outgoing.pending:
                await loop.sock_sendall(self._sock, self._outgoing.read())
            if not whole:
                data = await loop.sock_recv(self._sock, ROOM)
                if not data:
                    raise ConnectionResetError("the connection was closed during the TLS handshake")
                self._incoming.write(data)

    def start(self, receiver: Receiver) -> None:
        """Have it read from now on."""
        self._receiver = receiver
        self._round.add(self._sock, self.read)

    def hurry(self) -> None:
        """From now on every byte is wanted soon."""
        self._move(self._turns.quick)

    def calm(self) -> None:
        """From now on what comes may wait a little, to be read with what follows it."""
        self._move(self._turns.calm)

    def _move(self, where: Round) -> None:
        if where is not self._round and not self._closed:
            self._round.remove(self._sock)
            self._round = where
            where.add(self._sock, self.read)

    def write(self, data: bytes) -> None:
        """Send; what does not fit now goes out as soon as it does."""
        if self._tls is None:
            self._unsent += data
        else:
            rest = memoryview(data)
            while rest:
                rest = rest[self._tls.write(rest) :]
        self._flush()

    def close(self) -> None:
        """Close at once."""
        if self._closed:
            return
        self._closed = True
        self._receiver = None
        self._round.remove(self._sock)
        self._watch_room(wanted=False)
        self._sock.close()

    def read(self) -> None:
        """Take what has come, if anything has."""
        if self._closed:
            return
        raw = self._turns.raw
        try:
            count = self._sock.recv_into(raw)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._lose(error)
            return
        if not count:
            self._lose(None)
        elif self._tls is None:
            self._give(raw[:count])
        else:
            self._decrypt(self._tls, raw[:count])

    def _decrypt(self, tls: ssl.SSLObject, raw: memoryview) -> None:
        incoming, clear = self._incoming, self._turns.clear
        incoming.write(raw)
        count, ended, broken = 0, False, None
        try:
            while incoming.pending and not ended:
                got = cast("int", tls.read(ROOM, clear[count:]))  # with a buffer it counts
                count += got
                ended = not got  # its close_notify
        except ssl.SSLWantReadError:  # the last record has not come whole
            pass
        except ssl.SSLError as error:
            broken = error
        if count:
            self._give(clear[:count])
        if broken is not None or ended:
            self._lose(broken)
        elif self._outgoing.pending:  # an answer to the other side's change of keys
            self._flush()

    def _give(self, data: memoryview) -> None:
        if self._receiver is None:
            return
        try:
            self._receiver.data_received(data)
        except Exception as error:  # noqa: BLE001  # whatever a reader stumbles over ends its own connection, and is said there
            self._lose(error)

    def _flush(self) -> None:
        if self._closed:
            return
        if self._outgoing.pending:
            self._unsent += self._outgoing.read()
        try:
            if self._unsent:
                del self._unsent[: self._sock.send(self._unsent)]
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            self.read()  # a server that takes no more may have said why
            self._lose(error)
            return
        self._watch_room(wanted=bool(self._unsent))

    def _watch_room(self, *, wanted: bool) -> None:
        if wanted == self._writing:
            return
        self._writing = wanted
        if wanted:
            self._turns.loop.add_writer(self._sock, self._flush)
        else:
            self._turns.loop.remove_writer(self._sock)

    def _lose(self, error: Exception | None) -> None:
        receiver = self._receiver
        self.close()
        if receiver is not None:
            receiver.connection_lost(error)
