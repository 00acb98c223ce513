"""Channels against servers on loopback: whatever the sizes, whoever closes, plain and under TLS; nothing is left behind."""

from __future__ import annotations

import asyncio
import gc
import shutil
import ssl
import subprocess
import weakref
from pathlib import Path
from typing import cast

import pytest

from eyas import channel, connection
from eyas.connection import Connection
from eyas.errors import BrokenError
from eyas.transport import Deadlines, HttpTransport, Request, fetch
from tests.test_transport import OK, go, server, writes

WHOLE = OK + b"Content-Length: 5\r\n\r\nhello"
LARGE = 3 * channel.ROOM + 1


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of localhost with its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is needed to make a certificate")
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    more = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(path), "-out", f"{path}.crt"]
    subprocess.run([*command.split(), *more], check=True, capture_output=True)
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())
    return path


@pytest.fixture(params=["plain", "tls"])
def tls(request: pytest.FixtureRequest) -> ssl.SSLContext | None:
    """The server's TLS, or none."""
    if request.param == "plain":
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(request.getfixturevalue("certificate"))
    return context


@pytest.fixture
def trusting(tls: ssl.SSLContext | None, request: pytest.FixtureRequest) -> HttpTransport:
    """A transport that trusts that server."""
    transport = HttpTransport()
    if tls is not None:
        transport._tls.load_verify_locations(request.getfixturevalue("certificate"))
    return transport


