"""The dataset card: everything that a reader must know before publishing, from the manifest alone."""

from __future__ import annotations

import re
from typing import Any

import pytest

from eyas.exporters.card import text
from eyas.types import Label

STEPS = [
    {"step": "prompts", "rows": 50, "tokens": 0, "usd": 2.0},
    {"step": "answers", "rows": 40, "tokens": 9000, "usd": 1.9},
    {"step": "label", "rows": 30, "tokens": 8000, "usd": 1.5},
    {"step": "kept", "rows": 30, "tokens": 8000, "usd": 1.5},
    {"step": "max_length", "rows": 30, "tokens": 8000, "usd": 1.5},
    {"step": "supervised", "rows": 30, "tokens": 7900, "usd": 1.49},
]
LOSSES = [{"step": "label", "reason": "label near", "rows": 10, "requests": 0, "tokens": 1000, "usd": 0.4}]
MANIFEST: dict[str, Any] = {
    "schema": 1,
    "eyas": "export",
    "format": "rows",
    "labels": "strict",
    "model": "moonshotai/kimi-k2.5",
    "family": "kimi-k2.5",
    "runs": 2,
    "datasets": {
        "B3": {
            "answers": 40,
            "exported": 30,
            "tokens": 9_500,
            "supervised_tokens": 7_900,
            "usd": {"paid": 1.9, "exported": 1.5},
            "labels": {"streamed": {"answers": 30, "exported": 30}, "near": {"answers": 10, "exported": 0}},
            "excluded": {"label near": 10},
        }
    },
    "providers": {
        "Chutes": {
            "answers": 40,
            "exported": 30,
            "supervised_tokens": 7_900,
            "usd": 1.9,
            "labels": {"streamed": 30, "near": 10},
        }
    },
    "sources": {"/home/someone/b3|x.jsonl": 28, "b3|x.jsonl": 2},
    "habits": {},
    "yield": {"total": {"steps": STEPS, "losses": LOSSES}, "datasets": {"B3": {"steps": STEPS, "losses": LOSSES}}},
    "cannot": ["Why an answer's label is what it is."],
    "shards": [{"name": "rows-00000.jsonl", "rows": 28, "bytes": 1, "sha256": "0"}],
    "eval_shards": [{"name": "eval-00000.jsonl", "rows": 2, "bytes": 1, "sha256": "0"}],
    "draft_vocab": {
        "vocab_size": 163_840,
        "supervised_tokens": 7_900,
        "distinct": 2_000,
        "sizes": [32_000],
        "filled": {"32000": 30_000},
        "files": [],
        "coverage": {"all": {"8000": 0.99, "32000": 1.0}, "datasets": {"B3": {"8000": 0.9876, "32000": 1.0}}},
    },
    "warnings": ["B3: 3 of 40 answers ended at max_tokens"],
}
HEAD = """\
---
pretty_name: "Drafter training data of moonshotai/kimi-k2.5"
license: other
task_categories:
- text-generation
tags:
- speculative-decoding
- drafter
- distillation
- synthetic
size_categories:
- n<1K
configs:
- config_name: default
  data_files:
  - split: train
    path:
    - "rows-00000.jsonl"
  - split: eval
    path:
    - "eval-00000.jsonl"
---
"""


def _section(card: str, title: str) -> str:
    """The text under a heading."""
    return card.split(f"## {title}", 1)[1].split("\n## ", 1)[0]


def test_the_head_is_what_the_hub_reads() -> None:
    """Licence, task, tags, size and the files of both splits, so that other files are not taken for data."""
    assert text(MANIFEST).startswith(HEAD)


def test_every_figure_of_the_manifest_is_there() -> None:
    """Datasets, providers with label shares, the way from dollars to tokens, coverage, limits and warnings."""
    card = text(MANIFEST)
    assert "| B3 | 50 | 40 | 30 | 9,500 | 7,900 | $1.9000 | $1.5000 |" in _section(card, "Datasets")
    assert "| b3\\|x.jsonl | 30 |" in _section(card, "Datasets")
    assert "someone" not in card
    assert "| Chutes | 40 | 100.0% | 30 | streamed 75.0%, near 25.0% |" in _section(card, "Who answered")
    assert "| near | 10 | 0 | off by at most" in _section(card, "How the token ids are known")
    way = _section(card, "From dollars to supervised tokens")
    assert "| supervised tokens | 30 | 7,900 | $1.4900 |" in way
    assert "| with a label of the policy | label near | 10 | 1,000 | $0.4000 |" in way
    assert "| B3 | 98.76% | 100.00% |" in _section(card, "Draft vocabulary")
    assert "- Why an answer's label" in _section(card, "What the format `rows` does not carry")
    assert 'load_dataset("json", data_files="rows-00000.jsonl", split="train")' in _section(card, "How to load it")
    assert "ended at max_tokens" in _section(card, "Look at this before you train")


def test_licences_are_never_guessed() -> None:
    """A source's licence is told only where the manifest names it; the model's comes with the place to look at."""
    licences = _section(text(MANIFEST), "Licences")
    assert "| prompts of B3 | not stated: look before you publish |" in licences
    assert "Modified MIT; see https://huggingface.co/moonshotai/" in licences
    named = _section(text({**MANIFEST, "licences": {"B3": "CC-BY-4.0"}}), "Licences")
    assert "| prompts of B3 | CC-BY-4.0 |" in named
    unknown = _section(text({**MANIFEST, "family": "chat-template", "model": "someone/else"}), "Licences")
    assert "| weights of the model | not stated: look before you publish |" in unknown


@pytest.mark.parametrize(
    ("family", "licence"),
    [("deepseek-v3.1", "MIT"), ("qwen3", "Apache-2.0"), ("glm-4.6", "MIT"), ("gpt-oss", "Apache-2.0")],
)
def test_open_families_have_their_licence(family: str, licence: str) -> None:
    """The families that eyas knows have a line of their own."""
    assert f"| weights of the model | {licence}" in text({"family": family})


@pytest.mark.parametrize("key", sorted(MANIFEST))
def test_a_missing_key_leaves_out_its_section_only(key: str) -> None:
    """A manifest of another version, without any one key, still makes a card."""
    card = text({name: value for name, value in MANIFEST.items() if name != key})
    assert card.startswith("---\n")
    assert "## Licences" in card
    assert "None" not in card


def test_an_empty_manifest_is_a_card_too() -> None:
    """Nothing is needed; what nobody stated is not claimed."""
    card = text({})
    assert "license: other" in card
    assert "configs" not in card
    assert "look before you publish" in card


def test_without_a_yield_table_the_reasons_are_those_of_the_datasets() -> None:
    """Why answers are no rows is told from `excluded` then."""
    card = text({name: value for name, value in MANIFEST.items() if name != "yield"})
    assert "| label near | 10 |" in _section(card, "Answers that are no rows")


def test_every_label_has_a_meaning() -> None:
    """No label is left unexplained."""
    labels = {label.value: {"answers": 1, "exported": 1} for label in Label}
    card = text({"datasets": {"B3": {"labels": labels}}})
    assert all(re.search(rf"^\| {label} \| 1 \| 1 \| \w", card, re.MULTILINE) for label in Label)


def test_parquet_is_loaded_as_parquet() -> None:
    """The loader named is that of the files; several shards are a list."""
    shards = [{"name": f"rows-0000{n}.parquet", "rows": 1, "bytes": 1, "sha256": "0"} for n in range(2)]
    card = text({**MANIFEST, "format": "parquet", "shards": shards})
    assert 'load_dataset("parquet", data_files=["rows-00000.parquet", "rows-00001.parquet"]' in card
