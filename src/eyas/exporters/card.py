"""The dataset card of an export: `README.md` as the Hugging Face hub reads it, made from the manifest alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import Any

from eyas.exporters.policy import section as _policy

Manifest = Mapping[str, Any]

_MEANING = {
    "engine": "the engine returned the ids",
    "logprobs": "the ids of a complete list of token bytes",
    "streamed": "every streamed piece is one vocabulary entry, and the counts agree",
    "counted": "rebuilt from text; the API's counts agree, and the provider delivers text as sampled",
    "stripped": "the counts agree, but tokens at the ends of texts may differ: their mask is 0",
    "repaired": "the counts agree after exactly one named repair",
    "uncounted": "nothing to check against",
    "near": "off by at most 2 tokens or 0.5 %: the row may hold wrong ids",
    "mismatch": "further off, or the prompt's count does not agree",
    "broken": "the text itself is damaged",
    "misserved": "another mode or endpoint than was asked for",
}
_STEPS = {
    "prompts": "asked and paid",
    "answers": "answers, whole or partial",
    "label": "with a label of the policy",
    "kept": "not dropped",
    "max_length": "within the length",
    "supervised": "supervised tokens",
}
_HUB = "https://huggingface.co/"
_LICENCES = (
    ("*kimi*", "Modified MIT", "moonshotai/Kimi-K2.5/blob/main/LICENSE"),
    ("*deepseek*", "MIT (the first V3: DeepSeek's own)", "deepseek-ai/DeepSeek-V3.1/blob/main/LICENSE"),
    ("*qwen3*", "Apache-2.0", "Qwen/Qwen3-235B-A22B/blob/main/LICENSE"),
    ("*glm-[45]*", "MIT", "zai-org/GLM-4.6"),
    ("*gpt-oss*", "Apache-2.0", "openai/gpt-oss-120b/blob/main/LICENSE"),
)
"""Licence of the open weights by family or model, as the makers' model cards state it, and where."""

_UNKNOWN = "not stated: look before you publish"
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def text(manifest: Manifest) -> str:
    """The card of an export.

    Args:
        manifest: what manifest.json holds, decoded. A section whose key is missing is left out. `licences`, if there,
            names licences of datasets.
    """
    parts = ("\n".join(section(manifest)) for section in _SECTIONS)
    return "\n".join(_head(manifest)) + "\n\n" + "\n\n".join(part for part in parts if part) + "\n"


def _head(manifest: Manifest) -> Iterator[str]:
    """The YAML that the hub reads. Quoted texts are JSON, which is YAML too."""
    rows = sum(shard["rows"] for shard in _shards(manifest))
    yield "---"
    yield f"pretty_name: {_quoted(_title(manifest))}"
    # Sources and model have licences of their own, so no single one can be named.
    yield "license: other"
    yield "task_categories:\n- text-generation"
    yield "tags:\n- speculative-decoding\n- drafter\n- distillation\n- synthetic"
    if rows:
        yield f"size_categories:\n- {next((name for most, name in _SIZES if rows < most), 'n>1M')}"
        yield "configs:\n- config_name: default\n  data_files:"
    for split, key in (("train", "shards"), ("eval", "eval_shards")):
        if names := [shard["name"] for shard in manifest.get(key) or ()]:
            yield f"  - split: {split}\n    path:"
            yield from (f"    - {_quoted(name)}" for name in names)
    yield "---"


def _about(manifest: Manifest) -> Iterator[str]:
    datasets = _mappings(manifest, "datasets")
    yield f"# {_title(manifest)}\n"
    yield "Answers of the target model, as training data for a drafter of speculative decoding. Written by `eyas export`.\n"
    facts: dict[str, Any] = {
        "target model": manifest.get("model"),
        "family": manifest.get("family"),
        "tokenizer": manifest.get("tokenizer"),
        "format": manifest.get("format"),
        "labels exported": manifest.get("labels"),
        "runs": manifest.get("runs"),
        "rows to train on": sum(shard["rows"] for shard in manifest.get("shards") or ()),
        "rows to evaluate on": sum(shard["rows"] for shard in manifest.get("eval_shards") or ()) or None,
        "tokens": sum(each.get("tokens", 0) for each in datasets.values()),
        "supervised tokens": sum(each.get("supervised_tokens", 0) for each in datasets.values()),
        "paid for the answers": _usd(sum(each.get("usd", {}).get("paid", 0.0) for each in datasets.values())),
    }
    yield from _table(("", ""), [(name, value) for name, value in facts.items() if value not in (None, "")])


