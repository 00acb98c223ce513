"""Stand-ins on the clock: slots and their queue, speeds, clients that go away, servers that die and come back."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from eyas.errors import BrokenError, NotSentError
from eyas.families import Loaded
from eyas.sim.engines import Engine
from eyas.transport import Deadlines, Request
from tests import enginekit as kit
from tests.virtual import now, play

T = TypeVar("T")
TOKENS = 40
PLACES = ("127.0.0.1:1", "127.0.0.1:2")


def made(loaded: Loaded, name: str = "vllm", **settings: Any) -> Engine:
    """A stand-in on the virtual clock whose answers are longer than what is asked."""
    long = replace(kit.SHORT, length_median=500.0, length_sigma=0.1)
    return kit.engine(name, loaded, long, clock=now, **{"speed": 10.0, "latency": 1.0, **settings})


def request(number: int, place: str = PLACES[0], name: str = "vllm", *, stream: bool = True) -> Request:
    """One of many requests for an answer of TOKENS tokens."""
    body = json.dumps(kit.by_ids(name, [1000 + number], TOKENS, stream=stream)).encode()
    return Request("POST", f"http://{place}{kit.PATHS[name]}", {}, body)


async def ask(fleet: kit.Fleet, asked: Request) -> tuple[float, float, bytes]:
    """When the first bytes of an answer came, when it ended, and its bytes."""
    out, first = bytearray(), list[float]()

    def sink(data: bytes) -> None:
        if not first:
            first.append(now())
        out.extend(data)

    async with fleet.open(asked, Deadlines()) as response:
        await response.read(sink)
    return first[0], now(), bytes(out)


def played(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run in virtual time."""
    return play(main)


@pytest.mark.parametrize(
    ("name", "stream"), [("vllm", True), ("sglang", True), ("llamacpp", True), ("llamacpp", False)]
)
def test_so_many_run_at_once_and_the_others_wait_in_their_order(kimi: Loaded, name: str, stream: bool) -> None:
    """With two slots six answers end in three waves of latency + tokens / speed; nobody is refused."""

    async def main() -> tuple[list[float], dict[str, Any]]:
        fleet, began = kit.Fleet({PLACES[0]: made(kimi, name, slots=2)}), now()
        tasks = [asyncio.ensure_future(ask(fleet, request(n, name=name, stream=stream))) for n in range(6)]
        await asyncio.sleep(1.0)
        early = kit.get(fleet.engines[PLACES[0]], "/counts")
        assert (early["running"], early["queued"]) == (2, 4)
        ends = [(await task)[1] - began for task in tasks]
        return ends, kit.get(fleet.engines[PLACES[0]], "/counts")

    ends, counts = played(main)
    wave = 1.0 + (TOKENS - stream) / 10.0
    assert ends == pytest.approx([wave, wave, 2 * wave, 2 * wave, 3 * wave, 3 * wave], abs=0.3)
    assert (counts["finished"], counts["tokens"], counts["refused"]) == (6, 6 * TOKENS, 0)


def test_all_together_are_no_faster_than_the_total(kimi: Loaded) -> None:
    """Ten answers at 10 tokens a second each take as long as 400 tokens at 20 a second."""

    async def main() -> float:
        fleet, began = kit.Fleet({PLACES[0]: made(kimi, total_speed=20.0)}), now()
        tasks = [asyncio.ensure_future(ask(fleet, request(number))) for number in range(10)]
        return max([(await task)[1] for task in tasks]) - began

    assert played(main) == pytest.approx(1.0 + 10 * TOKENS / 20.0, rel=0.1)


def test_a_client_that_goes_away_gives_its_slot_or_its_place_back(kimi: Loaded) -> None:
    """One that runs and one that waits are cancelled: the next in the queue starts at once, and they are not finished."""

    async def main() -> tuple[float, dict[str, Any]]:
        fleet, began = kit.Fleet({PLACES[0]: made(kimi, slots=1)}), now()
        tasks = [asyncio.ensure_future(ask(fleet, request(number))) for number in range(3)]
        await asyncio.sleep(2.0)
        tasks[1].cancel()
        await asyncio.sleep(0.1)
        tasks[0].cancel()
        first, _, _ = await tasks[2]
        return first - began, kit.get(fleet.engines[PLACES[0]], "/counts?ids=1")

    first, counts = played(main)
    assert first == pytest.approx(3.1, abs=0.2)
    assert [row["status"] for row in counts["answers"]] == ["cancelled", "cancelled", "full"]
    assert 0 < counts["answers"][0]["sent"] < TOKENS
    assert counts["answers"][1]["begun"] is None


