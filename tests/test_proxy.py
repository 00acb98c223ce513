"""Runs through a proxy that delays, cuts, resets, drips, lies and redirects: each ends as the design's table says."""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from pydantic import SecretStr

from eyas import connection
from eyas.config import parse
from eyas.engine.session import Options
from eyas.engine.sessions import run_config
from eyas.errors import BrokenError
from eyas.families import Loaded
from eyas.records import Run
from eyas.sim import wire
from eyas.sim.scenarios import load
from eyas.sim.world import World
from eyas.transport import MOST_FETCHED, Deadlines, HttpTransport, Request, fetch
from eyas.types import FailureKind, Verdict
from tests.kit import KEY, prompt_key
from tests.proxy import GIGABYTE, Fault, made, proxy
from tests.test_transport import go

PAGE = b"<html><body><h1>502 Bad Gateway</h1></body></html>"
PROMPTS = 3
RUN_TOML = """
[run]
dir = "run"
[target]
model = "moonshotai/kimi-k2.5"
base_url = "{url}"
tokenizer = "{tokenizer}"
max_tokens = 1024
recover = false
[budget]
usd = 10.0
[limits]
headers_seconds = 1.0
silence_seconds = 1.5
in_flight = 1
[[datasets]]
name = "A"
source = "prompts.jsonl"
"""


@dataclass(frozen=True, slots=True)
class Ends:
    """How a run through a fault ends: verdicts of its works, kinds of failure, unknown costs, and requests for a prompt.

    `asked` is how often the first prompt reached the API, `chats` how many requests left in all.
    """

    partial: int = 0
    failures: tuple[FailureKind, ...] = ()
    unknown: int = 0
    asked: int = 1
    chats: int = PROMPTS


LOST = Ends(failures=(FailureKind.LOST,), unknown=1, asked=1, chats=PROMPTS + 1)
"""Nothing came that names the answer: the whole reservation is held, and the work is asked again under its own."""
LOST_WITH_ID = Ends(failures=(FailureKind.LOST,), asked=2, chats=PROMPTS + 1)
KEPT = Ends(partial=1, failures=(FailureKind.CUT,))
FREE = Ends(failures=(FailureKind.UPSTREAM,), chats=PROMPTS + 1)

FAULTS: dict[str, tuple[list[Fault], Ends]] = {
    "a slow answer": ([Fault(delay=0.4)], Ends()),
    "a slow drip": ([Fault(piece=700, pause=0.005)], Ends()),
    "headers too late": (
        [Fault(delay=30.0)],
        Ends(failures=(FailureKind.LOST,), unknown=1, asked=2, chats=PROMPTS + 1),
    ),
    "cut amid the headers": (
        [Fault(after=40)],
        Ends(failures=(FailureKind.LOST,), unknown=1, asked=2, chats=PROMPTS + 1),
    ),
    "cut before a token": ([Fault(after=330)], LOST_WITH_ID),
    "reset before a token": ([Fault(after=330, end="reset")], LOST_WITH_ID),
    "cut amid tokens": ([Fault(after=60_000)], KEPT),
    "reset amid tokens": ([Fault(after=60_000, end="reset")], KEPT),
    "half-closed amid tokens": ([Fault(after=60_000, end="half")], KEPT),
    "a storm of 429": (
        [made("429 Too Many Requests", b'{"error":{"code":429,"message":"slow down"}}', Retry_After="0")] * 6,
        Ends(failures=(FailureKind.RATE_LIMIT,) * 6, chats=PROMPTS + 6),
    ),
    "a page with 502": ([made("502 Bad Gateway", PAGE, "text/html")], LOST),
    "a page with 504 without a length": (
        [Fault(answer=b"HTTP/1.1 504 Gateway Timeout\r\n\r\n" + PAGE, after=0, end="close")],
        LOST,
    ),
    "a page with 200": ([made("200 OK", PAGE, "text/html")], LOST),
    "garbage with 200": ([made("200 OK", b'{"choices":[{"delta":')], LOST),
    "no JSON with 500": ([made("500 Internal Server Error", b"\xff\xfe{")], LOST),
    "no HTTP": ([Fault(answer=b"SSH-2.0-OpenSSH_9.2\r\n\r\n")], LOST),
    "headers without an end": ([Fault(answer=b"HTTP/1.1 200 OK\r\nX-A: ", more=GIGABYTE)], LOST),
    "a redirect 302": ([made("302 Found", b"", Location="{elsewhere}")], FREE),
    "a redirect 307": ([made("307 Temporary Redirect", b"", Location="{elsewhere}")], FREE),
    "a gigabyte with 200": ([made("200 OK", b"", more=GIGABYTE)], LOST),
    "a gigabyte with 502": ([made("502 Bad Gateway", b"", more=GIGABYTE)], LOST),
}


