"""The load server of bench/load and the figures of bench/peers: what the benchmark counts is what happened."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from eyas.backends.stream import Stream
from eyas.families import Loaded
from eyas.providers.catalog import endpoints
from eyas.types import Completion

sys.path.insert(0, str(Path(__file__).parent.parent / "bench"))

import load
from peers import figures, picture, table
from peers.case import Case
from peers.figures import Trial
from peers.watch import delays

_HEADERS = Path("/usr/include/openssl/ssl.h")
needs_gcc = pytest.mark.skipif(
    not (shutil.which("gcc") and shutil.which("openssl") and _HEADERS.exists()),
    reason="the load server needs gcc, openssl and its headers: apt-get install gcc libssl-dev openssl",
)
SMALL = Case(
    stream=False, tls=False, in_flight=2, prompts=6, latency_min=0.001, latency_max=0.003, size=600, pieces=9,
    rate=1000.0, ttft=0.001,
)  # fmt: skip


def post(server: load.Server, body: dict[str, Any]) -> tuple[str, bytes]:
    """(generation id by the header, body) of an answer."""
    context = ssl.create_default_context(cafile=server.ca) if server.ca else None
    request = urllib.request.Request(server.base_url + "/chat/completions", data=json.dumps(body).encode())  # noqa: S310
    with urllib.request.urlopen(request, context=context, timeout=60) as response:  # noqa: S310
        return response.headers["X-Generation-Id"], response.read()


def taken(body: bytes) -> Completion:
    """The answer as eyas takes it in."""
    stream = Stream()
    stream.feed(body)
    stream.end()
    outcome = stream.outcome()
    assert isinstance(outcome, Completion)
    return outcome


@needs_gcc
@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("stream", [False, True])
def test_answers_are_whole_and_counted(kimi: Loaded, *, tls: bool, stream: bool) -> None:
    """Plain or TLS, streamed or not: eyas reads a whole answer whose count is that of its tokens, and its own stop."""
    with load.start(tls=tls, **SMALL.flags) as server:
        name, body = post(server, {"stream": stream})
        answer, stats = taken(body), server.stats()
    assert (answer.generation_id, answer.finish.value) == (name, "stop")
    assert answer.usage is not None
    tokens = sum(len(kimi.vocab.encode(text)) for text in (answer.reasoning, answer.content))
    assert answer.usage.completion_tokens == tokens + 2  # </think> and the stop token
    assert (stats["requests"], stats["finished"], stats["peak"], stats["open"]) == (1, 1, 1, 0)
    assert stats["pieces"] == (SMALL.pieces if stream else 0)
    assert stats["handshakes"] == (1 if tls else 0)


@needs_gcc
def test_server_and_harness_draw_the_same_latencies() -> None:
    """The latency of a request is a function of its number that both sides know, and its end is told by that number."""
    with load.start(full=1, **SMALL.flags) as server:
        names = [post(server, {})[0] for _ in range(SMALL.prompts)]
        stats, finished = server.stats(), server.finished()
    assert [int(name.rpartition("-")[2]) for name in names] == [1, 2, 3, 4, 5, 6]
    assert finished == sorted(finished)
    assert finished[0] > 0
    assert stats["nominal"] == pytest.approx(SMALL.mean() * SMALL.prompts, abs=1e-5)
    assert (stats["full"]["requests"], stats["last"]["requests"]) == (1, 6)
    assert stats["integral"] - stats["overtime"] >= stats["nominal"] - 1e-5


@needs_gcc
def test_endpoint_list_is_one_that_eyas_reads() -> None:
    """The list names as many int4 endpoints as were asked for."""
    with (
        load.start(endpoints=3) as server,
        urllib.request.urlopen(f"{server.base_url}/models/{load.MODEL}/endpoints", timeout=60) as response,  # noqa: S310
    ):
        found = endpoints(load.MODEL, json.load(response)["data"]).endpoints
    assert [(each.tag, each.quantization) for each in found] == [
        ("chutes/int4", "int4"), ("siliconflow/int4", "int4"), ("atlas-cloud/int4", "int4"),
    ]  # fmt: skip


@needs_gcc
def test_wrong_flag_is_said() -> None:
    """A server that does not start is an error at once, not a hang."""
    with pytest.raises(load.NoServerError, match="ended at once"), load.start(endpoints=9):
        pass


@needs_gcc
def test_floor_reads_every_stream() -> None:
    """The drain ends when all of its streams have, and the server lost none."""
    with load.start(tls=True, **SMALL.flags) as server:
        port = server.base_url.rpartition(":")[2].partition("/")[0]
        subprocess.run([str(load.drain()), port, server.ca, "5"], check=True, capture_output=True, timeout=60)
        stats = server.stats()
    assert (stats["finished"], stats["broken"], stats["pieces"]) == (5, 0, 5 * SMALL.pieces)


def test_ideal_is_that_of_a_client_without_gaps() -> None:
    """A stream of 2 s with 2 in flight and 6 prompts takes three rounds."""
    case = Case(**{**SMALL.to_json(), "stream": True, "rate": 9.0, "pieces": 9, "ttft": 1.0})
    assert (case.ideal(), case.mean()) == (6.0, 2.0)


def mark(clock: float, integral: float, overtime: float = 0.0) -> dict[str, float]:
    """A count as the server gives it."""
    return {"clock": clock, "integral": integral, "overtime": overtime}


def test_throughput_is_what_was_worked_off() -> None:
    """Half of the limit in flight is half of the ideal; time beyond an answer's due end is no work; a short window is none."""
    case = Case(**{**SMALL.to_json(), "latency_min": 2.0, "latency_max": 2.0})
    stats = {"first": mark(0, 0), "full": mark(10, 4), "last": mark(20, 14)}
    assert figures.throughput(stats, [], case) == (0.5, 0.5)
    assert figures.throughput({**stats, "last": mark(20, 14, 5)}, [], case) == (0.25, 0.25)
    assert figures.throughput({**stats, "last": mark(11.5, 7)}, [], case) is None


