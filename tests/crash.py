"""Crash points of the real `eyas run` against a simulator: where it dies, and what must hold afterwards.

Then the same command ends the run on healthy storage, and the simulator's books are held against the journal.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import itertools
import json
import os
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from eyas.errors import StorageError
from eyas.journal import NAME
from eyas.records import Run
from eyas.types import Prompt, Work
from tests import kit

PROMPTS = 14
PACE = {"tps": 1000, "ttft": 0.02, "length_median": 200, "length_sigma": 0.5, "slots": 0}  # a run takes a second or two
JOURNAL = (NAME, f"{NAME}-wal")
RUN = (sys.executable, "-m", "eyas", "run", "RUN.toml", "--yes", "--json", "--progress", "none")
STOPPED, KILLED = 7, -signal.SIGKILL

Answers = dict[Work, tuple[int, str]]  # by work: the attempt that brought the answer, and a hash of the answer


@dataclass(frozen=True, slots=True)
class Point:
    """One crash.

    `way` is "call" (strace does `where` at a system call on `files`), "limit" (no file may pass `where` bytes), "full" (a
    tmpfs of that size), or "power" (at a system call, from the disk below); `again`: the resume crashes as well, here.
    """

    kind: str
    way: str
    where: str
    files: tuple[str, ...] = JOURNAL
    ends: tuple[int, ...] = (STOPPED,)
    again: Point | None = None


@dataclass(slots=True)
class Result:
    """What came of a point. `hit`: its fault was met; `answers`: acknowledged before; `unknown`: nano-dollars at the end."""

    point: Point
    hit: bool = True
    answers: int = 0
    unknown: int = 0
    violations: list[str] = field(default_factory=list[str])

    def check(self, what: str, holds: bool, seen: object = "") -> None:
        """Note a violation where something does not hold."""
        self.violations += [] if holds else [f"{what}: {seen}"]

    @contextlib.contextmanager
    def failing(self) -> Generator[None]:
        """Note what breaks the check itself as a violation, so that a sweep goes on."""
        try:
            yield
        except (OSError, sqlite3.Error, subprocess.SubprocessError, StorageError) as error:
            self.violations.append(f"the check broke: {error!r}")


class Seen(NamedTuple):
    """What a journal holds: answers, hashes of its intents' bodies, nano-dollars (all, unknown), SQLite's verdict."""

    answers: Answers
    bodies: frozenset[str]
    held: int
    unknown: int
    verdict: str


NOTHING = Seen({}, frozenset(), 0, 0, "ok")


@functools.cache
def missing(way: str) -> str:
    """Why a way of crashing cannot be taken here; empty if it can."""
    try:
        with tempfile.TemporaryDirectory() as name:
            ways = {"limit": ("prlimit", "--fsize=1000"), "full": full("64k", Path(name))}
            _do(*ways.get(way, ("strace", "-o", os.devnull)), "true")
            if way == "power":
                with ext4(Path(name, "disk"), Path(name, "at")):
                    pass
    except (OSError, subprocess.CalledProcessError) as error:
        return f"no crashes by {way} here, {error}: strace, mkfs.ext4, root, mounts and loop devices are needed"
    return ""


def _do(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def full(size: str, at: Path) -> tuple[str, ...]:
    """The command that runs another one with a tmpfs of that size at a folder; what it held stays in the folder."""
    script = (
        'mkdir -p "$0"; mount -t tmpfs -o size="$1" tmpfs "$0" || exit 99; here=$0; shift; "$@"; code=$?; '
        'cp -a "$here" "$here.kept"; umount "$here"; rmdir "$here"; mv "$here.kept" "$here"; exit $code'
    )
    return ("unshare", "-m", "sh", "-c", script, str(at), size)


@contextlib.contextmanager
def ext4(image: Path, at: Path) -> Generator[None]:
    """A file system of its own at a folder."""
    with image.open("wb") as file:
        file.truncate(32 * 1024 * 1024)
    at.mkdir(mode=0o700)
    _do("mkfs.ext4", "-q", "-F", str(image))
    _do("mount", "-o", "loop", str(image), str(at))
    try:
        yield
    finally:
        _do("umount", "-l", str(at))


def shut_down(at: Path) -> None:
    """End a file system at once: what is not on the disk will never be, the file system's own log included."""
    handle = os.open(at, os.O_RDONLY)
    fcntl.ioctl(handle, 0x8004587D, struct.pack("I", 2))  # EXT4_IOC_SHUTDOWN without a flush of the log
    os.close(handle)


