"""`eyas rehearse`: without a key, a network or a trace on disk; its screen, its JSON, its errors."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from eyas.cli import main
from eyas.config import load as load_config
from eyas.rehearse import Wish, gather, rehearsal
from eyas.sim import SCENARIOS, World, load
from eyas.sim.clock import now, play
from eyas.sim.light import LightVocabulary
from eyas.sim.played import PlayedTransport

PAGE = Path(__file__).parent.parent / "docs" / "rehearse.md"
TOML = """
[run]
dir = "r"
[target]
model = "moonshotai/kimi-k2.5"
base_url = "http://127.0.0.1:9/api/v1"
tokenizer = "{tokenizer}"
max_tokens = 2048
[budget]
usd = 1.0
[limits]
in_flight = 10
[[datasets]]
name = "A"
source = "a.jsonl"
expected_tokens = 300
[[datasets]]
name = "B"
source = "b.jsonl"
"""


@pytest.fixture
def run(tmp_path: Path, kimi_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A RUN.toml with two sets of 12 prompts, of an API that is not there; no key is set."""
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    for name in "ab":
        rows = [json.dumps({"prompt": f"say {number} in {name}"}) for number in range(12)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows))
    path = tmp_path / "RUN.toml"
    path.write_text(TOML.format(tokenizer=kimi_folder))
    return path


def eyas(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command."""
    with pytest.raises(SystemExit) as left:
        main(["rehearse", *words])
    told = capsys.readouterr()
    return int(left.value.code or 0), told.out, told.err


def test_a_run_is_rehearsed_without_key_network_or_trace(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says that nothing is bought, where its assumptions come from, and leaves no file behind."""
    before = sorted(run.parent.iterdir())
    code, out, err = eyas(capsys, str(run), "--no-variants", "--set", "length_median=200")
    assert code == 0
    assert "nothing is asked of a model, written or spent" in err
    assert "2 sets, 10 in flight, max_tokens 2,048, strict mode, pinned routing, $1.00" in " ".join(out.split())
    assert "Endpoints, prices, speeds, slots and faults: scenario rough." in out
    assert "expected_tokens of RUN.toml, scenario rough" in out
    assert sorted(run.parent.iterdir()) == before


def test_json_has_the_keys_that_the_page_promises(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every key of `--json`, of a variant too, stands in docs/rehearse.md."""
    code, out, _ = eyas(capsys, str(run), "--json", "--scenario", "clean", "--set", "length_median=100")
    told = json.loads(out)
    assert (code, told["schema"], told["scenario"], told["run"]) == (0, 1, "clean", str(run))
    named = set(re.findall(r"`([a-z_]+)`", PAGE.read_text(encoding="utf-8")))
    assert {*told, *told["assumed"], *told["settings"], *told["variants"][0]} <= named | {"A", "B"}


def test_a_scenario_that_is_not_there_is_named_with_those_that_are(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 2 and the list."""
    code, out, err = eyas(capsys, "--scenario", "nowhere")
    assert (code, out) == (2, "")
    assert all(name in err for name in SCENARIOS)


def test_the_list_of_the_api_goes_before_the_scenario(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the API answers, its endpoints, prices and measured speeds are taken; and it is asked for nothing but lists."""
    asked = list[str]()

    def handle(method: str, target: str, headers: Any, data: bytes) -> Any:
        asked.append(f"{method} {target}")
        return World(load("founding"), 0, LightVocabulary(), now).handle(method, target, headers, data)

    transport = PlayedTransport(handle)

    class Fake:
        async def __aenter__(self) -> PlayedTransport:
            return transport

        async def __aexit__(self, *_: object) -> None:
            return None

    monkeypatch.setattr(gather, "HttpTransport", Fake)
    config = load_config(run)
    job, origin = play(lambda: gather.of_run(config, "RUN.toml", load("clean"), SecretStr("sk-or-v1-test")))
    assert (origin.endpoints, origin.measured) == ("list", 4)
    assert {provider.tag for provider in job.scenario.providers} == {each.tag for each in load("founding").providers}
    assert origin.lengths == {"A": "expected_tokens", "B": "scenario"}
    assert all(each.startswith("GET ") for each in asked)
    told = rehearsal(job, origin, Wish(workers=1, compare=False))
    assert set(told["providers"]) <= {"chutes/int4", "novita/int4"}
