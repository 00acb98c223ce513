"""`eyas plan`, `run`, `status` and `providers` by command against two stand-in servers: no key, no dollar, a pilot that measures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import kit
from tests.enginekit import replicas

pytestmark = pytest.mark.e2e
TOML = """
[run]
dir = "run"
[target]
model = "moonshotai/kimi-k2.5"
backend = "vllm"
base_url = {urls}
tokenizer = "{tokenizer}"
max_tokens = 1024
[limits]
in_flight = 16
processes = 1
[[datasets]]
name = "B3"
source = "prompts.jsonl"
"""


def test_plan_pilot_and_run_by_command(tmp_path: Path, kimi_folder: Path) -> None:
    """Before the pilot no time is known, after it it is; the pilot's answers belong to the run; one server may be away."""
    lines = (json.dumps({"prompt": f"Question {n}?"}) + "\n" for n in range(40))
    (tmp_path / "prompts.jsonl").write_text("".join(lines), encoding="utf-8")
    fast = {"set": ["length_median=40", "length_sigma=0.3"], "speed": 200, "latency": 0}
    with replicas(2, "vllm", kimi_folder, tmp_path, **fast) as (first, second):
        urls = json.dumps([first.url, second.url])
        (tmp_path / "RUN.toml").write_text(TOML.format(urls=urls, tokenizer=kimi_folder), encoding="utf-8")
        before = kit.eyas(tmp_path, "plan", "RUN.toml", "--json")
        assert before.returncode == 0, before.stderr
        assert json.loads(before.stdout)["minutes"] is None
        piloted = kit.eyas(tmp_path, "plan", "RUN.toml", "--json", "--pilot", "25", "--out", "plan.json")
        figures = json.loads(piloted.stdout)
        assert (figures["local"]["source"], figures["local"]["answers"]) == ("measured", 25), piloted.stderr
        assert figures["minutes"]["expected"] >= 0 < figures["local"]["tps"]
        assert figures["datasets"]["B3"]["works"] == 15
        second.kill()
        listed = kit.eyas(tmp_path, "providers", "RUN.toml")
        assert "1 of 2 can be asked now" in " ".join(listed.stdout.split()), listed.stderr
        done = kit.eyas(tmp_path, "run", "plan.json")
        assert done.returncode == 0, done.stderr
        assert "$" not in done.stderr
        said = kit.eyas(tmp_path, "status", "run")
        assert "who answered" in said.stdout
        assert "$" not in said.stdout
