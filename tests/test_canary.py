"""The API key stands nowhere: not in files, output, logs, process lists, tracebacks or pickles, whatever goes wrong."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import pickle
import shutil
import signal
import ssl
import subprocess
import sys
import traceback
from collections.abc import AsyncGenerator, Awaitable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from pydantic import SecretStr

import eyas
from eyas.backends.openrouter import OpenRouter
from eyas.config import parse
from eyas.engine.session import Options
from eyas.engine.sessions import run_config
from eyas.errors import EyasError, LockedError
from eyas.families import Loaded
from eyas.lock import lock
from eyas.sim import wire
from eyas.sim.scenarios import load
from eyas.sim.world import World
from eyas.transport import Deadlines, HttpTransport, Request, fetch
from tests.proxy import Fault, Proxy, made, proxy
from tests.test_proxy import RUN_TOML
from tests.test_transport import go, server, writes

CANARY = "sk-or-v1-canary-0f1e2d3c4b5a69788796a5b4c3d2e1f0"
FORMS = (CANARY.encode(), base64.b64encode(CANARY.encode()), CANARY.encode("utf-16-le"))
PACKAGE = str(Path(eyas.__file__).parent) + os.sep
"""Frames of eyas itself; the checkout may have any name."""
LOGGING = "import logging\nlogging.basicConfig(level=1)\nlogging.log(1, 'logging is on at level 1')\n"


def refusal(code: int, message: str, **metadata: object) -> Fault:
    """An error envelope that says the key again, as some servers do."""
    error = {"code": code, "message": f"{message} (Bearer {CANARY})", "metadata": metadata}
    return made(f"{code} Error", msgspec.json.encode({"error": error}), Retry_After="0", X_Key=CANARY)


@dataclass(frozen=True, slots=True)
class Case:
    """What is done wrong: to the requests, or to RUN.toml; `ends` are exit codes, `says` must stand on stderr."""

    faults: tuple[Fault, ...] = ()
    change: tuple[str, str] = ("", "")
    ends: tuple[int, ...] = (2,)
    says: str = "eyas: "


CASES = {
    "all that is asked again": Case(
        (
            refusal(429, "slow down"),
            refusal(503, "busy"),
            refusal(500, "upstream"),
            refusal(402, "in flight", limit_source="openrouter_in_flight_budget"),
            made("502 Bad Gateway", f"<html>{CANARY}</html>".encode(), "text/html"),
            made("200 OK", f'data: {{"error":{{"code":500,"message":"{CANARY}"}}}}\n\n'.encode(), "text/event-stream"),
            made("200 OK", f'{{"choices": "{CANARY}"'.encode()),
            made("302 Found", b"", Location=f"http://127.0.0.1:1/{CANARY}"),
            Fault(after=40, end="reset"),
            Fault(after=4000),
            Fault(delay=30.0),
        ),
        ends=(0, 4, 5),
        says="spent",
    ),
    "a refused key": Case((refusal(401, "bad key"),), ends=(6,), says="Mend the key"),
    "no credits": Case((refusal(402, "insufficient credits"),), ends=(6,)),
    "a key's limit": Case((refusal(403, "Key limit exceeded"),), ends=(6,)),
    "a refused prompt": Case((refusal(403, "flagged", reasons=["x"]),) * 2, ends=(4,)),
    "a refused request": Case((refusal(400, "bad request"),) * 2, ends=(4,)),
    "no storage": Case(change=('dir = "run"', 'dir = "prompts.jsonl"'), ends=(7,)),
    "a wrong key of RUN.toml": Case(change=("usd = 10.0", f'usd = "{CANARY}"')),
    "a key in the address": Case(change=("http://", f"http://{CANARY}@"), says="the address alone"),
    "another family": Case(change=("[budget]", 'family = "none"\n[budget]')),
    "an unknown model": Case(change=("kimi-k2.5", "kimi-k2.5-none"), says="does not know the model"),
    "nobody there": Case(change=("http://127.0.0.1:", "http://127.0.0.1:1/"), says="cannot be reached"),
}


@asynccontextmanager
async def market(kimi: Loaded, *faults: Fault) -> AsyncGenerator[Proxy]:
    """A fast simulator in this process behind a proxy with faults."""
    quick = {"tps": 2000.0, "ttft": 0.01, "length_median": 100.0, "generation_delay": 0.0}
    scenario = msgspec.structs.replace(load("clean"), **quick)
    world = World(scenario, 0, kimi.vocab, asyncio.get_running_loop().time, kimi.count_prompt)
    running = await wire.serve(world)
    async with proxy(running.port, *faults) as between:
        yield between
    await running.close()


def lay_out(folder: Path, url: str, tokenizer: Path, change: tuple[str, str] = ("", "")) -> None:
    """Prompts, RUN.toml, and a start-up file that turns all logging on."""
    (folder / "prompts.jsonl").write_text('{"prompt": "Question 1"}\n{"prompt": "Question 2"}\n')
    (folder / "RUN.toml").write_text(RUN_TOML.format(url=url, tokenizer=tokenizer).replace(*change))
    (folder / "start").mkdir()
    (folder / "start" / "sitecustomize.py").write_text(LOGGING)


async def watched(folder: Path, *arguments: str, key_file: bool = False) -> tuple[int, bytes, set[bytes]]:
    """`eyas` with everything that talks turned on: exit code, both outputs, and what the process list showed."""
    env = {**os.environ, "PYTHONASYNCIODEBUG": "1", "PYTHONPATH": str(folder / "start"), "TMPDIR": str(folder)}
    env |= {"OPENROUTER_API_KEY": "" if key_file else CANARY, "PYTHONFAULTHANDLER": "1"}
    env |= dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy"), "http://127.0.0.1:1")  # not asked
    command = [sys.executable, "-X", "dev", "-m", "eyas", *arguments]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, cwd=folder, env=env, stdout=pipe, stderr=pipe)
    told = asyncio.ensure_future(process.communicate())
    listed: set[bytes] = set()
    while not told.done():
        listed |= set(listing(process.pid, "environ" if key_file else "cmdline"))
        await asyncio.wait([told], timeout=0.05)
    out, err = await told
    assert process.returncode is not None
    return process.returncode, out + err, listed


def listing(pid: int, *more: str) -> Iterator[bytes]:
    """What the process list holds of a process; nothing once it ended."""
    for name in ("cmdline", "comm", "status", *more):
        with contextlib.suppress(OSError):
            yield Path(f"/proc/{pid}/{name}").read_bytes()


def assert_nowhere(folder: Path, *others: bytes) -> None:
    """Byte for byte: no file below the folder, and nothing else that is given, holds the key."""
    found = [path.name for path in folder.rglob("*") if path.is_file() and any(f in path.read_bytes() for f in FORMS)]
    assert not found
    for other in others:
        assert not any(form in other for form in FORMS), other[-2000:]


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_key_stands_nowhere(name: str, tmp_path: Path, kimi_folder: Path, kimi: Loaded) -> None:
    """Each class of error in a real process, logging at level 1, asyncio's debug mode on: the key is found nowhere."""
    case = CASES[name]

    async def whole() -> tuple[int, bytes, set[bytes]]:
        async with market(kimi, *case.faults) as between:
            lay_out(tmp_path, between.url, kimi_folder, case.change)
            ended = await watched(tmp_path, "run", "RUN.toml", "--yes", "--json")
            assert all(CANARY.encode() in chat for chat in between.chats)
            more = () if case.says != "spent" else (("status", "run"), ("export", "run", "--out", "rows"))
            shown = [await watched(tmp_path, *words) for words in more]
            return ended[0], b"".join(each[1] for each in (ended, *shown)), ended[2].union(*(x[2] for x in shown))

    code, output, listed = go(whole())
    assert code in case.ends, output[-3000:]
    assert b"logging is on at level 1" in output
    assert case.says.encode() in output, output[-3000:]
    if CANARY in "".join(case.change):  # the user wrote it there
        (tmp_path / "RUN.toml").unlink()
    assert_nowhere(tmp_path, output, *listed)
    made_by_run = [path for path in (tmp_path / "run", *tmp_path.glob("run/*")) if path.exists()]
    assert not [path for path in made_by_run if path.stat().st_mode & 0o077]  # prompts and answers are the owner's only