class Place:
    """A folder with a run over prompts that no other run asks."""

    _numbers = itertools.count()

    def __init__(self, folder: Path, sim: kit.Sim, tokenizer: Path) -> None:
        self.folder, self.sim, self.run, self.log = folder, sim, folder / "run", folder / "calls"
        kit.write_run(folder, sim, tokenizer, PROMPTS, in_flight=7, draft_seconds=0.05)
        texts = [f"Question {os.getpid()}.{next(self._numbers)}: what then?" for _ in range(PROMPTS)]
        (folder / "prompts.jsonl").write_text("".join(json.dumps({"prompt": text}) + "\n" for text in texts))
        self.keys = {kit.prompt_key(Prompt("", "", ({"role": "user", "content": text},))) for text in texts}

    def start(self, *before: str) -> subprocess.Popen[str]:
        """`eyas run` behind another command."""
        env, pipe = {**os.environ, "OPENROUTER_API_KEY": kit.KEY}, subprocess.PIPE
        return subprocess.Popen([*before, *RUN], cwd=self.folder, env=env, stdout=pipe, stderr=pipe, text=True)

    def strace(self, point: Point) -> tuple[str, ...]:
        """The command that does something at a system call on files of the run."""
        paths = (option for name in point.files for option in ("-P", str(self.run / name), "-P", f"run/{name}"))
        calls = point.where.partition(":")[0]
        self.log.unlink(missing_ok=True)
        return ("strace", "-f", "-o", str(self.log), "-e", f"trace={calls}", f"--inject={point.where}", *paths)

    def calls(self, word: str) -> bool:
        """Whether strace has written that of a call."""
        return self.log.exists() and word in self.log.read_text()

    def books(self) -> dict[str, dict[str, Any]]:
        """The simulator's entries of this run's prompts."""
        return {name: row for name, row in self.sim.books().items() if row["prompt_key"] in self.keys}

    def ask(self, question: str) -> Any:
        """What the journal's file answers to a statement; it stays as it is."""
        with closing(sqlite3.connect(f"file:{self.run / NAME}?mode=ro", uri=True)) as db:
            return db.execute(question).fetchone()

    def seen(self) -> Seen:
        """What the journal holds now."""
        making = (self.run / f"{NAME}-journal").exists() or not (self.run / NAME).exists()
        if making or not self.ask("SELECT 1 FROM sqlite_master WHERE name = 'drafts'"):
            return NOTHING
        with closing(Run(self.run)) as run:
            refs, money = run.refs(lambda _: True), run.state.money
            answers = {ref.work: (ref.attempt, sha256(run.store.payload(ref.answer)).hexdigest()) for ref in refs}
            bodies = frozenset(sha256(run.body(each)).hexdigest() for each in run.state.attempts.values())
            held = money.settled + money.reserved + money.unknown
            return Seen(answers, bodies, held, money.unknown, self.ask("PRAGMA integrity_check")[0])


def play(point: Point, sim: kit.Sim, tokenizer: Path) -> Result:
    """Crash there, go on to the end, and say what did not hold."""
    result, each, answers = Result(point), point, Answers()
    with tempfile.TemporaryDirectory(prefix="eyas-crash-") as name, contextlib.ExitStack() as stack:
        stack.enter_context(result.failing())
        place = Place(Path(name), sim, tokenizer)
        if point.way == "power":
            stack.enter_context(ext4(place.folder / "disk", place.run))
        while each is not None:
            crash = _lose_power if each.way == "power" else _crash
            answers = _crashed(place, {**answers, **crash(each, place, result)}, result)
            each = each.again
        result.answers, bought = len(answers), _bought(place, answers)
        _finish(place, answers, result)
        result.check("a journalled answer was bought again", _bought(place, answers) == bought)
    return result