def test_large_bodies_go_both_ways(tls: ssl.SSLContext | None, trusting: HttpTransport) -> None:
    """More than a socket takes at once is sent piece by piece, more than a turn takes is read in several."""
    body = bytes(range(256)) * (LARGE // 256)

    async def work() -> None:
        answer = OK + b"Content-Length: %d\r\n\r\n" % len(body)
        async with server(writes(answer, body), tls) as served, trusting as transport:
            for _ in range(2):
                assert (await fetch(transport, Request("POST", served.url, {}, body), Deadlines()))[2] == body
            assert [each.partition(b"\r\n\r\n")[2] == body for each in served.requests] == [True, True]
            assert served.connections == 1

    go(work())


def test_the_end_of_the_connection_ends_a_body_without_a_length(
    tls: ssl.SSLContext | None, trusting: HttpTransport
) -> None:
    """The other side's close, under TLS its close_notify, is an end where nothing else is, and a break where one was promised."""

    async def work() -> None:
        async with server(writes(OK + b"\r\nhello", close=True), tls) as served, trusting as transport:
            assert (await fetch(transport, Request("GET", served.url), Deadlines()))[2] == b"hello"
        async with (
            server(writes(OK + b"Content-Length: 6\r\n\r\nhello", close=True), tls) as served,
            trusting as transport,
        ):
            with pytest.raises(BrokenError, match="closed before the response ended"):
                await fetch(transport, Request("GET", served.url), Deadlines())

    go(work())


def test_an_idle_connection_that_was_closed_or_spoken_on_is_not_used(
    tls: ssl.SSLContext | None, trusting: HttpTransport
) -> None:
    """A request is not sent where the server has hung up, or has said what nobody asked for; it gets a connection of its own."""

    async def work() -> None:
        for more in (b"", b"HTTP/1.1 408 Request Timeout\r\n\r\n"):
            closing: list[asyncio.StreamWriter] = []

            def answer(_: bytes, writer: asyncio.StreamWriter, closing: list[asyncio.StreamWriter] = closing) -> None:
                writer.write(WHOLE)
                closing.append(writer)

            async with server(answer, tls) as served, trusting as transport:
                for _ in range(3):
                    assert (await fetch(transport, Request("POST", served.url, {}, b"x"), Deadlines()))[0] == 200
                    closing[-1].write(more)
                    closing[-1].close()
                    await closing[-1].wait_closed()
                assert (served.connections, len(served.requests)) == (3, 3)

    go(work())


def test_more_sockets_than_a_turn_takes_are_all_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever does not come in at once comes in next."""
    monkeypatch.setattr(channel, "AT_ONCE", 2)

    async def work() -> None:
        async with server(writes(WHOLE)) as served, HttpTransport() as transport, asyncio.TaskGroup() as group:
            asked = [group.create_task(fetch(transport, Request("GET", served.url), Deadlines())) for _ in range(30)]
        assert [task.result()[2] for task in asked] == [b"hello"] * 30

    go(work())


def test_a_reader_that_stumbles_ends_its_own_connection_only() -> None:
    """What a reader raises is said where its response is awaited, and others go on."""

    async def work() -> None:
        def stumble(_: bytes) -> None:
            raise ValueError("three legs")

        async with server(writes(WHOLE)) as served, HttpTransport() as transport:
            async with transport.open(Request("GET", served.url), Deadlines()) as response:
                other = asyncio.ensure_future(fetch(transport, Request("GET", served.url), Deadlines()))
                with pytest.raises((BrokenError, ValueError), match="three legs"):
                    await response.read(stumble)
            assert (await other)[2] == b"hello"

    go(work())


def test_a_request_leaves_nothing_for_the_collector() -> None:
    """The collector looks seldom while a run streams: a closed connection is free without it."""

    async def work() -> None:
        left: list[weakref.ref[object]] = []
        for answer in (
            WHOLE,
            OK + b"Content-Length: 9\r\n\r\nhello",
            b"HTTP/1.1 503 Full\r\nContent-Length: 0\r\n\r\n",
        ):
            async with server(writes(answer)) as served, HttpTransport() as transport:
                async with transport.open(Request("GET", served.url), Deadlines()) as response:
                    left.append(weakref.ref(response))
                del response
            await asyncio.sleep(0)
        assert [each() for each in left] == [None] * 3

    gc.collect()
    gc.disable()
    try:
        go(work())
    finally:
        gc.enable()


def test_a_stream_that_has_begun_is_read_in_larger_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first bytes of a body are given as they come; what comes while others are read, or in the rest after, together."""
    monkeypatch.setattr(channel, "VISITS", 1)  # a second of rest
    got: list[bytes] = []
    first = b"a" * (connection.FIRST + 1)

    async def work() -> None:
        seen = asyncio.Event()

        async def answer(_: bytes, writer: asyncio.StreamWriter) -> None:
            writer.write(OK + b"Content-Length: %d\r\n\r\n" % (len(first) + 5))
            for part in (first, b"b", b"c", b"d", b"ef"):
                writer.write(part)
                await writer.drain()
                if part in (first, b"b"):
                    await seen.wait()
                    seen.clear()

        def take(data: bytes) -> None:
            got.append(data)
            seen.set()

        async with (
            server(answer) as served,
            HttpTransport() as transport,
            transport.open(Request("GET", served.url), Deadlines()) as response,
        ):
            await response.read(take)

    go(work())
    assert got == [first, b"b", b"cdef"]


def test_what_waits_for_its_turn_is_no_silence() -> None:
    """A response is called silent only after a look at its socket."""

    class Waiting:
        """A channel in which bytes wait until somebody looks."""

        def __init__(self, waits: bytes) -> None:
            self.waits = waits

        def start(self, receiver: Connection) -> None:
            self.receiver = receiver

        def write(self, data: bytes) -> None:
            """Nobody answers at once."""

        def read(self) -> None:
            if self.waits:
                self.receiver.data_received(memoryview(self.waits))

        hurry = calm = close = lambda self: None

    async def work() -> None:
        loop = asyncio.get_running_loop()
        for waits, fails in ((OK, False), (b"", True)):
            asked = Connection(loop, cast("channel.Channel", Waiting(waits)))
            asked.send(b"GET / HTTP/1.1\r\n\r\n", Deadlines(silence=5.0))
            asked.last -= 5.1
            asked.watch(loop.time(), lag=0.0)
            assert asked.done.done() == fails
            assert not fails or isinstance(asked.head.exception(), BrokenError)

    go(work())
