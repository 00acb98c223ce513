"""Plays the commands of a page, one after the other, in a sandbox."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from eyas import cli
from eyas.cli import demo
from tests.shown.lines import Shown
from tests.shown.sandbox import works
from tests.shown.world import KEY, World, programs, reached, start, told

if TYPE_CHECKING:
    from tests.shown.stage import Stage

PLAYS = frozenset(
    {
        "eyas", "export", "cd", "curl", "python", "eval", "cat", "cp", "diff", "echo", "grep", "head", "ls", "mkdir", "mv",
        "printf", "rm", "sed", "sort", "tail", "touch", "wc",
    }
)  # fmt: skip
"""Programs that are played, as far as `explained.py` does not name the command."""
ASKING = ("run", "plan", "retry", "forget")
"""Commands whose questions are answered with yes, as on a terminal; for the others there is none."""
_WORK = re.compile(r"[A-Za-z][\w.-]*/[0-9a-f]{16}(?P<rest>(/t\d+)?(/s\d+)?)")
_SHELL = re.compile(r"\s(?P<sign>\||2?>)\s+(?P<rest>.+)$")


@dataclass(frozen=True, slots=True)
class Ended:
    """What a command did."""

    code: int
    out: str = ""
    err: str = ""


class Typed(io.StringIO):
    """A terminal on which yes is typed, as often as it is asked."""

    def isatty(self) -> bool:
        return True

    def readline(self, size: int = -1, /) -> str:
        return "y\n"


@dataclass
class Playing:
    """A page that is being played; `folder` is where its commands run now, `errors` what background processes said."""

    folder: Path
    world: World
    stage: Stage
    stack: ExitStack
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    errors: Path = field(init=False)
    bin: Path = field(init=False)
    background: list[subprocess.Popen[str]] = field(default_factory=list[subprocess.Popen[str]])

    def __post_init__(self) -> None:
        self.bin = self.folder.with_name(f"{self.folder.name}.bin")
        self.errors = self.folder.with_name(f"{self.folder.name}.errors")

    def command(self, shown: Shown) -> Ended:
        """Play a command."""
        text = shown.text.removeprefix(".venv/bin/")
        program = shown.program
        if program == "export":
            return self._export(text)
        if program == "cd":
            self.folder = self.folder / text.split()[1]
            return Ended(0 if self.folder.is_dir() else 1, err=str(self.folder))
        if program == "curl":
            return self._curl(shlex.split(text)[1:])
        if program == "eyas":
            return self._eyas(text)
        return self._shell(text)

    def python(self, text: str, where: str) -> Ended:
        """Play a block of Python; what it defines is there for the next one."""

        def run() -> int:
            exec(compile(text, where, "exec"), self.names)  # noqa: S102  # a page of ours
            return 0

        return self._inside(run, asked=False)

    def eyas(self, *words: str, world: World | None = None) -> Ended:
        """`eyas WORDS` in this process, to its end."""
        with pytest.MonkeyPatch.context() as patch:
            if words[0] == "demo":
                small_demo(patch, self.folder / "demo-prompts")
            return self._inside(lambda: _main(list(words)), words[0] in ASKING, world)

    def _export(self, text: str) -> Ended:
        name, _, value = text.removeprefix("export ").partition("=")
        self.stack.enter_context(pytest.MonkeyPatch.context()).setenv(name, KEY if "…" in value else value.strip("'\""))
        return Ended(0)

    def _eyas(self, text: str) -> Ended:
        found = _SHELL.search(text)
        words = [self._known(word, text) for word in shlex.split(text[: found.start()] if found else text)[1:]]
        if words[:1] == ["simulate"]:
            return self._serve(words)
        ended = self.eyas(*words)
        if found is None or ended.code:
            return ended
        if found["sign"] == "|":
            return self._shell(found["rest"], ended.out)
        to_file, left = (
            (ended.err, Ended(0, ended.out)) if found["sign"] == "2>" else (ended.out, Ended(0, "", ended.err))
        )
        (self.folder / found["rest"]).write_text(to_file, encoding="utf-8")
        return left

    def _known(self, word: str, text: str) -> str:
        """A work of the run in place of one that the page shows, which was made elsewhere."""
        shown = _WORK.fullmatch(word)
        if shown is None and word != "ID":
            return word
        run = next(self.folder / each for each in text.split() if (self.folder / each / "journal.db").exists())
        name, rest = word.partition("/")[0], shown["rest"] if shown else "/t0/s0"
        turn = rest.split("/")[1][1:] if "/t" in rest else "0"
        fitting = [work for work in works(run) if str(work.turn) == turn]
        work = next((each for each in fitting if each.dataset == name), fitting[0])
        return f"{work.dataset}/{work.prompt_id}{rest}"

    def _inside(self, call: Callable[[], int], asked: bool, world: World | None = None) -> Ended:
        """Call a function in this process, in the page's folder."""
        out, err, before = io.StringIO(), io.StringIO(), Path.cwd()
        stdin, sys.stdin = sys.stdin, Typed() if asked else io.StringIO()
        os.chdir(self.folder)
        try:
            with reached(world or self.world), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = call()
        finally:
            os.chdir(before)
            sys.stdin = stdin
        return Ended(code, out.getvalue(), err.getvalue())

    def _serve(self, words: Sequence[str]) -> Ended:
        """Start a server; the address that the page shows leads to it from now on."""
        shown = words[words.index("--port") + 1] if "--port" in words else ""
        bound = ["0" if shown and word == shown else word for word in words]
        process = self.start(*bound, "--parent", str(os.getpid()))
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        if shown:
            self.world.places[f"127.0.0.1:{shown}"] = urlsplit(url).netloc
        return Ended(0 if url else 1, url)

    def start(self, *words: str, world: World | None = None) -> subprocess.Popen[str]:
        """`eyas WORDS` in the background, until the page ends."""
        errors = self.stack.enter_context(self.errors.open("a", encoding="utf-8"))
        process = start(world or self.world, self.folder, errors, *words)
        self.stack.callback(end, process)
        self.background.append(process)
        return process

    def _curl(self, words: Sequence[str]) -> Ended:
        """What curl does with an address and `-d`."""
        rest = [word for word in words if word not in ("-s", "-N")]
        data = rest[rest.index("-d") + 1].encode() if "-d" in rest else None
        url = rest[0] if "://" in rest[0] else f"http://{rest[0]}"
        request = urllib.request.Request(self.world.route(url), data)  # noqa: S310  # loopback
        if data is not None:
            request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310
            return Ended(0, response.read().decode())

    def _shell(self, text: str, given: str = "") -> Ended:
        """A line for a shell, in which `eyas` asks the page's world too."""
        programs(self.bin)
        env = {**told(self.world), "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}"}
        ended = subprocess.run(
            ["/bin/sh", "-euc", text],
            cwd=self.folder, env=env, input=given, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        return Ended(ended.returncode, ended.stdout, ended.stderr)


def small_demo(patch: pytest.MonkeyPatch, prompts: Path) -> None:
    """Let `eyas demo` ask the first prompts of each set only, of quicker providers."""
    if not prompts.exists():
        prompts.mkdir()
        for name in demo.SETS:
            rows = (demo.examples() / f"{name}.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
            (prompts / f"{name}.jsonl").write_text("".join(rows[:3]), encoding="utf-8")
    patch.setattr(demo, "examples", lambda: prompts)
    patch.setattr(
        demo,
        "SCENARIO",
        ("--scenario", "clean", "--set", "speed=100", "--set", "ttft=0.02", "--set", "length_median=60"),
    )


def _main(words: list[str]) -> int:
    try:
        cli.main(words)
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def end(process: subprocess.Popen[str]) -> None:
    """End a process of ours: a run at once, as its answers take minutes, a server so that it writes its books."""
    if process.poll() is None:
        process.send_signal(signal.SIGKILL if "run" in process.args else signal.SIGTERM)  # pyright: ignore[reportOperatorIssue]
    process.wait(30)
    if process.stdout is not None:
        process.stdout.close()
