"""`eyas doctor`: every check is made however the others end, no dollar is spent, and the key is never said."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Mapping
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from pydantic import SecretStr

from eyas.cli.declared.check import doctor as command
from eyas.cli.doctor import exit_code, following
from eyas.config import parse
from eyas.engine import checkup, findings
from eyas.engine.doctor import Doctor, Subject
from eyas.engine.findings import Finding, Standing, Trouble
from eyas.errors import NotSentError
from eyas.families import Loaded
from eyas.lock import lock
from eyas.sim import Reply, World, load
from eyas.sim.reply import as_json
from eyas.state import State
from tests import kit
from tests.virtual import FakeTransport

KEY = "sk-or-v1-canary-of-the-doctor"
OK, WARN, FAIL = Standing.OK, Standing.WARN, Standing.FAIL
TOML = """
[run]
dir = "run"
[target]
model = "{model}"
base_url = "https://api.test/api/v1"
tokenizer = "{tokenizer}"
[budget]
usd = 10.0
[providers]
enforce_distillable_text = true
[limits]
in_flight = 20
[[datasets]]
name = "A"
source = "a.jsonl"
"""


def examine(subject: Subject, handle: Any, wall: float = 1_800_000_000.0) -> list[Finding]:
    """All that the doctor finds; it may only read."""
    transport = FakeTransport(handle)
    found = asyncio.run(Doctor(subject, transport, wall=lambda: wall).examine())
    assert transport.sent == [], "it asked for an answer"
    return found


def a_run(folder: Path, tokenizer: Path, model: str = "moonshotai/kimi-k2.5", key: str = KEY) -> Subject:
    """A run of three prompts, one of them twice, and a row that is none."""
    (folder / "a.jsonl").write_text('{"prompt": "One?"}\n{"prompt": "Two?"}\n' * 4 + 'no row\n{"prompt": "Three?"}\n')
    text = TOML.format(model=model, tokenizer=tokenizer)
    return Subject(SecretStr(key), parse(text, folder / "RUN.toml"))


class Api:
    """The simulated account's GET endpoints, with a Date header; `models` are those that may be distilled."""

    def __init__(self, kimi: Loaded, date: str = "", models: tuple[str, ...] | None = None, **changes: Any) -> None:
        self.world = World(replace(load("clean"), **changes), 0, kimi.vocab, time.monotonic)
        self.date, self.models = date, models

    def __call__(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Answer."""
        reply = self.world.handle(method, target, headers, body)
        if target.endswith("?distillable=true") and self.models is not None:
            return as_json({"data": [{"id": each} for each in self.models]})
        if self.date:
            reply.headers = {**reply.headers, "Date": self.date}
        return reply


def by_name(found: list[Finding]) -> dict[str, Finding]:
    """The last finding of each name."""
    return {each.name: each for each in found}


def test_a_sound_run(kimi: Loaded, kimi_folder: Path, tmp_path: Path) -> None:
    """All is looked at and nothing fails; the bad row is told of; no file is left behind."""
    wall = 1_800_000_000.0
    found = examine(a_run(tmp_path, kimi_folder), Api(kimi, formatdate(wall - 5, usegmt=True)), wall)
    names = [each.name for each in found]
    for name in ("python", "run directory", "tokenizer", "prompts", "network", "clock", "key", "endpoints", "limit"):
        assert name in names
    assert {each.name for each in found if each.standing is FAIL} == set(), found
    assert "3 prompts" in by_name(found)["prompts"].says
    assert "a.jsonl line 9" in by_name(found)["prompts"].says
    assert by_name(found)["clock"].says == "within 30 s of the server's"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.jsonl"]
    assert exit_code(found) == 0


BAD = {
    "a wrong key": ({"keys": ("sk-other",)}, {}, "key", 6),
    "a used-up key": ({"key_limit_usd": 0.0}, {}, "limit", 6),
    "an unknown model": ({}, {"model": "moonshotai/kimi-k9"}, "endpoints", 2),
    "no key": ({}, {"key": ""}, "key", 6),
}


@pytest.mark.parametrize("name", BAD)
def test_one_trouble_stops_no_other_check(kimi: Loaded, kimi_folder: Path, tmp_path: Path, name: str) -> None:
    """The check that it is about fails, with what to do; all others are made; the exit code is its own."""
    world, run, check, code = BAD[name]
    found = examine(a_run(tmp_path, kimi_folder, **run), Api(kimi, **world))
    assert check in {each.name for each in found if each.standing is FAIL}
    assert {"tokenizer", "prompts", "disk", "journal"} <= {each.name for each in found}
    assert exit_code(found) == code


def test_a_model_that_may_not_be_distilled(kimi: Loaded, kimi_folder: Path, tmp_path: Path) -> None:
    """Where only such models are wished, one that the API does not list would be refused each time: said before."""
    found = by_name(examine(a_run(tmp_path, kimi_folder), Api(kimi, models=("qwen/qwen3-8b",))))
    assert found["distillation"].standing is FAIL
    assert "enforce_distillable_text = false" in found["distillation"].remedy
    assert checkup.distillable("a/b:free", ["a/b"]).standing is OK


def test_without_a_run(kimi: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine and the account are looked at all the same."""
    monkeypatch.chdir(tmp_path)
    found = by_name(examine(Subject(SecretStr(KEY)), Api(kimi)))
    assert set(found) == {"python", "network", "clock", "key", "limit", "balance", "open files", "disk", "file system",
                          "journal"}  # fmt: skip


def test_an_api_that_cannot_be_reached(kimi: Loaded, kimi_folder: Path, tmp_path: Path) -> None:
    """Said once; the key is not called wrong, and what needs no network is checked."""

    def handle(*_: object) -> Reply:
        raise NotSentError("no connection to api.test:443")

    found = examine(a_run(tmp_path, kimi_folder), handle)
    assert [each.name for each in found if each.standing is FAIL] == ["network"]
    assert by_name(found)["key"].standing is WARN
    assert by_name(found)["tokenizer"].standing is OK


def test_a_check_that_breaks_is_a_finding(kimi: Loaded, kimi_folder: Path, tmp_path: Path) -> None:
    """A defect in one check fails that check with its message; the key in it is struck out."""

    def handle(method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        raise RuntimeError(f"oh: {headers['authorization']}")

    found = examine(a_run(tmp_path, kimi_folder), handle)
    broken = by_name(found)["network"]
    assert (broken.standing, broken.says) == (FAIL, "this check itself broke (RuntimeError: oh: Bearer [key])")
    assert KEY not in repr(found)
    assert by_name(found)["journal"].standing is OK


def test_a_run_toml_that_is_wrong_asks_no_api(kimi: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its address is not known then: the key must not go to another one."""
    monkeypatch.chdir(tmp_path)
    transport = FakeTransport(Api(kimi))
    found = asyncio.run(Doctor(Subject(SecretStr(KEY), broken="RUN.toml: no such key"), transport).examine())
    assert transport.gets == 0
    assert exit_code(found) == 2


def test_a_run_directory_that_is_a_file(kimi: Loaded, kimi_folder: Path, tmp_path: Path) -> None:
    """Where nothing can be written storage fails, exit 7, which goes before a refused key."""
    subject = a_run(tmp_path, kimi_folder)
    (tmp_path / "run").write_text("in the way")
    found = examine(subject, Api(kimi, keys=("sk-other",)))
    assert by_name(found)["journal"].trouble is Trouble.STORAGE
    assert exit_code(found) == 7


def test_a_lock_held_by_a_living_process(kimi_folder: Path, tmp_path: Path) -> None:
    """A run that goes on is told of, and that nothing else may start there."""
    config = a_run(tmp_path, kimi_folder).config
    with lock(config.dir):
        found = findings.run_directory(config, State(), running=True)
    assert (found[0].standing, "a process holds it" in found[0].says) == (WARN, True)
    assert findings.run_directory(config, State(model="other"), running=False)[0].standing is FAIL


@pytest.mark.e2e
def test_the_command(tmp_path: Path, kimi_folder: Path) -> None:
    """Against a server: exit 0 and JSON; a wrong key 6, a wrong file 2; nothing is asked for; the key stands nowhere."""
    with kit.simulator(kimi_folder, keys=kit.KEY) as sim:
        kit.write_run(tmp_path, sim, kimi_folder, 5)
        sound = kit.eyas(tmp_path, "doctor", "RUN.toml", "--json")
        assert sound.returncode == 0, sound.stdout + sound.stderr
        figures = json.loads(sound.stdout)
        assert (figures["schema"], figures["exit"]) == (1, 0)
        assert {"name", "standing", "says", "remedy"} == set(figures["checks"][0])
        (tmp_path / "wrong").write_text("sk-wrong-key-of-a-test")
        wrong = kit.eyas(tmp_path, "doctor", "RUN.toml", "--key-file", "wrong")
        assert (wrong.returncode, "fail  key" in wrong.stdout) == (6, True), wrong.stdout
        assert "sk-wrong-key-of-a-test" not in wrong.stdout + wrong.stderr
        assert sim.state()["requests"] == 0
    broken = kit.eyas(tmp_path, "doctor", "none.toml")
    assert (broken.returncode, "fail  RUN.toml" in broken.stdout) == (2, True), broken.stdout


def test_a_key_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a finding like any other, and the rest is checked."""
    monkeypatch.chdir(tmp_path)
    ended = CliRunner().invoke(
        command, [os.fspath(tmp_path / "none.toml"), "--key-file", "none"], standalone_mode=False
    )
    assert ended.return_value == 6
    assert "fail  key            --key-file none cannot be read" in ended.output
    assert "ok    journal" in ended.output


def test_what_to_do_next() -> None:
    """After checks that hold: plan, then a first few; after others: how many failed."""
    fine, wrong = Finding("a", OK, ""), Finding("b", FAIL, "")
    assert "next: `eyas plan RUN.toml`, then `eyas run RUN.toml --limit 20`" in following([fine], Path("RUN.toml"))
    assert following([fine, wrong], Path("RUN.toml")).startswith("1 of these checks failed")
    assert "`eyas init` writes one" in following([fine], None)