def test_an_interrupted_run_and_a_key_file(tmp_path: Path, kimi_folder: Path, kimi: Loaded) -> None:
    """With --key-file the key is not even in the environment; two ^C do not print it; a second run is refused by pid."""
    secret = tmp_path / "elsewhere" / "key"
    secret.parent.mkdir()
    secret.write_text(f"{CANARY}\n")
    (tmp_path / "at").mkdir()

    async def whole() -> tuple[int, bytes, set[bytes]]:
        async with market(kimi, Fault(delay=60.0)) as between:
            lay_out(tmp_path / "at", between.url, kimi_folder, ("headers_seconds = 1.0", "headers_seconds = 60.0"))
            others = children()
            running = asyncio.ensure_future(
                watched(tmp_path / "at", "run", "RUN.toml", "--yes", "--key-file", str(secret), key_file=True)
            )
            while not between.chats and not running.done():
                await asyncio.wait([running], timeout=0.02)
            (child,) = children() - others
            with pytest.raises(LockedError, match=f"in use by process {child}:"), lock(tmp_path / "at" / "run"):
                pass
            for _ in range(2):
                os.kill(child, signal.SIGINT)
                await asyncio.wait([running], timeout=0.5)
            assert CANARY.encode() in between.chats[0]
            return await running

    code, output, listed = go(whole())
    assert code == 130, output[-3000:]
    assert_nowhere(tmp_path / "at", output, *listed)


