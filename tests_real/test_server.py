"""The server of these tests: it outlives nobody, and comes back on its port."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests_real.runs import wait
from tests_real.serving import ROOT, ask, served

pytestmark = pytest.mark.timeout(300)
_PARENT = """\
import sys
from pathlib import Path
from tests_real.serving import Server
print(Server(Path(sys.argv[1])).port, flush=True)
sys.stdin.read()
"""


def test_it_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    """SIGKILL to whoever started it: nobody listens on its port any more."""
    command = [sys.executable, "-c", _PARENT, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        port = int(parent.stdout.readline())
        assert listens(port)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    wait(lambda: not listens(port), 30, "end of the server")


def test_killed_it_comes_back_on_its_port_and_its_log_tells_both_lives(tmp_path: Path) -> None:
    """An answer before the kill and one after it, from the same address; the log has the ids of both."""
    body = {"prompt": [1, 4093, 198], "n_predict": 4, "return_tokens": True, "temperature": 0}
    with served(tmp_path) as server:
        url = server.url
        before = server.ask("/completion", body)["tokens"]
        wait(lambda: [task.ended for task in server.tasks()] == [True], 30, "end of the answer in the log")
        server.kill()
        server.start()
        assert server.url == url
        after = server.ask("/completion", body)["tokens"]
    assert [(task.life, task.ids) for task in server.tasks()] == [(0, before), (1, after)]


def listens(port: int) -> bool:
    """Whether a server answers on a port."""
    try:
        return ask(port, "/health")["status"] == "ok"
    except OSError:
        return False
