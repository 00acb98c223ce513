"""`tiktoken.model`: ranks in a file, the rest in a Layout. Read and encoded as Moonshot AI's `tokenization_kimi.py` does."""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyas.errors import UsageError
from eyas.vocab.coder import Files, Layout

if TYPE_CHECKING:
    import tiktoken

FILE = "tiktoken.model"

_TEXT_CHARS = 400_000
_RUN_CHARS = 25_000
_RUN = re.compile(r"\s+|\S+")


class KimiCoder:
    """tiktoken, given long texts in the parts that the official Kimi encoder gives it."""

    normalizes = False

    def __init__(self, ranks: dict[bytes, int], specials: Mapping[str, int], pattern: str) -> None:
        import tiktoken  # noqa: PLC0415  # a plan of counts only, or --help, needs no encoder

        self._encoding: tiktoken.Encoding = tiktoken.Encoding(
            "eyas", pat_str=pattern, mergeable_ranks=ranks, special_tokens=dict(specials)
        )

    def encode(self, text: str) -> list[int]:
        """Ids whose bytes are the text; nothing in it is special."""
        if len(text) <= _RUN_CHARS:
            return self._encoding.encode_ordinary(text)
        return [number for part in cuts(text) for number in self._encoding.encode_ordinary(part)]

    def encode_special(self, text: str) -> list[int]:
        """Ids with every spelled special by its id; long text is cut as the official encoder cuts it (changes ids)."""
        parts = [text] if len(text) <= _RUN_CHARS else cuts(text)
        return [number for part in parts for number in self._encoding.encode(part, allowed_special="all")]


def read(folder: Path, layout: Layout) -> Files:
    """The tokenizer in a folder that holds a `tiktoken.model`, and names of its special ids in `tokenizer_config.json`.

    Raises:
        UsageError: a file cannot be read.
    """
    ranks = _read_ranks(folder / FILE)
    names = _added_tokens(folder) or {number: name for name, number in layout.named.items()}
    block = range(len(ranks), len(ranks) + layout.reserved)
    specials = {names.get(i, layout.unnamed.format(i)): i for i in block}
    return Files(ranks, specials, KimiCoder(ranks, specials, layout.pattern))


def cuts(text: str) -> Iterator[str]:
    """A text in the parts that the official Kimi encoder gives to its byte-pair encoder one by one.

    Every 400,000 characters, and within a run of spaces or of non-spaces every 25,000, as `tokenization_kimi.py` does.
    """
    for at in range(0, len(text), _TEXT_CHARS):
        window = text[at : at + _TEXT_CHARS]
        start = 0
        for run in _RUN.finditer(window):
            for cut in range(run.start() + _RUN_CHARS, run.end(), _RUN_CHARS):
                yield window[start:cut]
                start = cut
        yield window[start:]


def _read_ranks(path: Path) -> dict[bytes, int]:
    """Ranks by bytes from a tiktoken file: a line is base64, a space, the rank."""
    try:
        lines = (line.split() for line in path.read_bytes().splitlines() if line)
        ranks = {binascii.a2b_base64(token): int(rank) for token, rank in lines}
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path} is no readable tiktoken file ({error}): download it again (a Git LFS pointer?)."
        ) from error
    if not ranks or sorted(ranks.values()) != list(range(len(ranks))):
        raise UsageError(f"{path} does not number its {len(ranks)} entries from 0 without gaps: download it again.")
    return ranks


def _added_tokens(folder: Path) -> dict[int, str]:
    """Names of special ids in `tokenizer_config.json`; empty if it lists none."""
    path = folder / "tokenizer_config.json"
    if not path.is_file():
        return {}
    try:
        table: dict[str, Any] = json.loads(path.read_bytes()).get("added_tokens_decoder") or {}
        return {int(number): str(entry["content"]) for number, entry in table.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} cannot be read ({error!r}): download it again.") from error
