"""The RUN.toml files of examples/: one for each backend, all of them load, and they differ in who answers only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest

from eyas.config import RunConfig, load, parse
from eyas.config.target import API, Backend
from eyas.families import guess

FOLDER = Path(__file__).parents[1] / "examples"
BACKENDS = get_args(Backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_each_backend_has_its_example(backend: str) -> None:
    """It loads, asks that backend, costs dollars only where an API bills, and its prompts are there."""
    config = load(FOLDER / backend / "RUN.toml")
    assert config.target.backend == backend
    assert (config.budget.usd is None) == (backend != API)
    assert guess(config.target.model) is not None
    assert (config.base / config.datasets[0].source).exists()


def test_a_run_moves_by_its_target_alone() -> None:
    """Model and datasets are the same in all of them, so that the same run directory goes on at another backend."""

    def rest(config: RunConfig) -> tuple[object, ...]:
        return config.run, config.target.model, config.target.max_tokens, config.datasets

    assert len({repr(rest(load(FOLDER / backend / "RUN.toml"))) for backend in BACKENDS}) == 1


def test_the_fallback_in_a_comment_loads_too() -> None:
    """The lines that a user would uncomment are right."""
    path = FOLDER / "vllm" / "RUN.toml"
    text = path.read_text(encoding="utf-8")
    for line in ("[fallback]", 'backend = "openrouter"', "after_minutes = 480"):
        assert f"# {line}\n" in text
        text = text.replace(f"# {line}\n", f"{line}\n")
    config = parse(text + "[budget]\nusd = 1.0\n", path)
    assert config.fallen_back.target.bills


def test_the_page_names_every_folder() -> None:
    """README.md has a row for each."""
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert all(f"({backend}/RUN.toml)" in page for backend in BACKENDS)
    lines = (FOLDER / "prompts.jsonl").read_text(encoding="utf-8").splitlines()
    assert len({json.loads(line)["prompt"] for line in lines}) == 12
