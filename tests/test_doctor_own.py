"""`eyas doctor` of a run at servers of one's own: each is tried, no key and no dollar is asked for, [fallback] is looked at too."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from pydantic import SecretStr

from eyas.cli.doctor import exit_code
from eyas.config import parse
from eyas.engine.doctor import Doctor, Subject
from eyas.engine.findings import Finding, Standing
from eyas.families import Loaded
from eyas.sim import Reply, World, load
from eyas.sim.engines import Told
from eyas.transport import Request
from tests.enginekit import MODEL, Fleet, engine
from tests.virtual import Handler

OK, WARN, FAIL = Standing.OK, Standing.WARN, Standing.FAIL
HERE, THERE = "127.0.0.1:8000", "127.0.0.1:8001"
API = "api.test"
TOML = """
[run]
dir = "run"
[target]
model = "moonshotai/kimi-k2.5"
backend = "{backend}"
base_url = ["http://127.0.0.1:8000", "http://127.0.0.1:8001"]
tokenizer = "{tokenizer}"
{more}
[limits]
in_flight = 20
[[datasets]]
name = "A"
source = "a.jsonl"
"""
FALLBACK = """
[fallback]
backend = "openrouter"
base_url = "https://api.test/api/v1"
[budget]
usd = 5.0
"""


class Both(Fleet):
    """Servers of one's own, and the API."""

    api: World

    def answerer(self, request: Request) -> Handler:
        """Whoever listens there."""
        if f"//{API}/" not in request.url:
            return super().answerer(request)

        def handle(method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
            return self.api.handle(method, target, headers, body)

        return handle


def examine(
    folder: Path, tokenizer: Path, kimi: Loaded, *, kind: str = "vllm", more: str = "", dead: tuple[str, ...] = (),
    key: str = "", **settings: Any,
) -> list[Finding]:  # fmt: skip
    """All that the doctor finds of two servers; `key` is that of [fallback]."""
    (folder / "a.jsonl").write_text('{"prompt": "One?"}\n')
    text = TOML.format(backend=kind, tokenizer=tokenizer, more=more)
    subject = Subject(SecretStr(""), parse(text, folder / "RUN.toml"), fallback_key=SecretStr(key))

    async def main() -> list[Finding]:
        fleet = Both({place: engine(kind, kimi, speed=1e4, **settings) for place in (HERE, THERE)})
        fleet.api = World(replace(load("clean"), keys=("sk-1",)), 0, kimi.vocab, time.monotonic)
        for place in dead:
            fleet.kill(place)
        return await Doctor(subject, fleet, wall=lambda: 1_800_000_000.0).examine()

    return asyncio.run(main())


def servers(found: list[Finding]) -> list[Finding]:
    """What it says of servers."""
    return [each for each in found if each.name == "server"]


@pytest.mark.parametrize("kind", ["vllm", "sglang", "llamacpp", "openai"])
def test_each_server_is_tried(tmp_path: Path, kimi_folder: Path, kimi: Loaded, kind: str) -> None:
    """Ids come back and the tokenizer agrees, of every engine that gives ids; nothing of the API is asked or said."""
    found = examine(tmp_path, kimi_folder, kimi, kind=kind)
    assert [each.standing for each in servers(found)] == [OK, OK], found
    ids = "as text" if kind == "openai" else "ids come back, its tokenizer agrees"
    assert all(ids in each.says for each in servers(found))
    assert {each.name for each in found} == {"python", "run directory", "tokenizer", "prompts", "server", "open files",
                                             "disk", "file system", "journal"}  # fmt: skip
    assert "$" not in repr(found)
    assert exit_code(found) == 0


def test_one_of_two_is_away(tmp_path: Path, kimi_folder: Path, kimi: Loaded) -> None:
    """A run would go on without it, so it is a warning; without any server there is no run."""
    found = servers(examine(tmp_path, kimi_folder, kimi, dead=(THERE,)))
    assert [each.standing for each in found] == [OK, WARN]
    assert "is the server started?" in found[1].says
    none = examine(tmp_path, kimi_folder, kimi, dead=(HERE, THERE))
    assert [each.standing for each in servers(none)] == [FAIL, FAIL]
    assert exit_code(none) == 2


def test_a_server_without_ids(tmp_path: Path, kimi_folder: Path, kimi: Loaded) -> None:
    """Said before the run, with what to do, and not found out at its end."""
    found = servers(examine(tmp_path, kimi_folder, kimi, told=Told.NONE))
    assert {each.standing for each in found} == {FAIL}
    assert 'gives no token ids: update vLLM, or take backend = "openai"' in found[0].says


def test_another_model(tmp_path: Path, kimi_folder: Path, kimi: Loaded) -> None:
    """The name that the server has for its model is said."""
    found = servers(examine(tmp_path, kimi_folder, kimi, model="kimi"))
    assert "serves 'kimi', not 'moonshotai/kimi-k2.5': set [target] served_as" in found[0].says
    good = servers(examine(tmp_path, kimi_folder, kimi, model="kimi", more='served_as = "kimi"'))
    assert [each.standing for each in good] == [OK, OK]


def test_the_fallback_is_looked_at_too(tmp_path: Path, kimi_folder: Path, kimi: Loaded) -> None:
    """Its key, endpoints and money, beside the servers; without its key the run would not start."""
    found = examine(tmp_path, kimi_folder, kimi, more=FALLBACK, key="sk-1")
    names = [each.name for each in found]
    assert [each.standing for each in servers(found)] == [OK, OK]
    assert {"network", "key", "endpoints", "limit"} <= set(names)
    assert exit_code(found) == 0, found
    assert exit_code(examine(tmp_path, kimi_folder, kimi, more=FALLBACK)) == 6


def test_a_server_s_own_key_is_never_said(tmp_path: Path) -> None:
    """A variable that RUN.toml names and nobody set is told of; no server is asked then."""
    (tmp_path / "a.jsonl").write_text('{"prompt": "One?"}\n')
    config = parse(TOML.format(backend="vllm", tokenizer="none", more='key_env = "K"'), tmp_path / "RUN.toml")
    subject = Subject(SecretStr("sk-of-a-server"), config, key_error="key_env: the environment variable K is not set")
    fleet = Fleet({})
    found = asyncio.run(Doctor(subject, fleet).examine())
    assert [(each.standing, each.says) for each in servers(found)] == [(FAIL, subject.key_error)]
    assert exit_code(found) == 6
    assert config.target.model == MODEL