def test_tool_below_the_limit_is_measured_after_the_ramp() -> None:
    """Without the limit reached, the steady part begins at 1.2 times the ramp of the same number in flight."""
    case = Case(**{**SMALL.to_json(), "in_flight": 1000, "latency_min": 2.0, "latency_max": 2.0})
    stats = {"first": mark(100, 0), "full": None, "last": mark(114, 5100)}
    looks = [mark(103.9, 50), mark(104.0, 100), mark(105.0, 600)]
    assert figures.throughput(stats, looks, case) == (250.0, 0.5)


def test_delay_to_the_journal_is_to_the_look_that_saw_it() -> None:
    """An answer counts as durable at the first look that reads its event; one that no look saw is not counted."""
    events = [
        (1, {"e": "headers", "attempt": 7, "generation_id": "gen-17-0000000002"}),
        (2, {"e": "settled", "attempt": 7}),
        (3, {"e": "settled", "attempt": 8}),
    ]
    assert delays(events, [(9.0, 1), (10.5, 3)], [0, 10_000]) == [0.5]
    assert delays(events, [(9.0, 1)], [0, 10_000]) == []


def test_table_and_picture_leave_nobody_out() -> None:
    """A tool that cannot run has a row with the reason, one that was cut off says so, and each measured one has its bars."""
    trials = [
        Trial("eyas", 0, share=0.99, cpu_ms=0.5, lost=0, exit=0),
        Trial("eyas", 1, share=0.97, cpu_ms=0.7, lost=0, exit=0),
        Trial("curator", 0, error="its batches are not streamed"),
        Trial("flexllm", 0, cut=30.0, answers=12, exit=-9),
    ]
    text = table.markdown("case", "ideal", trials, 2)
    assert "| 98.0 % (97.0 % to 99.0 %) | 0.60 (0.50 to 0.70) | 0 |" in text
    assert "its batches are not streamed |" in text
    assert "cut off after 30 s with 12 answers (1 of 1 runs)" in text
    drawn = picture.svg([("case <1>", trials)])
    assert "case &lt;1&gt;" in drawn
    assert drawn.count("<rect") == 3  # the ground and two bars of eyas
