"""`eyas init --backend`: the file for servers of one's own is short, loads, and needs no dollar and no key."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from eyas.cli.declared.begin import init as command
from eyas.config import load, parse
from eyas.config.target import API, Backend
from eyas.errors import UsageError
from eyas.report.own_starter import ADDRESSES, OwnWish, run_toml

OWN = sorted(set(get_args(Backend)) - {API})
FALLBACK = '[fallback]\nbackend = "openrouter"\nafter_minutes = 480\n'


def text(backend: str, model: str = "moonshotai/kimi-k2.5", urls: tuple[str, ...] = ()) -> str:
    """The file."""
    return run_toml(OwnWish(model, backend, urls, "b3", "b3.jsonl"))


@pytest.mark.parametrize("model", ["moonshotai/kimi-k2.5", "qwen/qwen3-8b", "acme/foo-7b"])
@pytest.mark.parametrize("backend", OWN)
def test_it_loads_whole_and_with_every_key_set(backend: str, model: str) -> None:
    """As it is, with each commented key set, and with its [fallback]; it is short, and no dollar stands in it."""
    made = text(backend, model)
    config = parse(made, Path("RUN.toml"))
    assert (config.target.backend, config.target.urls, config.budget.usd) == (backend, (ADDRESSES[backend],), None)
    whole = re.sub(r"^#(?=[a-z_]+ = )", "", made, flags=re.MULTILINE)
    parse(whole, Path("RUN.toml"))
    both = parse(made.replace("[budget]\n", f"{FALLBACK}\n[budget]\nusd = 5.0\n"), Path("RUN.toml"))
    assert both.fallen_back.target.bills
    for line in FALLBACK.splitlines():
        assert f"# {line}\n" in made
    assert len(made.splitlines()) < 50
    assert max(map(len, made.splitlines())) <= 120


def test_the_model_is_named_as_its_server_names_it() -> None:
    """VLLM and SGLang call a model as its weights are called; llama.cpp does not care, and has few slots."""
    assert parse(text("vllm"), Path("RUN.toml")).target.served_as == "moonshotai/Kimi-K2.5"
    assert "vllm serve moonshotai/Kimi-K2.5" in text("vllm")
    assert parse(text("vllm", "acme/foo-7b"), Path("RUN.toml")).target.asked_as == "acme/foo-7b"
    small = parse(text("llamacpp"), Path("RUN.toml"))
    assert (small.target.served_as, small.limits.in_flight, small.target.max_tokens) == (None, 8, 4096)


ADDRESS = st.builds("http://{}:{}".format, st.from_regex(r"[a-z]{1,10}", fullmatch=True), st.integers(1, 65535))


@given(st.lists(ADDRESS, min_size=1, max_size=6, unique=True), st.text(min_size=1))
@settings(max_examples=50, deadline=None)
def test_all_replicas_come_back(urls: list[str], source: str) -> None:
    """Whatever the addresses and names are, the file says exactly them."""
    config = parse(run_toml(OwnWish("m", "vllm", tuple(urls), "b3", source)), Path("RUN.toml"))
    assert (config.target.urls, config.datasets[0].source) == (tuple(urls), source)


def init(folder: Path, *arguments: str) -> Any:
    """The command in a folder; what it says goes to `output`."""
    return CliRunner().invoke(command, ["--out", str(folder / "RUN.toml"), *arguments])


def test_the_command(tmp_path: Path) -> None:
    """Flags say which server and where; the next step is a pilot, for it costs nothing."""
    ended = init(tmp_path, "--backend", "sglang", "--base-url", "http://a:1", "--base-url", "http://b:1")
    assert ended.exit_code == 0, ended.output
    assert load(tmp_path / "RUN.toml").target.urls == ("http://a:1", "http://b:1")
    assert "sglang: servers of your own, no dollars" in ended.output
    assert "--pilot 20`" in ended.output


@pytest.mark.parametrize("flags", [(), ("--backend", "openrouter")])
def test_an_address_needs_a_kind_of_server(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """Which server listens there is not guessed, and the API's address is known."""
    ended = init(tmp_path, "--base-url", "http://127.0.0.1:8000", *flags)
    assert isinstance(ended.exception, UsageError)
    assert not (tmp_path / "RUN.toml").exists()
