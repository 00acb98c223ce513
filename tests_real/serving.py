"""The real server as a process: started, killed, started again on the same port, and what its log says it sampled."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
START_SECONDS = 120.0
_LAUNCHED = re.compile(rb"slot launch_slot_: id +\d+ \| task (\d+) \| processing task")
_PROMPT = re.compile(rb"task (\d+) \| new prompt,.* task\.n_tokens = (\d+)")
_SAMPLED = re.compile(rb"slot process_toke: id +\d+ \| task (\d+) \| n_gen = \d+,.* next token: +(\d+) ")
_STOPPED = re.compile(rb"task (\d+) \| stopped by (EOS|limit)")


@dataclass(slots=True)
class Task:
    """One request as the server's log tells it: every id that it sampled, in order, the stop token included.

    Attributes:
        life: which of the server's processes, from 0.
        prompt_tokens: ids of its prompt, 0 if it never began.
        ended: whether the log tells its end: the stop token, or the limit.
    """

    life: int
    prompt_tokens: int = 0
    ids: list[int] = field(default_factory=list[int])
    ended: bool = False


class Server:
    """`python -m tests_real.server` on one port, however often it is started."""

    def __init__(self, folder: Path, slots: int = 8, context: int = 8192) -> None:
        """`folder` takes the logs, one for each life."""
        self._folder = folder
        self._options = ["--slots", str(slots), "--context", str(context)]
        self._lives = 0
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0
        self.start()

    @property
    def url(self) -> str:
        """Its address, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, on the port of before if there was one, and wait until it answers.

        Raises:
            RuntimeError: it ended, or was not ready in two minutes.
        """
        command = [sys.executable, "-m", "tests_real.server", "--log", "--port", str(self.port), *self._options]
        with self._log(self._lives).open("wb") as log:
            self._process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline().decode().split()
        if line[:1] != ["ready"]:
            raise RuntimeError(f"the server did not start: see {self._log(self._lives)}")
        self._lives += 1
        self.port = int(line[1])
        self._wait()

    def kill(self) -> None:
        """SIGKILL, and wait for its end."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._close()

    def stop(self) -> None:
        """Close its standard input, on which it ends by itself; kill it if it does not in ten seconds."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._close()

    @property
    def pid(self) -> int:
        """Of the process that runs now."""
        assert self._process is not None
        return self._process.pid

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """The JSON of a GET, or of a POST with a body."""
        return ask(self.port, path, body)

    def tasks(self) -> list[Task]:
        """Every request that a slot took, over all lives, in the order in which slots took them."""
        return [task for life in range(self._lives) for task in read_log(self._log(life), life)]

    def _wait(self) -> None:
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            try:
                if self.ask("/health")["status"] == "ok":
                    return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError(f"the server was not ready in {START_SECONDS:.0f} s: see {self._log(self._lives - 1)}")

    def _log(self, life: int) -> Path:
        return self._folder / f"server-{life}.log"

    def _close(self) -> None:
        assert self._process is not None
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process = None


def ask(port: int, path: str, body: dict[str, Any] | None = None) -> Any:
    """The JSON that a server on 127.0.0.1 gives to a GET, or to a POST with a body.

    Raises:
        OSError: nobody listens there, or the status is an error.
    """
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def read_log(path: Path, life: int) -> list[Task]:
    """The requests in one log of llama.cpp's at its debug level."""
    tasks: dict[int, Task] = {}
    with path.open("rb") as lines:
        for line in lines:
            if found := _SAMPLED.search(line):
                tasks[int(found[1])].ids.append(int(found[2]))
            elif found := _LAUNCHED.search(line):
                tasks[int(found[1])] = Task(life)
            elif found := _PROMPT.search(line):
                tasks[int(found[1])].prompt_tokens = int(found[2])
            elif found := _STOPPED.search(line):
                tasks[int(found[1])].ended = True
    return list(tasks.values())


@contextmanager
def served(folder: Path) -> Generator[Server]:
    """A server that ends with the block, whatever happens in it."""
    server = Server(folder)
    try:
        yield server
    finally:
        server.stop()
