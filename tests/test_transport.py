"""The transport against raw servers on loopback: framing, reuse, breaks, deadlines, TLS; nothing is ever sent twice."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from eyas import connection
from eyas.config import freeze, frozen, load
from eyas.errors import BrokenError, NotSentError, UsageError
from eyas.lock import lock
from eyas.transport import Deadlines, HttpTransport, Request, fetch
from tests import kit

OK = b"HTTP/1.1 200 OK\r\nX-Generation-Id: gen-1\r\n"
Handler = Callable[[bytes, asyncio.StreamWriter], Awaitable[None] | None]


class Served:
    """What a raw server saw."""

    def __init__(self) -> None:
        self.url = ""
        self.connections = 0
        self.requests: list[bytes] = []


@asynccontextmanager
async def server(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncGenerator[Served]:
    """Answers each request with what the handler writes; a handler that closes ends the connection."""
    served = Served()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.connections += 1
        try:
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                length = next((int(x[16:]) for x in head.split(b"\r\n") if x.lower().startswith(b"content-length:")), 0)
                served.requests.append(head + await reader.readexactly(length))
                done = handler(served.requests[-1], writer)
                if done is not None:
                    await done
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    running = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    scheme = "https" if tls else "http"
    served.url = f"{scheme}://localhost:{running.sockets[0].getsockname()[1]}/api"
    try:
        yield served
    finally:
        running.close()


def go(work: Awaitable[Any]) -> Any:
    """Run it."""

    async def whole() -> Any:
        return await work

    return asyncio.run(whole())


def writes(*parts: bytes, close: bool = False) -> Handler:
    """A handler that writes these bytes."""

    def handle(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.writelines(parts)
        if close:
            writer.close()

    return handle


BODIES = {
    "length": (OK + b"Content-Length: 5\r\n\r\nhello", False),
    "chunked": (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", False),
    "to the end": (OK + b"Connection: close\r\n\r\nhello", True),
    "after an informational response": (
        b"HTTP/1.1 103 Early Hints\r\nX-A: 1\r\n\r\n" + OK + b"Content-Length: 5\r\n\r\nhello",
        False,
    ),
}


@pytest.mark.parametrize("name", sorted(BODIES))
def test_every_framing_is_read_whole(name: str) -> None:
    """Bodies by length, in chunks, to the end of the connection, and behind a 103 come as they are."""
    answer, close = BODIES[name]

    async def work() -> None:
        async with server(writes(answer, close=close)) as served, HttpTransport() as transport:
            status, headers, body = await fetch(transport, Request("POST", served.url, {"A": "b"}, b"{}"), Deadlines())
            assert (status, headers["x-generation-id"], body) == (200, "gen-1", b"hello")
            assert served.requests[0].startswith(b"POST /api HTTP/1.1\r\nHost: localhost:")
            assert served.requests[0].endswith(b"\r\n\r\n{}")

    go(work())


def test_a_connection_is_used_again_and_an_unread_one_is_not() -> None:
    """Ten whole responses share one connection; leaving a response unread closes its connection."""

    async def work() -> None:
        async with server(writes(BODIES["chunked"][0])) as served, HttpTransport() as transport:
            for _ in range(10):
                await fetch(transport, Request("GET", served.url), Deadlines())
            assert served.connections == 1
            async with transport.open(Request("GET", served.url), Deadlines()) as response:
                assert response.status == 200
        async with server(writes(OK + b"Content-Length: 5\r\n\r\nhe")) as served, HttpTransport() as transport:
            for _ in range(3):
                async with transport.open(Request("GET", served.url), Deadlines()):
                    pass
            assert served.connections == 3

    go(work())


BREAKS = {
    "before the headers": b"",
    "amid the headers": b"HTTP/1.1 200 OK\r\nContent-Le",
    "amid a body by length": OK + b"Content-Length: 9\r\n\r\nhello",
    "amid chunks": OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhel",
    "no HTTP": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
}


@pytest.mark.parametrize("name", sorted(BREAKS))
def test_a_break_is_an_error_and_nothing_is_sent_again(name: str) -> None:
    """A connection that ends too early raises BrokenError, and the server saw one request, also on a used connection."""

    async def work() -> None:
        answers = iter([writes(BODIES["length"][0]), writes(BREAKS[name], close=True)])

        def answer(data: bytes, writer: asyncio.StreamWriter) -> Awaitable[None] | None:
            return next(answers)(data, writer)

        async with server(answer) as served, HttpTransport() as transport:
            await fetch(transport, Request("GET", served.url), Deadlines())
            with pytest.raises(BrokenError):
                await fetch(transport, Request("POST", served.url, {}, b"x"), Deadlines())
            assert (served.connections, len(served.requests)) == (1, 2)

    go(work())


def test_silence_and_slow_headers_are_cut() -> None:
    """No headers in time, and no byte in time, are BrokenErrors that say so."""

    async def work() -> None:
        async with server(lambda *_: None) as served, HttpTransport() as transport:
            with pytest.raises(BrokenError, match="no response headers"):
                await fetch(transport, Request("GET", served.url), Deadlines(headers=0.05))
        half = writes(OK + b"Content-Length: 9\r\n\r\nhello")
        async with server(half) as served, HttpTransport() as transport:
            with pytest.raises(BrokenError, match="silent for"):
                await fetch(transport, Request("GET", served.url), Deadlines(silence=0.1))
            with pytest.raises(BrokenError, match="not done after"):
                await fetch(transport, Request("GET", served.url), Deadlines(total=0.1))

    go(work())


def test_a_finished_stream_need_not_end() -> None:
    """Once the reader has enough, a body that goes on is ended without an error."""

    async def work() -> None:
        async with (
            server(writes(OK + b"Transfer-Encoding: chunked\r\n\r\n4\r\ndone\r\n")) as served,
            HttpTransport() as transport,
            transport.open(Request("GET", served.url), Deadlines()) as response,
        ):
            got: list[bytes] = []
            response.enough(0.05)
            await response.read(got.append)
            assert got == [b"done"]

    go(work())


def test_bodies_are_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body that goes on for ever is cut off."""
    monkeypatch.setattr(connection, "MOST_BODY", 1000)

    async def work() -> None:
        async with (
            server(writes(OK + b"Content-Length: 5000\r\n\r\n", b"x" * 5000)) as served,
            HttpTransport() as transport,
        ):
            with pytest.raises(BrokenError, match="passed 1000 bytes"):
                await fetch(transport, Request("GET", served.url), Deadlines())

    go(work())