def _datasets(manifest: Manifest) -> Iterator[str]:
    datasets = _mappings(manifest, "datasets")
    prompts = {
        name: next((step["rows"] for step in each["steps"] if step["step"] == "prompts"), "")
        for name, each in _mappings(_mappings(manifest, "yield"), "datasets").items()
    }
    columns = (
        "dataset",
        "prompts",
        "answers",
        "exported",
        "tokens",
        "supervised tokens",
        "paid",
        "paid for the exported",
    )
    rows = [
        (
            name,
            prompts.get(name, ""),
            *(each.get(key, "") for key in ("answers", "exported", "tokens", "supervised_tokens")),
            *(_usd(each.get("usd", {}).get(key, 0.0)) for key in ("paid", "exported")),
        )
        for name, each in datasets.items()
    ]
    if rows:
        yield "## Datasets\n"
        yield from _table(columns, rows)
    sources: Counter[str] = Counter()
    for path, number in _mappings(manifest, "sources").items():
        # The name alone: a path tells of somebody's disk.
        sources[PurePath(path).name or "not known"] += number
    if sources:
        yield "\nRows by the file that their prompt was read from:\n"
        yield from _table(("file", "rows"), sources.items())


def _providers(manifest: Manifest) -> Iterator[str]:
    providers = _mappings(manifest, "providers")
    if providers:
        total = sum(each.get("answers", 0) for each in providers.values())
        rows = [
            (
                name or "not known",
                each.get("answers", 0),
                _share(each.get("answers", 0), total),
                each.get("exported", ""),
                ", ".join(
                    f"{label} {_share(n, each.get('answers', 0))}" for label, n in each.get("labels", {}).items()
                ),
            )
            for name, each in providers.items()
        ]
        yield "## Who answered\n"
        yield from _table(("provider", "answers", "share", "exported", "labels of its answers"), rows)


def _labels(manifest: Manifest) -> Iterator[str]:
    counts: dict[str, Counter[str]] = {}
    for each in _mappings(manifest, "datasets").values():
        for label, count in each.get("labels", {}).items():
            counts.setdefault(label, Counter()).update(count)
    if counts:
        yield "## How the token ids are known\n"
        yield "An API gives text. Each answer's ids were rebuilt and checked, and its label says how sure they are.\n"
        rows = [
            (label, counts[label]["answers"], counts[label]["exported"], meaning)
            for label, meaning in _MEANING.items()
            if label in counts
        ]
        yield from _table(("label", "answers", "exported", "meaning"), rows)


def _losses(manifest: Manifest) -> Iterator[str]:
    total = _mappings(_mappings(manifest, "yield"), "total")
    if total:
        yield "## From dollars to supervised tokens\n"
        steps = [(_STEPS.get(s["step"], s["step"]), s["rows"], s["tokens"], _usd(s["usd"])) for s in total["steps"]]
        yield from _table(("step", "rows", "tokens of answers", "dollars"), steps)
        if losses := [
            (_STEPS.get(loss["step"], loss["step"]), loss["reason"], loss["rows"], loss["tokens"], _usd(loss["usd"]))
            for loss in total.get("losses") or ()
        ]:
            yield "\nWhat was lost before each step:\n"
            yield from _table(("before", "reason", "rows", "tokens", "dollars"), losses)
        return
    excluded: Counter[str] = Counter()
    for each in _mappings(manifest, "datasets").values():
        excluded.update(_mappings(each, "excluded"))
    if excluded:
        yield "## Answers that are no rows\n"
        yield from _table(("reason", "answers"), sorted(excluded.items()))


