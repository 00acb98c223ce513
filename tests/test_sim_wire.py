"""The simulator's server over loopback: framing, keep-alive, resets, and clients that go away."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from eyas.families.base import Loaded
from eyas.sim import Faults, Scenario, World, load
from eyas.sim.wire import Server, serve

FAST = replace(load("clean"), length_median=150.0, tps=3000.0, ttft=0.01, keepalive=0.005, generation_delay=0.05)
Run = Callable[[Scenario, Callable[[World, Server], Coroutine[Any, Any, None]]], None]


@pytest.fixture
def run(kimi: Loaded) -> Run:
    """Run a client against a served world."""

    def runner(scenario: Scenario, client: Callable[[World, Server], Coroutine[Any, Any, None]]) -> None:
        async def both() -> None:
            world = World(scenario, 1, kimi.vocab, time.time, kimi.count_prompt)
            server = await serve(world)
            try:
                await asyncio.wait_for(client(world, server), 10)
            finally:
                await server.close()

        asyncio.run(both())

    return runner


class Client:
    """A raw HTTP/1.1 client on one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def connect(cls, server: Server) -> "Client":
        return cls(*await asyncio.open_connection("127.0.0.1", server.port))

    async def send(self, method: str, path: str, body: Any = None, headers: str = "") -> tuple[int, dict[str, str]]:
        """Send a request and read the response's head."""
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer k\r\n{headers}Content-Length: {len(data)}\r\n\r\n"
        self.writer.write(head.encode() + data)
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        pairs = (line.split(": ", 1) for line in lines[1:] if line)
        return int(lines[0].split()[1]), {name.lower(): value for name, value in pairs}

    async def chunks(self) -> AsyncIterator[bytes]:
        """The chunks of a chunked body."""
        while size := int(await self.reader.readline(), 16):
            yield (await self.reader.readexactly(size + 2))[:-2]
        await self.reader.readline()

    async def body(self, fields: dict[str, str]) -> bytes:
        """The whole body."""
        if "content-length" in fields:
            return await self.reader.readexactly(int(fields["content-length"]))
        return b"".join([chunk async for chunk in self.chunks()])

    async def get(self, path: str) -> Any:
        """A GET's JSON."""
        _, fields = await self.send("GET", path)
        return json.loads(await self.body(fields))

    def close(self) -> None:
        self.writer.close()


def chat(content: str = "hi", **more: Any) -> dict[str, Any]:
    """A chat body."""
    return {"model": "moonshotai/kimi-k2.5", "messages": [{"role": "user", "content": content}], "stream": True} | more


async def until(true: Callable[[], bool]) -> None:
    """Wait for the server to notice."""
    while not true():  # noqa: ASYNC110  # the world has no event to wait for
        await asyncio.sleep(0.002)


CHAT = "/api/v1/chat/completions"


def test_round_trip_on_one_connection(run: Run) -> None:
    """Streamed, whole and plain answers one after the other; cost is the same in usage, /generation, /key and books."""

    async def client(world: World, server: Server) -> None:
        one = await Client.connect(server)
        status, fields = await one.send("POST", CHAT, chat())
        assert (status, fields["content-type"]) == (200, "text/event-stream")
        raw = await one.body(fields)
        assert raw.endswith(b"data: [DONE]\n\n")
        assert raw.count(b"data: {") > 50
        streamed = json.loads(raw.split(b"\n\n")[-3][6:])
        assert streamed["id"] == fields["x-generation-id"]
        status, fields = await one.send("POST", CHAT, chat(stream=False))
        raw = await one.body(fields)
        answer = json.loads(raw)
        assert raw.startswith(b"\n         \n")
        await asyncio.sleep(0.06)
        found = (await one.get(f"/api/v1/generation?id={answer['id']}"))["data"]
        assert found["total_cost"] == answer["usage"]["cost"]
        total = answer["usage"]["cost"] + streamed["usage"]["cost"]
        assert (await one.get("/api/v1/key"))["data"]["usage"] == pytest.approx(total, abs=1e-12)
        books = await one.get("/sim/books?ids=1")
        assert books["billed_nano"] == round(total * 10**9) == world.books.billed
        assert all(len(row["ids"]) == row["total"] == row["sent"] for row in books["entries"])
        assert (await one.get("/sim/state"))["in_flight"] == 0
        assert len((await one.get("/api/v1/models/moonshotai/kimi-k2.5/endpoints"))["data"]["endpoints"]) == 12
        assert (await one.send("GET", "/api/v1/nothing"))[0] == 404
        one.close()

    run(FAST, client)


