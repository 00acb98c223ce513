"""The Kimi K2 vocabulary that the package `splintr-rs` carries, so that demo and tests need no network."""

from __future__ import annotations

import base64
import hashlib
import importlib
import json
import os
from pathlib import Path
from typing import Any, cast

from eyas.errors import UsageError

KIMI_SHA256 = "b6c497a7469b33ced9c38afb1ad6e47f03f5e5dc05f15930799210ec050c5103"
"""sha256 of the official `tiktoken.model` of moonshotai/Kimi-K2-Instruct, K2.7-Code and K3, which are one file."""

_KIMI_RANKS = 163_584
_KIMI_SPECIALS = 256


def kimi_folder() -> Path:
    """The tokenizer folder that demo and simulator share, in the user's cache; written from `splintr-rs` at need.

    Raises:
        UsageError: `splintr-rs` is not installed, or the folder cannot be written.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    try:
        return write_kimi_vocabulary(cache / "eyas" / "kimi-k2.5")
    except OSError as error:
        raise UsageError(f"{cache} cannot be written ({error}): set XDG_CACHE_HOME to a folder that can") from error


def write_kimi_vocabulary(folder: Path) -> Path:
    """Write the Kimi K2 tokenizer that `splintr-rs` carries as a tokenizer folder; a good one is left as it is.

    Demo and tests need no network by it. The vocabulary is Moonshot AI's, under its modified MIT licence.

    Raises:
        UsageError: `splintr-rs` is not installed, or carries another vocabulary.
    """
    model, config = folder / "tiktoken.model", folder / "tokenizer_config.json"
    if config.is_file() and model.is_file() and hashlib.sha256(model.read_bytes()).hexdigest() == KIMI_SHA256:
        return folder
    try:
        splintr: Any = importlib.import_module("splintr")
    except ImportError:
        raise UsageError("the built-in Kimi vocabulary needs: pip install 'eyas[demo]'") from None
    source: Any = splintr.Tokenizer.from_pretrained("kimi_k2")
    tokens = (cast("bytes", source.decode_token_bytes(number)) for number in range(_KIMI_RANKS))
    data = b"".join(b"%s %d\n" % (base64.b64encode(token), number) for number, token in enumerate(tokens))
    if hashlib.sha256(data).hexdigest() != KIMI_SHA256:
        raise UsageError("this splintr-rs carries another Kimi vocabulary: pip install 'splintr-rs==0.22.0'")
    named = {name: i for name, i in cast("dict[str, int]", source.special_tokens()).items() if "reserved" not in name}
    inside = sorted((i, name) for name, i in named.items() if _KIMI_RANKS <= i < _KIMI_RANKS + _KIMI_SPECIALS)
    added = {
        str(i): {"content": name, "special": not name.startswith(("<think", "</think", "<|tool_"))}
        for i, name in inside
    }
    folder.mkdir(parents=True, exist_ok=True)
    _replace(model, data)
    table = {"added_tokens_decoder": added, "tokenizer_class": "TikTokenTokenizer"}
    _replace(config, json.dumps(table, indent=2).encode())
    return folder


def _replace(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(data)
    temporary.replace(path)
