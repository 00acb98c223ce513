"""Whole runs against stand-in engines: the same RUN.toml on each, replicas that die, imports and a fallback."""

from __future__ import annotations

import json
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from eyas.records import Run
from eyas.types import Completion
from tests import enginekit, kit

TOML = """
[run]
dir = "run"
[target]
model = "{model}"
backend = "{backend}"
base_url = {urls}
tokenizer = {tokenizer}
max_tokens = 300
{more}
[limits]
in_flight = {in_flight}
processes = 1
[[datasets]]
name = "B3"
source = "prompts.jsonl"
"""
PROMPTS = 40
SHORT = "length_median=60"


def write(
    folder: Path, backend: str, urls: list[str], tokenizer: Path, prompts: int = PROMPTS, **fields: object
) -> Path:
    """Prompts and RUN.toml in a folder; `more` are lines of [target] and of sections after it."""
    rows = ({"prompt": f"What is {number} plus {7 * number}?"} for number in range(prompts))
    (folder / "prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = {"model": enginekit.MODEL, "more": "", "in_flight": 16, **fields}
    text = TOML.format(backend=backend, urls=json.dumps(urls), tokenizer=json.dumps(str(tokenizer)), **given)
    (folder / "RUN.toml").write_text(text)
    return folder


def rows(folder: Path, out: str) -> dict[str, dict[str, object]]:
    """Exported rows by id."""
    done = kit.eyas(folder, "export", "run", "--out", out)
    assert done.returncode == 0, done.stderr
    lines = [line for path in sorted((folder / out).glob("rows-*.jsonl")) for line in path.read_text().splitlines()]
    return {row["id"]: row for row in map(json.loads, lines)}


def test_the_same_run_on_every_backend_gives_the_same_ids(kimi_folder: Path, tmp_path: Path) -> None:
    """Only backend and base_url differ (and served_as once): ids in and ids out give the same rows, all labelled engine."""
    found = {}
    for kind, name in (("vllm", "served"), ("sglang", enginekit.MODEL), ("llamacpp", enginekit.MODEL)):
        folder = tmp_path / kind
        folder.mkdir()
        options = {"set": SHORT, "speed": 1000, "model": name, "family": "kimi-k2.5"}
        with enginekit.replicas(1, kind, kimi_folder, folder, **options) as (server,):
            more = f'served_as = "{name}"' if name != enginekit.MODEL else ""
            write(folder, kind, [server.url], kimi_folder, more=more)
            done = kit.eyas(folder, "run", "RUN.toml", "--json", "--progress", "none")
        assert done.returncode == 0, done.stderr
        status = json.loads(done.stdout)
        assert status["datasets"]["B3"]["done"] == PROMPTS
        assert status["labels"] == {"engine": PROMPTS}
        assert status["money"]["settled"] == 0
        found[kind] = {key: (row["input_ids"], row["loss_mask"]) for key, row in rows(folder, "out").items()}
    assert len(found["vllm"]) == PROMPTS
    assert found["vllm"] == found["sglang"] == found["llamacpp"]


def test_text_of_the_same_server_is_labelled_for_what_it_is(kimi_folder: Path, tmp_path: Path) -> None:
    """Through `openai` the same answers come as text: a label that proves ids is never wrong, and nothing costs anything."""
    with enginekit.replicas(1, "vllm", kimi_folder, tmp_path, set=SHORT, speed=1000) as (server,):
        write(tmp_path, "openai", [server.url], kimi_folder)
        done = kit.eyas(tmp_path, "run", "RUN.toml", "--json", "--progress", "none")
        assert done.returncode == 0, done.stderr
        truth = {tuple(each["ids"]) for each in server.counts(ids=True)["answers"] if each["status"] == "full"}
    assert json.loads(done.stdout)["money"]["settled"] == 0
    sure = [row for row in rows(tmp_path, "out").values() if row["metadata"]["label"] in ("streamed", "logprobs")]
    assert len(sure) > PROMPTS // 2
    for row in sure:
        sampled = tuple(number for number, mask in zip(row["input_ids"], row["loss_mask"], strict=True) if mask)
        assert sampled in truth


def test_four_replicas_share_and_one_may_die_and_come_back(kimi_folder: Path, tmp_path: Path) -> None:
    """One of four is killed in mid-run and started again: every prompt has one answer, the others take its work over."""
    prompts = 200
    with enginekit.replicas(4, "vllm", kimi_folder, tmp_path, set=SHORT, speed=60, slots=10) as servers:
        write(tmp_path, "vllm", [s.url for s in servers], kimi_folder, prompts, in_flight=40)
        run = kit.start(tmp_path, "run", "RUN.toml", "--json", "--progress", "none")
        deadline = time.monotonic() + 100
        while sum(entry.get("status") == "full" for s in servers for entry in s.log()) < prompts // 4:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        servers[0].kill()
        while sum(entry.get("status") == "full" for s in servers for entry in s.log()) < prompts // 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        servers[0].start()
        out, err = run.communicate(timeout=100)
        assert run.returncode == 0, err
        shares = [sum(entry.get("status") == "full" for entry in s.log()) for s in servers]
    status = json.loads(out)
    assert status["datasets"]["B3"]["done"] == prompts
    assert status["labels"] == {"engine": prompts}
    assert sum(shares) >= prompts
    assert min(shares[1:]) > prompts // 8, shares
    with closing(Run(tmp_path / "run")) as known:
        answers = Counter(attempt.work for attempt in known.state.attempts.values() if attempt.answered)
    assert set(answers.values()) == {1}
    assert len(answers) == prompts


def test_a_replica_that_is_away_at_the_start_is_said_and_the_others_answer(kimi_folder: Path, tmp_path: Path) -> None:
    """It is no error while another one is there; with none there, nothing is begun and the reason is said."""
    with enginekit.replicas(2, "sglang", kimi_folder, tmp_path, set=SHORT, speed=1000) as servers:
        write(tmp_path, "sglang", [s.url for s in servers], kimi_folder)
        servers[1].kill()
        done = kit.eyas(tmp_path, "run", "RUN.toml", "--json", "--progress", "none")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["providers"].keys() == {servers[0].place}
        servers[0].kill()
        again = kit.eyas(tmp_path, "run", "RUN.toml")
    assert again.returncode == 2
    assert "cannot be reached" in again.stderr


@pytest.mark.parametrize(
    ("kind", "options", "says"),
    [
        ("vllm", {"no_ids": True}, "gives no token ids"),
        ("sglang", {"no_ids": True}, "gives no token ids"),
        ("vllm", {"model": "other", "family": "kimi-k2.5"}, "served_as"),
        ("openai", {}, "refuses what vLLM takes"),
    ],
)
def test_what_a_server_cannot_do_is_said_before_the_first_request(
    kind: str, options: dict[str, object], says: str, kimi_folder: Path, tmp_path: Path
) -> None:
    """Exit 2 and a sentence; no run directory holds a request."""
    with enginekit.replicas(1, kind, kimi_folder, tmp_path, set=SHORT, **options) as (server,):
        write(tmp_path, "vllm" if kind == "openai" else kind, [server.url], kimi_folder)
        done = kit.eyas(tmp_path, "run", "RUN.toml")
    assert done.returncode == 2, done.stderr
    assert says in done.stderr
    assert not (tmp_path / "run" / "journal.db").exists()


def test_a_local_run_imported_answers_and_the_api_finish_one_quota(kimi_folder: Path, tmp_path: Path) -> None:
    """A server that dies half-way, answers made elsewhere, and the API: one journal, and each row says where it came from."""
    prompts = 30
    other = tmp_path / "other"
    other.mkdir()
    with enginekit.replicas(1, "vllm", kimi_folder, other, set=SHORT, speed=1000, seed=5) as (server,):
        write(other, "vllm", [server.url], kimi_folder, 10)  # its first ten prompts are those of the run
        assert kit.eyas(other, "run", "RUN.toml", "--progress", "none").returncode == 0
        assert kit.eyas(other, "export", "run", "--out", "out").returncode == 0
    with kit.simulator(kimi_folder, length_median=60, speed=20) as sim:
        more = f'[fallback]\nbackend = "openrouter"\nbase_url = "{sim.url}"\n[budget]\nusd = 5.0'
        options = {"set": SHORT, "speed": 1000, "fail_after": 12}
        with enginekit.replicas(1, "vllm", kimi_folder, tmp_path, **options) as (server,):
            write(tmp_path, "vllm", [server.url], kimi_folder, prompts, more=more, in_flight=2)
            first = kit.eyas(tmp_path, "import", "RUN.toml", str(other / "out" / "rows-00000.jsonl"), "--dataset", "B3")
            assert first.returncode == 0, first.stderr
            text = (tmp_path / "RUN.toml").read_text()
            (tmp_path / "RUN.toml").write_text(text.replace("in_flight = 2", "in_flight = 2\nreread_seconds = 0.2"))
            done = kit.eyas(tmp_path, "run", "RUN.toml", "--json", "--yes", "--progress", "plain")
        assert done.returncode == 0, done.stderr
    status = json.loads(done.stdout)
    assert status["datasets"]["B3"]["done"] == prompts
    assert status["money"]["settled"] > 0
    tags = Counter(str(row["metadata"]["tag"]).split(":")[0].split("/")[0] for row in rows(tmp_path, "out").values())
    assert tags["import"] == 10
    assert tags["127.0.0.1"] >= 5
    assert sum(tags.values()) == prompts
    assert len(tags) > 2
    with closing(Run(tmp_path / "run")) as known:
        some = next(a for a in known.state.attempts.values() if a.answered and a.tag == server.place)
        assert isinstance(known.completion(some), Completion)