def _draft_vocab(manifest: Manifest) -> Iterator[str]:
    found = _mappings(manifest, "draft_vocab")
    coverage = _mappings(found, "coverage")
    if whole := _mappings(coverage, "all"):
        yield "## Draft vocabulary\n"
        yield (
            f"{found.get('distinct', 0):,} of {found.get('vocab_size', 0):,} ids occur under mask 1. The share of the "
            "supervised tokens that the most frequent ids cover, all datasets counted together:\n"
        )
        lines = [("all", whole), *_mappings(coverage, "datasets").items()]
        rows = [(name, *(f"{shares.get(size, 0.0):.2%}" for size in whole)) for name, shares in lines]
        yield from _table(("dataset", *(f"{int(size):,}" for size in whole)), rows)
        if found.get("sizes"):
            yield f"\nMaps (`draft_vocab/d2t-*.npy`, `t2d-*.npy`) are there for {_listed(found['sizes'])} ids."


def _licences(manifest: Manifest) -> Iterator[str]:
    named = _mappings(manifest, "licences")
    rows = [(f"prompts of {name}", named.get(name) or _UNKNOWN) for name in _mappings(manifest, "datasets")]
    rows.append(("weights of the model", _weights(f"{manifest.get('family')} {manifest.get('model')}".lower())))
    rows.append(("terms of the API and of the providers", _UNKNOWN))
    yield "## Licences\n"
    yield "The answers came from the model, over an API. What you may do with them depends on all of these:\n"
    yield from _table(("of", "licence"), rows)


def _weights(model: str) -> str:
    """The licence of a model's weights, with the place to look at."""
    hits = (f"{name}; see {_HUB}{page}" for glob, name, page in _LICENCES if fnmatchcase(model, glob))
    return next(hits, _UNKNOWN)


def _cannot(manifest: Manifest) -> Iterator[str]:
    if sentences := manifest.get("cannot"):
        yield f"## What the format `{manifest.get('format', '')}` does not carry\n"
        yield from (f"- {_cell(sentence)}" for sentence in sentences)


def _loading(manifest: Manifest) -> Iterator[str]:
    shards = _shards(manifest)
    if shards:
        kind = "parquet" if shards[0]["name"].endswith(".parquet") else "json"
        names = [shard["name"] for shard in manifest.get("shards") or shards]
        yield "## How to load it\n"
        yield "```python\nfrom datasets import load_dataset\n"
        yield f'rows = load_dataset("{kind}", data_files={json.dumps(names[0] if len(names) == 1 else names)}, split="train")'
        yield "```\n\n`manifest.json` has the size and the sha256 of every file."


def _warnings(manifest: Manifest) -> Iterator[str]:
    if warnings := manifest.get("warnings"):
        yield "## Look at this before you train\n"
        yield from (f"- {_cell(warning)}" for warning in warnings)


def _title(manifest: Manifest) -> str:
    return f"Drafter training data of {manifest.get('model') or 'an unnamed model'}"


def _shards(manifest: Manifest) -> list[Mapping[str, Any]]:
    return [*(manifest.get("shards") or ()), *(manifest.get("eval_shards") or ())]


def _mappings(manifest: Manifest, key: str) -> dict[str, Any]:
    return dict(manifest.get(key) or {})


def _table(columns: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(map(_cell, row))} |"


def _cell(value: Any) -> str:
    """A value in a table: one line, and no markup of its own."""
    if isinstance(value, int):
        return f"{value:,}"
    return " ".join(str(value).split()).replace("|", "\\|").replace("<", "&lt;")


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _usd(dollars: float) -> str:
    return f"${dollars:,.4f}"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else ""


def _listed(sizes: Iterable[int]) -> str:
    return ", ".join(f"{size:,}" for size in sizes)


_SECTIONS = (
    *(_about, _datasets, _providers, _labels, _losses),
    *(_draft_vocab, _licences, _policy, _cannot, _loading, _warnings),
)