def test_a_killed_one_breaks_its_answers_and_comes_back_with_the_same(kimi: Loaded) -> None:
    """Running and waiting answers break, new requests are not sent, the other server goes on; the same prompt gets the same."""

    async def main() -> None:
        fleet = kit.Fleet({place: made(kimi, slots=2) for place in PLACES})
        here = [asyncio.ensure_future(ask(fleet, request(number))) for number in range(3)]
        there = asyncio.ensure_future(ask(fleet, request(0, PLACES[1])))
        await asyncio.sleep(2.0)
        fleet.kill(PLACES[0])
        for task in here:
            with pytest.raises(BrokenError):
                await task
        with pytest.raises(NotSentError):
            await ask(fleet, request(9))
        whole = (await there)[2]
        fleet.revive(PLACES[0], made(kimi, slots=2))
        again = (await ask(fleet, request(0)))[2]
        assert _ids(again) == _ids(whole)
        assert len(_ids(again)) == TOKENS

    played(main)


def _ids(stream: bytes) -> list[int]:
    events = kit.Heard(200, stream).events
    return [number for event in events for choice in event["choices"] for number in choice["token_ids"]]


def test_it_dies_after_so_many_whole_answers(kimi: Loaded) -> None:
    """Not before; what it does then is given from outside."""
    died = list[int]()
    server = made(kimi, fail_after=2, die=lambda: died.append(1))

    async def main() -> None:
        fleet = kit.Fleet({PLACES[0]: server})
        for number in range(3):
            await ask(fleet, request(number))
            assert len(died) == (number >= 1)

    played(main)


def _post(url: str, body: Any) -> bytes:
    asked = urllib.request.Request(url, json.dumps(body).encode())  # noqa: S310  # loopback
    with urllib.request.urlopen(asked, timeout=30) as response:  # noqa: S310  # loopback
        return response.read()


def test_processes_serve_die_and_come_back_at_their_place(kimi_folder: Path, tmp_path: Path) -> None:
    """Over sockets: base URL, queue, equal replicas, a kill that leaves its log, a restart on the same port."""
    body = kit.by_ids("vllm", [1000], 300, stream=True)
    fast = {"set": "length_median=60", "speed": 1000, "latency": 0}
    with kit.replicas(2, "vllm", kimi_folder, tmp_path, slots=1, **fast) as (one, two):
        assert one.url.endswith("/v1")
        first = _post(f"{one.url}/completions", body)
        assert first.endswith(b"data: [DONE]\n\n")
        assert _ids(first) == _ids(_post(f"{two.url}/completions", body)) == one.counts(ids=True)["answers"][0]["ids"]
        place = one.place
        one.kill()
        with pytest.raises(urllib.error.URLError):
            one.counts()
        one.start()
        assert (one.place, one.counts()["requests"]) == (place, 0)
        assert _ids(_post(f"{one.url}/completions", body)) == _ids(first)
        assert [row["status"] for row in one.log()] == ["running", "full", "running", "full"]


def test_a_process_dies_hard_when_its_answers_are_over(kimi_folder: Path, tmp_path: Path) -> None:
    """The last answer arrives whole; then the process is gone by SIGKILL."""
    options = {"set": "length_median=60", "speed": 1000, "latency": 0, "fail_after": 1, "incremental": True}
    with kit.replicas(1, "sglang", kimi_folder, tmp_path, **options) as (one,):
        data = _post(f"{one.url}/generate", kit.by_ids("sglang", [1000], 300, stream=True))
        assert data.endswith(b"data: [DONE]\n\n")
        assert one.process is not None
        assert one.process.wait(10) == -signal.SIGKILL


def test_it_ends_with_its_parent_and_refuses_a_model_without_family(kimi_folder: Path, tmp_path: Path) -> None:
    """As the simulator does; a wrong command is one sentence and exit code 2."""
    parent = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    start = [sys.executable, "-m", "eyas", "simulate", "--engine", "llamacpp", "--tokenizer", str(kimi_folder)]
    with subprocess.Popen([*start, "--parent", str(parent.pid)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        parent.communicate(b"\n")
        assert process.wait(20) == 0
    wrong = subprocess.run(
        [*start, "--model", "me/unknown"], capture_output=True, text=True, env=os.environ, check=False
    )
    assert wrong.returncode == 2
    assert "no family is known" in wrong.stderr