def _crash(point: Point, place: Place, result: Result) -> Answers:
    """Run until the crash."""
    ways = {"limit": ("prlimit", f"--fsize={point.where}"), "full": full(point.where, place.run)}
    with place.start(*(ways.get(point.way) or place.strace(point))) as process:
        code = process.wait(100)
        hit = code == KILLED if KILLED in point.ends else place.calls("INJECTED") if point.way == "call" else code != 0
        _ended(point.ends if hit else (0, 5), process, result)
    result.hit &= hit
    return {}


def _lose_power(point: Point, place: Place, result: Result) -> Answers:
    """Freeze the process at a system call, see what is acknowledged, take its disk away; the process must notice."""
    before = NOTHING
    with place.start(*place.strace(point)) as process:
        while process.poll() is None and not place.calls("stopped by SIGSTOP"):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.01)
        hit = process.poll() is None
        if hit:
            with contextlib.suppress(StorageError, sqlite3.Error):  # amid its making it is locked: nothing is in it
                before = place.seen()
            shut_down(place.run)
        while process.poll() is None:  # each thread counts its own calls, and is stopped once
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
                    os.kill(int(child), signal.SIGCONT)
                process.wait(0.05)
        _ended(point.ends if hit else (0, 5), process, result)
    result.hit &= hit
    # A copy: a process with mounts of its own (another point's) may keep the dead file system in use.
    _do("cp", "--sparse=always", str(place.folder / "disk"), str(place.folder / "again"))
    _do("umount", str(place.run))
    _do("mount", "-o", "loop", str(place.folder / "again"), str(place.run))
    return before.answers


def _ended(allowed: tuple[int, ...], process: subprocess.Popen[str], result: Result) -> None:
    err, code = process.communicate(timeout=100)[1], process.returncode
    result.check("the exit code is wrong", code in allowed, f"exit {code}: {err[-300:]}")
    told = "\neyas: " in f"\n{err}" and ("same command" in err or "[run] dir" in err) and "Traceback" not in err
    result.check("no clear sentence", told or code != STOPPED, err[-300:])


def _crashed(place: Place, before: Answers, result: Result) -> Answers:
    """What must hold right after a crash; gives the answers that are acknowledged by now."""
    seen, books = place.seen(), place.books().values()
    result.check("an acknowledged answer is lost", before.items() <= seen.answers.items())
    sent = {row["body_sha256"] for row in books}
    result.check("a request left without a durable intent", sent <= seen.bodies, len(sent - seen.bodies))
    billed = sum(row["billed_nano"] for row in books)
    result.check("more was billed than is held", billed <= seen.held, f"{billed} > {seen.held}")
    result.check("the journal is damaged", seen.verdict == "ok", seen.verdict)
    return seen.answers


def _finish(place: Place, acknowledged: Answers, result: Result) -> None:
    """The same command ends the run; then money, states and answers must agree."""
    with place.start() as process:
        _ended((0, 5), process, result)
    if process.returncode == 5:
        kit.eyas(place.folder, "reconcile", "run")
    seen = place.seen()
    result.check("an acknowledged answer is lost at the end", acknowledged.items() <= seen.answers.items())
    with closing(Run(place.run)) as run:
        money, ended = kit.money(run, place.books()), run.state.datasets["B3"].ended
    result.check("a work is not in one state", sum(ended.values()) == PROMPTS, dict(ended))
    result.check("more was billed than is booked", money["billed"] <= money["settled"] + money["unknown"], money)
    explained = money["settled"] + (money["billed without id"] if seen.unknown else 0)
    result.check("a dollar is not explained", explained == money["billed"], money)
    result.unknown = seen.unknown
    result.check("the journal is damaged", seen.verdict == "ok", seen.verdict)


def _bought(place: Place, answers: Answers) -> dict[Work, int]:
    """How often each answered work was asked, by the simulator."""
    if not answers:
        return {}
    counts = kit.asked(place.books().values())
    with closing(Run(place.run)) as run:
        return {work: counts[kit.prompt_key(run.prompt(work.dataset, work.prompt_id))] for work in answers}


def sweep(points: list[Point], sim: kit.Sim, tokenizer: Path) -> Iterator[Result]:
    """Results as they come, two points at a time."""
    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(play, point, sim, tokenizer) for point in points]
        yield from (future.result() for future in as_completed(futures))
