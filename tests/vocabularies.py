r"""Real vocabularies as `tokenizer.json` folders, made without network from `splintr-rs`.

It gives the bytes of each entry; the merges are found again from the order of the entries, as byte-pair encoding made
them. Split patterns, which it does not give, are those of the public definitions: qwen3 and glm4 of the `tokenizer.json` of
Qwen/Qwen3-32B and zai-org/GLM-4.5 (`test_families.py` holds the whole against splintr's own encoder),
gpt-oss of `tiktoken_ext.openai_public.o200k_base`, DeepSeek of the `tokenizer.json` of deepseek-ai/DeepSeek-V3. The "agent
tokens" that splintr adds above a base vocabulary are left out.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from eyas.families import FAMILIES, Loaded
from eyas.families.calls import DSML, deepseek_mark
from eyas.families.kimi import LAYOUT
from eyas.vocab import Vocab, write_kimi_vocabulary

VERSION = "1"
"""Part of the cache's name: raise it when what is written changes."""

_LETTERS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_TAIL = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"

QWEN = (_LETTERS + r"\p{N}" + _REST,)
GLM = (_LETTERS + r"\p{N}{1,3}" + _REST,)
_WORDS = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_TAIL}|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_TAIL}"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
O200K = (_WORDS,)
_MARKS = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DEEPSEEK = (r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", _MARKS)

_V4 = {
    f"<\uff5c{name}\uff5c>": number
    for name, number in {
        "latest_reminder": 128828,
        "action": 128829,
        "query": 128830,
        "authority": 128831,
        "domain": 128832,
        "title": 128836,
        "read_url": 128845,
    }.items()
} | {"<think>": 128821, "</think>": 128822, DSML: 128825}


@dataclass(frozen=True)
class Source:
    """One vocabulary of splintr: entries below `entries`, specials up to `last`, split patterns, NFC or not."""

    name: str
    entries: int
    last: int
    patterns: tuple[str, ...]
    nfc: bool = False
    more: Mapping[str, int] = field(default_factory=dict)


SOURCES = {
    "qwen3": Source("qwen3", 151_643, 151_668, QWEN, nfc=True),
    "glm4": Source("glm4", 151_329, 151_364, GLM),
    "gpt-oss": Source("gpt-oss", 199_998, 200_018, O200K),
    "deepseek_v3": Source("deepseek_v3", 128_000, 128_814, DEEPSEEK),
    "deepseek_v4": Source("deepseek_v3", 128_000, 128_814, DEEPSEEK, more=_V4),
}
"""By name; `deepseek_v4` has V3's entries (the two files are equal there) and the special ids of V4's `tokenizer.json`."""

OF_FAMILY = {
    "qwen": "qwen3",
    "glm": "glm4",
    "gpt-oss": "gpt-oss",
    "deepseek-v4": "deepseek_v4",
    "deepseek": "deepseek_v3",
    "kimi": "kimi_k2",
}
"""The vocabulary of each family by the start of its name. Qwen3.5 and GLM-5 have others, with the same names of specials."""


def modes(family: Any) -> list[bool]:
    """The modes that a family has, thinking first."""
    return sorted(family.modes, reverse=True)


def bound(family: str, request: pytest.FixtureRequest) -> Loaded:
    """A family with its vocabulary; of Qwen3.5 and GLM-5 the vocabulary of the generation before."""
    return _bound(family, folder(_source(family), request))


def vocabulary(model: str, request: pytest.FixtureRequest) -> Vocab:
    """The vocabulary of a model by the start of its name."""
    return _vocab(folder(_source(model), request))


def folder(source: str, request: pytest.FixtureRequest) -> Path:
    """The tokenizer folder of a vocabulary, written once and kept in pytest's cache."""
    cache_dir = request.config.cache
    assert cache_dir is not None, "run pytest with its cache"
    place = cache_dir.mkdir(f"vocabulary-{source}-{VERSION}")
    splintr = pytest.importorskip("splintr", reason="NO VOCABULARIES, family tests do not run")
    if source == "kimi_k2":
        return write_kimi_vocabulary(place)
    if not (place / "tokenizer.json").is_file():
        write(place, SOURCES[source], splintr.Tokenizer.from_pretrained(SOURCES[source].name))
    return place


def write(place: Path, source: Source, tokenizer: Any) -> None:
    """Write a `tokenizer.json`."""
    named: dict[str, int] = tokenizer.special_tokens()
    moved = set(source.more)
    specials = {name: i for name, i in named.items() if i <= source.last and name not in moved} | dict(source.more)
    taken = set(specials.values())
    # The library numbers added tokens one after the other behind the entries, so the gaps are filled as DeepSeek fills them.
    gaps = (i for i in range(source.entries, max(taken)) if i not in taken)
    specials |= {deepseek_mark(f"place holder no {index}"): i for index, i in enumerate(gaps)}
    entries = {i: bytes(tokenizer.decode_token_bytes(i)) for i in range(source.entries) if i not in taken}
    letters = {byte: char for char, byte in importlib.import_module("eyas.vocab.byte_level")._BYTES.items()}
    spell = {i: "".join(letters[byte] for byte in data) for i, data in entries.items()}
    merges = [[spell[a], spell[b]] for a, b in _merges(entries)]
    split = [
        {"type": "Split", "pattern": {"Regex": each}, "behavior": "Isolated", "invert": False}
        for each in source.patterns
    ]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    low = {name: i for name, i in specials.items() if i < source.entries}
    text = json.dumps(
        {
            "version": "1.0",
            "added_tokens": [{"id": i, "content": n, **flags} for n, i in sorted(specials.items(), key=lambda x: x[1])],
            "normalizer": {"type": "NFC"} if source.nfc else None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*split, level]},
            "decoder": level,
            "model": {"type": "BPE", "vocab": {name: i for i, name in spell.items()} | low, "merges": merges},
        },
        ensure_ascii=False,
    )
    temporary = place / ".tokenizer.json"
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(place / "tokenizer.json")


def _merges(entries: Mapping[int, bytes]) -> Iterable[tuple[int, int]]:
    """The pair of which each entry was made, in the order of the entries."""
    ranks = {data: i for i, data in entries.items()}
    for number, data in entries.items():
        parts = [data[i : i + 1] for i in range(len(data))]
        while len(parts) > 2:
            best, at = min((ranks.get(a + b, number), i) for i, (a, b) in enumerate(pairwise(parts)))
            if best >= number:
                break
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        if len(parts) == 2 and parts[0] in ranks and parts[1] in ranks:
            yield ranks[parts[0]], ranks[parts[1]]


def _source(model: str) -> str:
    return next(name for start, name in OF_FAMILY.items() if model.startswith(start))


@cache
def _bound(family: str, place: Path) -> Loaded:
    described: Any = FAMILIES[family]
    return described.bind(_vocab(place))


@cache
def _vocab(place: Path) -> Vocab:
    return Vocab.load(place, LAYOUT)