@asynccontextmanager
async def trap() -> AsyncGenerator[tuple[str, list[str]]]:
    """A port that nobody may connect to: its address, and who did."""
    came: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            came.append((await reader.read(4096)).decode(errors="replace"))
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/api/v1/chat/completions", came
    finally:
        server.close()


def pointing(fault: Fault, address: str) -> Fault:
    """The fault with that address in its answer."""
    if fault.answer is None:
        return fault
    answer = fault.answer.replace(b"{elsewhere}", address.encode())
    return Fault(fault.delay, fault.after, fault.end, fault.piece, fault.pause, answer, fault.more)


async def through(faults: list[Fault], folder: Path, tokenizer: Path, kimi: Loaded) -> dict[str, Any]:
    """Run over three prompts, one at a time, through the proxy; what the proxy, the books and the trap saw."""
    scenario = msgspec.structs.replace(
        load("clean"),
        tps=4000.0,
        ttft=0.01,
        length_median=300.0,
        length_sigma=0.2,
        generation_delay=0.0,
        keepalive=30.0,
    )
    world = World(scenario, 0, kimi.vocab, asyncio.get_running_loop().time, kimi.count_prompt)
    lines = [f'{{"prompt": "Question {number}"}}\n' for number in range(PROMPTS)]
    (folder / "prompts.jsonl").write_text("".join(lines))
    server = await wire.serve(world)
    async with (
        trap() as (elsewhere, came),
        proxy(server.port, *(pointing(each, elsewhere) for each in faults)) as between,
    ):
        text = RUN_TOML.format(url=between.url, tokenizer=tokenizer)
        await run_config(parse(text, folder / "RUN.toml"), text, SecretStr(KEY), Options())
        assert came == []
        assert all(KEY.encode() in chat for chat in between.chats)
    await server.close()
    return {"chats": between.chats, "sent": between.sent, "entries": list(world.books.entries.values())}


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_run_ends_as_the_table_says(
    name: str, tmp_path: Path, kimi_folder: Path, kimi: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One fault, then an ordinary API: verdicts, failures, requests and money are those of the table."""
    faults, ends = FAULTS[name]
    monkeypatch.setattr(connection, "MOST_BODY", 4 * 1024 * 1024)
    seen = go(through(faults, tmp_path, kimi_folder, kimi))
    assert seen["sent"] < 64 * 1024 * 1024
    assert len(seen["chats"]) == ends.chats
    with closing(Run(tmp_path / "run")) as run:
        state, money = run.state, run.state.money
        verdicts = Counter(known.verdict for known in state.works.values())
        assert verdicts == Counter({Verdict.DONE: PROMPTS - ends.partial}) + Counter({Verdict.PARTIAL: ends.partial})
        settled = [attempt.settled for attempt in state.attempts.values() if attempt.settled]
        assert tuple(each.kind for each in settled if each.kind) == ends.failures, [each.detail for each in settled]
        assert len(state.unknown()) == ends.unknown
        keys = [prompt_key(run.prompt(work.dataset, work.prompt_id)) for work in state.works]
    billed = sum(entry.counts.cost for entry in seen["entries"])
    assert money.settled <= billed <= money.settled + money.unknown
    assert ends.unknown or billed == money.settled
    asked = Counter(entry.prompt_key for entry in seen["entries"])
    assert sorted(asked[key] for key in keys) == [1] * (PROMPTS - 1) + [ends.asked]


def test_a_body_is_ended_at_the_cap_and_costs_no_memory() -> None:
    """Of a gigabyte no more is read than the cap of its status, as it comes; what is read at once is capped sooner."""

    async def work() -> None:
        bodies = [made(status, b"", more=GIGABYTE) for status in ("200 OK", "502 Bad Gateway", "200 OK")]
        async with (
            trap() as (nobody, _),
            proxy(urlsplit(nobody).port or 0, *bodies) as between,
            HttpTransport() as transport,
        ):
            request = Request("POST", f"{between.url}/chat/completions")
            for most in (connection.MOST_BODY, connection.MOST_ERROR):
                with pytest.raises(BrokenError, match=f"passed {most} bytes"):
                    async with transport.open(request, Deadlines()) as response:
                        await response.read(lambda _: None)
            with pytest.raises(BrokenError, match=f"passed {MOST_FETCHED} bytes"):
                await fetch(transport, request, Deadlines())
            assert between.sent < 2 * connection.MOST_BODY

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    go(work())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150_000  # KiB
