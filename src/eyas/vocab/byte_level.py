"""`tokenizer.json`: byte-level BPE (Qwen, GLM, DeepSeek, gpt-oss, Llama 3) by the `tokenizers` library.

Entries are spelled in GPT-2's alphabet: one printable character a byte. Every added token counts as special, also those
marked `special: false` such as Qwen3's `<think>`: text of an answer never becomes one.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from eyas.errors import UsageError
from eyas.vocab.coder import Files, well_formed
from eyas.vocab.proven import proven

if TYPE_CHECKING:
    import tiktoken

FILE = "tokenizer.json"

_READ = "only byte-level BPE is read (Qwen, GLM, DeepSeek, gpt-oss, Llama 3); use another copy of the model"
_WHOLE = frozenset({"ByteLevel", "Digits", "Punctuation", "Split"})
_NEVER = frozenset({0xC0, 0xC1, *range(0xF5, 0x100)})
"""Bytes that no UTF-8 text holds."""
_LONG = 100_000
"""Characters from which on `tokenizers` encodes: the regex of tiktoken gives up on a million spaces in a row."""


def _alphabet() -> dict[str, int]:
    """GPT-2's characters by what byte they stand for: printable Latin-1 as it is, the rest from U+0100 on."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(0x100) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(0x100 + i): byte for i, byte in enumerate(rest)}


_BYTES = _alphabet()


class ByteLevelCoder:
    """The `tokenizers` library; ordinary text goes through tiktoken where that is proven to give the same ids."""

    def __init__(self, full: Any, plain: Any, fast: tiktoken.Encoding | None, *, normalizes: bool) -> None:
        self._full = full
        self._plain = plain
        self._fast = fast
        self.normalizes = normalizes

    @property
    def fast(self) -> bool:
        """Whether tiktoken encodes ordinary text."""
        return self._fast is not None

    def encode(self, text: str) -> list[int]:
        """Ids whose bytes are the text; nothing in it is special, and nothing is normalised."""
        if self._fast is not None and len(text) <= _LONG:
            return self._fast.encode_ordinary(text)
        return _ids(self._plain, text)

    def encode_special(self, text: str) -> list[int]:
        """Ids as the file defines them, specials and normalisation included; no BOS."""
        return _ids(self._full, text)


def read(path: Path) -> Files:
    """The tokenizer in a `tokenizer.json`.

    Raises:
        UsageError: the file cannot be read, is no byte-level BPE, or `tokenizers` is not installed.
    """
    try:
        library: Any = importlib.import_module("tokenizers")
    except ImportError:
        raise UsageError(f"reading {path} needs: pip install 'eyas[tokenizers]'") from None
    try:
        data = path.read_bytes()
        spec: dict[str, Any] = json.loads(data)
        reason = _refused(spec)
        if reason:
            raise UsageError(f"{path} {reason}.")
        specials = {str(token["content"]): int(token["id"]) for token in spec.get("added_tokens") or ()}
        ranks = _ranks(spec["model"]["vocab"], frozenset(specials.values()))
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} cannot be read ({error!r}): download it again (a Git LFS pointer?).") from error
    missing = sum(bytes([byte]) not in ranks for byte in range(0x100) if byte not in _NEVER)
    if missing:
        raise UsageError(f"{path} has no entry for {missing} single bytes: {_READ}.")
    full, plain = _made(library, path, data.decode())
    _check_specials(path, specials, full, plain)
    normalizes = any(_steps(spec.get("normalizer"), "normalizers"))
    return Files(ranks, specials, ByteLevelCoder(full, plain, proven(spec, ranks, plain), normalizes=normalizes))


def _made(library: Any, path: Path, text: str) -> tuple[Any, Any]:
    """The library's tokenizer of a file, and the same without special ids and normalisation."""
    try:
        full = library.Tokenizer.from_str(text)
    except Exception as error:
        raise UsageError(
            f"{path} cannot be read by tokenizers {library.__version__} ({error}): try a newer one."
        ) from error
    full.no_truncation()
    full.no_padding()
    plain = library.Tokenizer(full.model)
    plain.pre_tokenizer = full.pre_tokenizer
    return full, plain


def _check_specials(path: Path, specials: dict[str, int], full: Any, plain: Any) -> None:
    """Hold that added tokens have the ids that the file gives them, which the library may not, and that no text is one."""
    numbers = frozenset(specials.values())
    for name, number in specials.items():
        if full.token_to_id(name) != number:
            raise UsageError(
                f"{path} gives its added token {name!r} the id {number}, and tokenizers {full.token_to_id(name)}: "
                "it has gaps before it; use another copy of the model."
            )
        if not numbers.isdisjoint(_ids(plain, name)):
            raise UsageError(f"{path} merges ordinary text into its added token {name!r}: {_READ}.")


def _ids(tokenizer: Any, text: str) -> list[int]:
    try:
        return cast("list[int]", tokenizer.encode(text, add_special_tokens=False).ids)
    except (UnicodeEncodeError, TypeError):
        return cast("list[int]", tokenizer.encode(well_formed(text), add_special_tokens=False).ids)


def _refused(spec: dict[str, Any]) -> str:
    """Why a file is not read, or an empty string."""
    model, steps = spec["model"], list(_steps(spec.get("pre_tokenizer"), "pretokenizers"))
    kind = model.get("type") or ("BPE" if "merges" in model else "unknown")
    bytewise = [step for step in steps if step["type"] == "ByteLevel"]
    if kind != "BPE" or model.get("byte_fallback") or not bytewise:
        return f"is no byte-level BPE ({kind}{', SentencePiece style' if kind == 'BPE' else ''}): {_READ}"
    odd = [name for name in ("continuing_subword_prefix", "end_of_word_suffix", "dropout") if model.get(name)]
    odd += [step["type"] for step in steps if step["type"] not in _WHOLE or step.get("behavior") == "Removed"]
    odd += ["add_prefix_space"] if any(step.get("add_prefix_space", True) for step in bytewise) else []
    odd += [step["type"] for step in _steps(spec.get("normalizer"), "normalizers") if step["type"] != "NFC"]
    if odd:
        return f"changes text before it encodes it ({', '.join(odd)}), so that ids do not give it back: {_READ}"
    blank = sum(not str(token["content"]).strip() for token in spec.get("added_tokens") or ())
    return f"has {blank} added tokens of nothing but spaces, which ordinary text becomes: {_READ}" if blank else ""


def _steps(step: Any, name: str) -> Iterator[dict[str, Any]]:
    """The steps of a pre-tokenizer or normalizer in order, sequences opened."""
    if step is not None and step["type"] == "Sequence":
        for each in step[name]:
            yield from _steps(each, name)
    elif step is not None:
        yield step


def _ranks(vocab: dict[str, int], special: frozenset[int]) -> dict[bytes, int]:
    """Ordinary entries by their bytes."""
    try:
        return {
            bytes([_BYTES[char] for char in entry]): number for entry, number in vocab.items() if number not in special
        }
    except KeyError as error:
        raise ValueError(f"an entry holds {error}, which stands for no byte") from None