def test_disconnect_is_noticed_and_billed_by_the_provider_s_rule(run: Run) -> None:
    """The one that stops on a cancel bills what was sent; the one that runs on bills the whole answer."""

    async def client(world: World, server: Server) -> None:
        for tag in ("chutes", "inceptron"):
            one = await Client.connect(server)
            await one.send("POST", CHAT, chat(provider={"only": [tag]}))
            seen = 0
            async for chunk in one.chunks():
                seen += chunk.count(b"data: ")
                if seen > 10:
                    break
            assert world.books.in_flight == 1
            one.close()
            await until(lambda: world.books.in_flight == 0)
        stops, runs_on = world.books.entries.values()
        assert stops.status == runs_on.status == "cancelled"
        assert 0 < stops.produced == stops.sent < stops.total
        assert runs_on.produced == runs_on.total

    run(replace(FAST, tps=100.0), client)


@pytest.mark.parametrize("fault", ["reset", "cut_reset", "cut_close", "hang", "html"])
def test_broken_wires(run: Run, fault: str) -> None:
    """Resets reset, closes close cleanly, a hang stays silent until the client leaves."""

    async def client(world: World, server: Server) -> None:
        one = await Client.connect(server)
        outcome = ""
        try:
            status, fields = await one.send("POST", CHAT, chat())
            raw = await asyncio.wait_for(one.body(fields), 0.5)
            outcome = "page" if b"<html>" in raw and status in (502, 524) else f"{status} {b'[DONE]' in raw}"
        except TimeoutError:
            outcome = "silence"
        except (ConnectionError, asyncio.IncompleteReadError):
            outcome = "broken"
        expected = {"hang": "silence", "html": "page", "cut_close": "200 False"}
        assert outcome == expected.get(fault, "broken")
        one.close()
        await until(lambda: world.books.in_flight == 0)
        assert world.books.faults == {fault: 1}

    run(replace(FAST, faults=Faults(**{fault: 1.0})), client)


def test_many_streams_and_a_slow_reader(run: Run) -> None:
    """A reader that pauses loses nothing and does not hold the others up."""

    async def client(world: World, server: Server) -> None:
        slow = await Client.connect(server)
        _, fields = await slow.send("POST", CHAT, chat("slow", max_tokens=100_000))

        async def one(number: int) -> bytes:
            other = await Client.connect(server)
            _, fields = await other.send("POST", CHAT, chat(f"question {number}"))
            raw = await other.body(fields)
            other.close()
            return raw

        bodies = await asyncio.gather(*(one(number) for number in range(40)))
        assert all(body.endswith(b"data: [DONE]\n\n") for body in bodies)
        assert (await slow.body(fields)).endswith(b"data: [DONE]\n\n")
        slow.close()
        assert world.books.peak > 20
        assert {entry.status for entry in world.books.entries.values()} == {"full"}

    run(replace(FAST, length_median=2000.0, length_sigma=0.1, tps=20_000.0), client)


SCRIPT = """
import sys, time
from pathlib import Path
from eyas.families import by_name
from eyas.sim import World, load
from eyas.sim.wire import run_forever
kimi = by_name("kimi-k2.5").load(Path(sys.argv[1]))
parent, most = (int(sys.argv[2]) or None), (float(sys.argv[3]) or None)
run_forever(World(load("clean"), 0, kimi.vocab, time.time), parent=parent, max_seconds=most, books=Path(sys.argv[4]))
"""


@pytest.mark.parametrize("way", ["signal", "parent", "time"])
def test_process_ends_by_signal_parent_or_time(kimi_folder: Path, tmp_path: Path, way: str) -> None:
    """It prints its base URL when ready, ends cleanly, and leaves its books."""
    books = tmp_path / "books.json"
    parent = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    arguments = [kimi_folder, str(parent.pid if way == "parent" else 0), "0.2" if way == "time" else "0", books]
    with subprocess.Popen([sys.executable, "-c", SCRIPT, *arguments], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline()
        if way == "signal":
            os.kill(process.pid, signal.SIGTERM)
        parent.communicate(b"\n")
        assert process.wait(10) == 0
    assert url.startswith("http://127.0.0.1:")
    assert url.endswith("/api/v1\n")
    assert json.loads(books.read_text())["entries"] == []
