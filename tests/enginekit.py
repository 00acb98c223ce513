"""Stand-in servers for tests: in this process, on a virtual clock, and as processes that are killed and started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from eyas.errors import NotSentError
from eyas.families import Loaded
from eyas.sim import Action, Reply, Scenario, load
from eyas.sim.cutting import Texts
from eyas.sim.engines import WIRES, Author, Engine, Host, Modes, Settings
from eyas.sim.reply import Step
from eyas.transport import Request
from tests.virtual import FakeTransport, Handler, MemoryLog, now

MODEL = "moonshotai/kimi-k2.5"
SHORT = replace(load("clean"), length_median=40.0, length_sigma=0.6)


def engine(
    name: str, loaded: Loaded, scenario: Scenario = SHORT, *, clock: Callable[[], float] = time.time, **settings: Any
) -> Engine:
    """A stand-in in this process; `settings` are fields of `Settings`, `seed` and `die` are the author's and the engine's."""
    seed, die = settings.pop("seed", 0), settings.pop("die", None)
    of = Settings(**{"model": MODEL, "latency": 0.0, **settings})
    host = Host(of, loaded, Modes(loaded), Texts(loaded.vocab))
    return Engine(WIRES[name](host), Author(loaded, scenario, seed), of, clock, die)


@dataclass(frozen=True)
class Heard:
    """A reply, read at once whatever its times."""

    status: int
    body: bytes

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The events of a stream, `[DONE]` left out."""
        lines = self.body.split(b"\n\n")
        return [json.loads(line[6:]) for line in lines if line.startswith(b"data: ") and line != b"data: [DONE]"]


def post(server: Engine, path: str, body: Any) -> Heard:
    """The reply to a POST."""
    reply = server.handle("POST", path, {}, json.dumps(body).encode())
    data = b"".join(step for _, step in reply.steps if isinstance(step, bytes))
    reply.delivered()
    return Heard(reply.status, data)


def get(server: Engine, path: str) -> Any:
    """The JSON of a GET."""
    return json.loads(b"".join(step for _, step in server.handle("GET", path, {}).steps if isinstance(step, bytes)))


PATHS = {"vllm": "/v1/completions", "sglang": "/generate", "llamacpp": "/completion"}


def by_ids(name: str, prompt: Sequence[int], most: int, *, stream: bool) -> dict[str, Any]:
    """The body that asks an engine with ids for ids."""
    if name == "vllm":
        more = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
        return {
            "prompt": list(prompt),
            "max_tokens": most,
            "return_token_ids": True,
            "skip_special_tokens": False,
            **more,
        }
    if name == "sglang":
        sampling = {"max_new_tokens": most, "skip_special_tokens": False}
        return {"input_ids": list(prompt), "sampling_params": sampling, "stream": stream}
    return {"prompt": list(prompt), "n_predict": most, "return_tokens": True, "stream": stream}


class Fleet(FakeTransport):
    """Several stand-ins on a virtual clock, by HOST:PORT; one may be killed and come back."""

    def __init__(self, engines: Mapping[str, Engine], log: MemoryLog | None = None) -> None:
        super().__init__(self._nobody, log)
        self.engines = dict(engines)
        self.dead: set[str] = set()
        self._lives: dict[str, list[Reply]] = {place: [] for place in engines}

    def _nobody(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        raise AssertionError(f"{method} {target} goes to no stand-in")

    def answerer(self, request: Request) -> Handler:
        """The stand-in at the request's place."""
        place = urlsplit(request.url).netloc
        if place in self.dead or place not in self.engines:
            raise NotSentError(f"{place}: connection refused")

        def handle(method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
            reply = self.engines[place].handle(method, target, headers, body)
            reply.steps = self._mortal(place, reply.steps, len(self._lives[place]))
            self._lives[place].append(reply)
            return reply

        return handle

    def _mortal(self, place: str, steps: Iterator[Step], number: int) -> Iterator[Step]:
        """The steps as long as the server lives."""
        lives = self._lives[place]
        for step in steps:
            yield (0.0, Action.RESET) if lives is not self._lives[place] else step

    def kill(self, place: str) -> None:
        """Every connection is reset, at its next byte at the latest, and nobody listens any more."""
        self.dead.add(place)
        lives, self._lives[place] = self._lives[place], []
        for reply in lives:
            reply.wake()

    def revive(self, place: str, fresh: Engine) -> None:
        """A new server at the same place; it knows nothing of the one before."""
        self.engines[place] = fresh
        self.dead.discard(place)


class Replica:
    """A stand-in in a process of its own."""

    def __init__(self, kind: str, tokenizer: Path, log: Path, **options: object) -> None:
        """`options` as `eyas simulate` has them: `total_speed=100`, `no_ids=True`, `set="length_median=50"`, or a list of those."""
        self._command = [sys.executable, "-m", "eyas", "simulate", "--engine", kind, "--tokenizer", str(tokenizer)]
        self._command += ["--parent", str(os.getpid()), "--max-seconds", "1800", "--log", str(log)]
        for name, value in options.items():
            for each in value if isinstance(value, list) else [value]:
                self._command += [f"--{name.replace('_', '-')}", *([] if each is True else [str(each)])]
        self._log = log
        self.url = ""
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, at the place where it was before if it was."""
        self.stop()
        at = urlsplit(self.url).port or 0
        self.process = subprocess.Popen([*self._command, "--port", str(at)], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        assert self.url, "the stand-in did not start"

    def kill(self) -> None:
        """SIGKILL: its connections break, its books are gone, its log stays."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM, and wait."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.send_signal(number)  # nothing happens to one that has ended
            process.communicate()

    @property
    def place(self) -> str:
        """HOST:PORT."""
        return urlsplit(self.url).netloc

    def counts(self, *, ids: bool = False) -> dict[str, Any]:
        """Its books since the last start."""
        with urllib.request.urlopen(
            f"http://{self.place}/counts{'?ids=1' if ids else ''}", timeout=60
        ) as response:  # loopback
            return json.load(response)

    def log(self) -> list[dict[str, Any]]:
        """Begin and end of every answer of all its lives."""
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        return [json.loads(line) for line in lines]


@contextmanager
def replicas(count: int, kind: str, tokenizer: Path, folder: Path, **options: object) -> Generator[list[Replica]]:
    """So many started stand-ins; their logs are in the folder. All of them answer the same prompt alike."""
    made = [Replica(kind, tokenizer, folder / f"{kind}-{number}.log", **options) for number in range(count)]
    with ExitStack() as stack:
        for replica in made:
            stack.callback(replica.stop)
            replica.start()
        yield made


__all__ = ["MODEL", "PATHS", "SHORT", "Fleet", "Heard", "Replica", "by_ids", "engine", "get", "now", "post", "replicas"]