def children() -> set[int]:
    """The processes that this one has started, and that are there."""
    return {int(each) for each in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


def errors_of(folder: Path, tokenizer: Path, kimi: Loaded) -> list[BaseException]:
    """Errors as a library's user catches them, one of each way."""
    found: list[BaseException] = []
    key = SecretStr(CANARY)

    async def caught(work: Awaitable[object]) -> None:
        try:
            await work
        except EyasError as error:
            found.append(error)

    async def whole() -> None:
        async with market(kimi, Fault(after=40), refusal(401, "no")) as between, HttpTransport() as transport:
            api = OpenRouter(between.url, "moonshotai/kimi-k2.5", key)
            late = Deadlines(headers=0.05, connect=0.5)
            await caught(fetch(transport, api.chat(b"{}"), late))
            answer = await fetch(transport, api.chat(b"{}"), Deadlines())
            for read in (api.read_list, lambda _, answer: api.read_generation(*answer)):
                try:
                    read("the list", answer)
                except EyasError as error:
                    found.append(error)
            await caught(fetch(transport, OpenRouter("http://127.0.0.1:1", "m", key).providers(), late))
            broken = {"Authorization": f"Bearer {CANARY}", "X": "a\nb"}
            await caught(fetch(transport, Request("GET", between.url, broken), late))
            text = RUN_TOML.format(url=between.url, tokenizer=tokenizer)
            config = parse(text, folder / "RUN.toml")
            for options in (Options(), Options()):
                with lock(config.dir):
                    await caught(run_config(config, text, key, options))
            (folder / "run" / "journal.db").write_bytes(b"not a journal" * 1000)
            await caught(run_config(config, text, key, Options()))

    (folder / "prompts.jsonl").write_text('{"prompt": "Question 1"}\n')
    go(whole())
    return found


def test_errors_can_be_printed_and_pickled(tmp_path: Path, kimi_folder: Path, kimi: Loaded) -> None:
    """No error holds the key in its text, its chain, its pickle, or the printed locals of its traceback."""
    found = errors_of(tmp_path, kimi_folder, kimi)
    assert len({type(error) for error in found}) >= 5, found
    for error in found:
        frames = traceback.TracebackException.from_exception(error, capture_locals=True).stack
        ours = [repr(frame.locals) for frame in frames if frame.filename.startswith(PACKAGE)]
        assert ours, "no frame of eyas is in the traceback"
        shown = [*ours, repr(error), str(error), repr(vars(error)), *traceback.format_exception(error)]
        assert CANARY not in "".join(shown), (error, [text[-1500:] for text in shown if CANARY in text])
        assert CANARY.encode() not in pickle.dumps(error)


@pytest.mark.parametrize("size", [1, 2, 7, 4096])
def test_a_key_that_comes_back_is_veiled(size: int) -> None:
    """A server that says the key again, cut anywhere, in body or headers, gets it neither written nor read."""
    body = f"x{CANARY[:9]} {CANARY}{CANARY} sk-or {CANARY[:-1]}".encode()
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    chunked = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    head = f"HTTP/1.1 200 OK\r\nX-Key: a {CANARY}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()

    async def work() -> None:
        async with server(writes(head, chunked)) as served, HttpTransport() as transport:
            request = Request("GET", served.url, {"Authorization": f"Bearer {CANARY}"})
            _, headers, got = await fetch(transport, request, Deadlines())
            assert got == body.replace(CANARY.encode(), b"[the key]")
            assert headers["x-key"] == "a [the key]"
            plain = await fetch(transport, Request("GET", served.url), Deadlines())
            assert plain[2] == body

    go(work())


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is needed to make a certificate")
def test_an_unknown_certificate_is_refused(tmp_path: Path, kimi_folder: Path) -> None:
    """A server with a certificate of its own: exit 2 with a clear sentence, and not one byte of a request reached it."""
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    more = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(tmp_path / "pem"), "-out", str(tmp_path / "crt")]
    subprocess.run([*command.split(), *more], check=True, capture_output=True)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(tmp_path / "crt", tmp_path / "pem")

    async def work() -> tuple[int, bytes, set[bytes]]:
        async with server(writes(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), tls) as served:
            lay_out(tmp_path, served.url, kimi_folder)
            ended = await watched(tmp_path, "run", "RUN.toml", "--yes")
            assert not served.requests
            return ended

    code, output, listed = go(work())
    assert code == 2
    assert b"CERTIFICATE_VERIFY_FAILED" in output
    assert b"check [target] base_url" in output
    assert_nowhere(tmp_path, output, *listed)
