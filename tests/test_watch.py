"""The live view and `eyas watch` with the real binary against the simulator: on terminals, in files, beside a run, after it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eyas.lock import is_locked
from tests import kit

pytestmark = pytest.mark.e2e

FAST = {"tps": 60, "ttft": 0.05, "length_median": 120, "length_sigma": 0.3, "slots": 0}
SHOW, HIDE = "\x1b[?25h", "\x1b[?25l"


@contextmanager
def on_terminal(folder: Path, *arguments: str, **more: str) -> Generator[tuple[subprocess.Popen[str], int]]:
    """`eyas ARGUMENTS` with stderr, or with stdout for `watch`, on a terminal of 80 by 24; gives the terminal's other end."""
    master, slave = os.openpty()
    env = {**os.environ, "OPENROUTER_API_KEY": kit.KEY, "TERM": "xterm-256color", "COLUMNS": "80", **more}
    streams = {"stdout": subprocess.PIPE, "stderr": slave}
    if arguments[0] == "watch":
        streams = {"stdout": slave, "stderr": subprocess.PIPE}
    command = [sys.executable, "-m", "eyas", *arguments]
    with subprocess.Popen(command, cwd=folder, env=env, text=True, stdin=slave, **streams) as process:
        os.close(slave)
        try:
            yield process, master
        finally:
            process.kill()
            os.close(master)


def read(master: int, enough: Callable[[str], bool] = lambda _: False) -> str:
    """What came on a terminal until it is `enough`, its codes left out, or its program has ended."""
    found = b""
    while not enough(bare(found.decode(errors="replace"))):
        try:
            found += os.read(master, 65536)
        except OSError:  # nobody holds the other end any more
            break
    return found.decode(errors="replace")


def bare(said: str) -> str:
    """The same without codes."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said)


def last_frame(said: str) -> str:
    """The last frame, without codes."""
    return bare(said.rpartition("\x1b[?2026h")[2])


def test_a_run_on_a_terminal(tmp_path: Path, kimi_folder: Path) -> None:
    """It draws while it goes on, shows its end, gives the cursor back, prints its table below; stdout holds JSON alone."""
    with kit.simulator(kimi_folder, **FAST) as sim:
        kit.write_run(tmp_path, sim, kimi_folder, 60, in_flight=20)
        with on_terminal(tmp_path, "run", "RUN.toml", "--yes", "--json") as (process, master):
            said = read(master)
            out = process.stdout.read()
            assert process.wait() == 0
    assert json.loads(out)["state"] == "complete"
    assert "/20 in flight" in bare(said)
    assert re.search(r"running 0:0\d", bare(said))
    assert said.count("\x1b[?2026h") == said.count("\x1b[?2026l") > 2
    assert "complete, took" in last_frame(said)
    assert said.index(HIDE) < said.rindex(SHOW) < said.rindex("set") < said.rindex("yield:")
    assert HIDE not in said[said.rindex(SHOW) :]
    assert not (tmp_path / "run" / "pulse.json").exists()


def test_the_terminal_is_given_back_after_an_interrupt(tmp_path: Path, kimi_folder: Path) -> None:
    """^C twice: what it says stands above the view, the cursor is there again."""
    with kit.simulator(kimi_folder, **{**FAST, "tps": 5}) as sim:
        kit.write_run(tmp_path, sim, kimi_folder, 60, in_flight=20)
        with on_terminal(tmp_path, "run", "RUN.toml", "--yes", NO_COLOR="1") as (process, master):
            said = read(master, lambda text: "20/20 in flight" in text)
            process.send_signal(signal.SIGINT)
            said += read(master, lambda text: "in flight may land (^C again" in text and "ending 0:" in text)
            process.send_signal(signal.SIGINT)
            said += read(master)
            assert process.wait() == 130
    assert "interrupted, after" in last_frame(said)
    assert HIDE not in said[said.rindex(SHOW) :]
    assert not re.search(r"\x1b\[(3\d|9\d|38|48)", said), "NO_COLOR"


def test_a_run_that_is_piped_writes_no_codes(tmp_path: Path, kimi_folder: Path) -> None:
    """Whatever is wished: to files go lines alone, and the view is left out."""
    with kit.simulator(kimi_folder, "rough", **FAST) as sim:
        kit.write_run(tmp_path, sim, kimi_folder, 60, in_flight=20)
        for wish in ((), ("--progress", "live"), ("--progress", "none")):
            ran = kit.eyas(tmp_path, "run", "RUN.toml", "--yes", *wish)
            assert [c for c in ran.stdout + ran.stderr if c != "\n" and not c.isprintable()] == []
            assert ran.returncode == 0
            assert ("in flight |" in ran.stderr) == (not wish)  # later sessions find all done
        for command in (("watch", "run"), ("watch", "run", "--once")):
            ran = kit.eyas(tmp_path, *command)
            assert ran.returncode == 0
            assert [c for c in ran.stdout + ran.stderr if c != "\n" and not c.isprintable()] == []
            assert "complete" in ran.stdout


def test_a_live_run_is_watched_to_its_end(tmp_path: Path, kimi_folder: Path) -> None:
    """From another terminal, without a trace in the run directory; then another session, a kill, and what is said then."""
    with kit.simulator(kimi_folder, **{**FAST, "tps": 25}) as sim:
        kit.write_run(tmp_path, sim, kimi_folder, 120, in_flight=20)
        with kit.start(tmp_path, "run", "RUN.toml", "--yes", "--progress", "none") as process:
            kit.until(process, lambda: sim.state()["in_flight"] == 20)
            with on_terminal(tmp_path, "watch", "run") as (watch, master):
                said = read(master, lambda text: "/20 in flight" in text)
                process.send_signal(signal.SIGINT)
                said += read(master)
                assert watch.wait() == 0
                assert watch.stderr.read() == ""
            assert process.wait() == 130
            process.communicate()
        assert "interrupted, after" in last_frame(said)
        assert "`eyas run RUN.toml` goes on" in last_frame(said)
        assert said.rindex(SHOW) > said.rindex(HIDE)
        with kit.start(tmp_path, "run", "RUN.toml", "--yes", "--progress", "none") as process:
            kit.until(process, lambda: sim.state()["in_flight"] > 10 and (tmp_path / "run" / "pulse.json").exists())
            before = sorted(each.name for each in (tmp_path / "run").iterdir())
            once = kit.eyas(tmp_path, "watch", "run", "--once")
            assert re.search(r"running 0:0\d", once.stdout)
            assert "20 in flight" in once.stdout
            assert sorted(each.name for each in (tmp_path / "run").iterdir()) == before
            kit.kill(process)
        assert not is_locked(tmp_path / "run")
        killed = kit.eyas(tmp_path, "watch", "run", "--once")
        assert "not running" in killed.stdout.splitlines()[0]
        assert "`eyas run RUN.toml` goes on" in killed.stdout.splitlines()[0]


def test_nothing_to_watch(tmp_path: Path) -> None:
    """Exit 2 and a sentence."""
    found = kit.eyas(tmp_path, "watch", "nowhere")
    assert (found.returncode, found.stdout) == (2, "")
    assert "nowhere holds no run" in found.stderr


def test_rich_is_loaded_for_a_view_alone() -> None:
    """Neither help nor the modules of run, status and watch load it."""
    code = (
        "import sys, importlib\n"
        "for name in ('__init__', 'run', 'status', 'watch', 'demo', 'plan', 'progress'):\n"
        "    importlib.import_module(f'eyas.cli.{name}'.removesuffix('.__init__'))\n"
        "print([name for name in sys.modules if name.split('.')[0] == 'rich'])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