def test_headers_are_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers that go on for ever, and pages with an error that do, are cut off."""
    monkeypatch.setattr(connection, "MOST_HEAD", 9000)
    monkeypatch.setattr(connection, "MOST_ERROR", 1000)
    page = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 5000\r\n\r\n"

    async def work() -> None:
        for answer, what in (
            (OK + b"X: 1\r\n" * 2000, "headers passed 9000"),
            (page + b"x" * 5000, "body passed 1000"),
        ):
            async with server(writes(answer)) as served, HttpTransport() as transport:
                with pytest.raises(BrokenError, match=what):
                    await fetch(transport, Request("GET", served.url), Deadlines())

    go(work())


def test_http_to_another_machine_needs_consent(tmp_path: Path, kimi_folder: Path) -> None:
    """Without --insecure-http such a base_url is a wrong key; with it the run begins, and its copy of RUN.toml stays readable."""
    kit.write_run(tmp_path, kit.Sim("http://nowhere.invalid:1/api/v1", 0), kimi_folder, 1)
    with pytest.raises(UsageError, match=r"unencrypted.*--insecure-http"):
        load(tmp_path / "RUN.toml")
    config = load(tmp_path / "RUN.toml", insecure_http=True)
    with lock(config.dir):
        freeze(config, (tmp_path / "RUN.toml").read_text())
    assert frozen(config.dir).target.base_url == "http://nowhere.invalid:1/api/v1"
    ended = kit.eyas(tmp_path, "run", "RUN.toml", "--yes", "--insecure-http")
    assert (ended.returncode, "cannot be reached" in ended.stderr) == (2, True), ended.stderr


def test_redirects_are_not_followed_and_line_breaks_not_sent() -> None:
    """A redirect is an answer like any other; a header with a line break never leaves; the key is in no repr."""

    async def work() -> None:
        moved = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
        async with server(writes(moved)) as served, HttpTransport() as transport:
            status, _, _ = await fetch(transport, Request("GET", served.url), Deadlines())
            assert status == 307
            with pytest.raises(NotSentError, match="line break"):
                await fetch(transport, Request("GET", served.url, {"X": "a\r\nEvil: 1"}), Deadlines())
            assert len(served.requests) == 1

    go(work())
    assert "secret" not in repr(Request("GET", "http://x", {"Authorization": "Bearer secret"}))


def test_nobody_there_is_not_sent() -> None:
    """A refused connection and a name without an address are NotSentErrors."""

    async def work() -> None:
        async with HttpTransport() as transport:
            transport._names["nowhere"] = (float("inf"), [])
            for url in ("http://127.0.0.1:1/", "http://nowhere/"):
                with pytest.raises(NotSentError, match="no connection"):
                    await fetch(transport, Request("GET", url), Deadlines())

    go(work())


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is needed to make a certificate")
def test_certificates_are_checked(tmp_path: Path) -> None:
    """An unknown certificate is refused before anything is sent; a trusted one with the right name is taken."""
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    more = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(cert)]
    subprocess.run([*command.split(), *more], check=True, capture_output=True)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(cert, key)

    async def work() -> None:
        async with server(writes(BODIES["length"][0]), tls) as served, HttpTransport() as transport:
            with pytest.raises(NotSentError, match="certificate"):
                await fetch(transport, Request("GET", served.url), Deadlines())
            assert not served.requests
            transport._tls.load_verify_locations(cert)
            assert (await fetch(transport, Request("GET", served.url), Deadlines()))[2] == b"hello"

    go(work())
