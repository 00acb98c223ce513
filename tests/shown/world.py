"""What the commands of the docs meet in place of the world: a simulator for the API, no network, no hub.

The seam is the transport: requests to OpenRouter go to a simulator on loopback, addresses that a page shows to the server
that stands for them; an address of nobody ends the test.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import pytest

from eyas import cli, vocab
from eyas.errors import BrokenError
from eyas.transport import HttpTransport, Request
from eyas.vocab import Layout, Vocab
from tests.shown.pages import ROOT

VARIABLE = "EYAS_SHOWN"
"""The environment variable by which a process of its own is told its world."""
KEY = "sk-shown"
_API = "openrouter.ai"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class NetworkReachedError(BaseException):
    """A command of the docs asked an address that nobody stands for; no code catches it."""


@dataclasses.dataclass(frozen=True)
class World:
    """Who answers in place of whom.

    `api` is HOST:PORT of the simulator, `places` those of the servers behind the addresses that pages show, `tokenizers` the
    folders behind hub ids.
    """

    api: str
    tokenizers: dict[str, str]
    places: dict[str, str] = dataclasses.field(default_factory=dict[str, str])
    lost: bool = False
    """Whether every answer is lost before its headers come, so that nobody knows what it cost."""

    def route(self, url: str) -> str:
        """Where a request really goes.

        Raises:
            NetworkReachedError: it would leave the machine.
        """
        parts = urlsplit(url)
        if parts.hostname == _API:
            return parts._replace(scheme="http", netloc=self.api).geturl()
        if parts.netloc in self.places:
            return parts._replace(netloc=self.places[parts.netloc]).geturl()
        if parts.hostname in _LOOPBACK:
            return url
        raise NetworkReachedError(f"{url}: a command of the docs would reach the network")

    def tokenizer(self, spec: str) -> Path:
        """The folder of a tokenizer."""
        found = Path(self.tokenizers.get(spec, spec)).expanduser()
        if found.is_dir():
            return found
        raise NetworkReachedError(f"{spec}: a command of the docs would ask the hub for a tokenizer")


_LOADED: dict[tuple[Path, int], tuple[Vocab, Layout | None]] = {}
_load = Vocab.load


def _loaded(folder: Path, layout: Layout | None) -> Vocab:
    """A vocabulary is read once for all commands: it takes up to two seconds, and nobody changes one."""
    key = (folder, id(layout))
    if key not in _LOADED:
        _LOADED[key] = (_load(folder, layout), layout)
    return _LOADED[key][0]


@contextmanager
def reached(world: World) -> Generator[None]:
    """Everything asked in this process is asked of that world; one core, so that no other process is started."""
    opened = HttpTransport.open

    def routed(self: HttpTransport, request: Request, *more: Any) -> Any:
        if world.lost and request.url.endswith("/chat/completions"):
            raise BrokenError("reset by the peer")
        return opened(self, dataclasses.replace(request, url=world.route(request.url)), *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HttpTransport, "open", routed)
        patch.setattr(vocab, "resolve", world.tokenizer)
        patch.setattr(Vocab, "load", _loaded)
        patch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
        patch.setattr(os, "cpu_count", lambda: 1)
        yield


def told(world: World) -> dict[str, str]:
    """The environment that gives a process of its own that world."""
    return {
        **os.environ,
        VARIABLE: json.dumps(dataclasses.asdict(world)),
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
    }


def programs(folder: Path) -> None:
    """`eyas` and `python` for a shell: they ask the world that the environment tells."""
    folder.mkdir(exist_ok=True)
    for name, words in (("eyas", "-m tests.shown.world "), ("python", "")):
        (folder / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {words}"$@"\n', encoding="utf-8")
        (folder / name).chmod(0o755)


def start(world: World, folder: Path, errors: IO[str], *words: str) -> subprocess.Popen[str]:
    """`eyas WORDS` in a folder, in a process of its own, with that world; `errors` takes what it says on stderr."""
    command = [sys.executable, "-m", "tests.shown.world", *words]
    return subprocess.Popen(command, cwd=folder, env=told(world), stdout=subprocess.PIPE, stderr=errors, text=True)


def main() -> None:
    """The command line of such a process."""
    with reached(World(**json.loads(os.environ[VARIABLE]))):
        cli.main(sys.argv[1:])


if __name__ == "__main__":
    main()
