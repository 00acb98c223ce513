"""Load a tokenizer: encode, decode, special ids; find its folder, on disk or on the hub.

A tokenizer folder is the hub's layout. Of `tiktoken.model` the file gives ranks only: the split pattern and the names of
the special ids are code of the model's repository, so the family brings them as a `Layout`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import importlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from eyas.errors import UsageError

if TYPE_CHECKING:
    import tiktoken

KIMI_SHA256 = "b6c497a7469b33ced9c38afb1ad6e47f03f5e5dc05f15930799210ec050c5103"
"""sha256 of the official `tiktoken.model` of moonshotai/Kimi-K2-Instruct, K2.7-Code and K3, which are one file."""

_KIMI_RANKS = 163_584
_KIMI_SPECIALS = 256

_TEXT_CHARS = 400_000
_RUN_CHARS = 25_000
_RUN = re.compile(r"\s+|\S+")

_HUB_ID = re.compile(r"(?P<repo>[\w-][\w.-]*/[\w.-]+)(?:@(?P<revision>[\w./-]+))?")
_HUB_FILES = ["tiktoken.model", "tokenizer.json", "tokenizer_config.json", "*.jinja"]


@dataclass(frozen=True, slots=True)
class Layout:
    """What a tokenizer's files do not say about it.

    Attributes:
        pattern: the regular expression that splits text before byte pairs are merged (Rust syntax).
        ranks: how many ordinary entries it has; special ids follow them.
        reserved: how many special ids it has.
        unnamed: spelling of a special id without a name; `{}` stands for the id.
        named: special ids by spelling, used where `tokenizer_config.json` lists none.
    """

    pattern: str
    ranks: int
    reserved: int
    unnamed: str
    named: Mapping[str, int] = field(repr=False)


class Vocab:
    """A byte-pair vocabulary with its special ids. Safe to share between threads once loaded."""

    def __init__(self, ranks: dict[bytes, int], specials: Mapping[str, int], pattern: str) -> None:
        import tiktoken  # noqa: PLC0415  # a plan of counts only, or --help, needs no encoder

        self._ranks = ranks
        self._bytes = [b""] * len(ranks)
        for data, rank in ranks.items():
            self._bytes[rank] = data
        self._encoding: tiktoken.Encoding = tiktoken.Encoding(
            "eyas", pat_str=pattern, mergeable_ranks=ranks, special_tokens=dict(specials)
        )
        self._names = {number: name for name, number in specials.items()}
        self._spelled = re.compile("|".join(map(re.escape, sorted(specials, key=len, reverse=True))) or r"(?!)")
        self.specials: Mapping[str, int] = dict(specials)
        self.id_of = ranks.get
        """`id_of(data)`: the ordinary entry that is exactly these bytes, or None."""

    @classmethod
    def load(cls, folder: Path, layout: Layout) -> Vocab:
        """Read the tokenizer in a folder of the hub's layout; takes about half a second.

        Raises:
            UsageError: the folder holds no vocabulary that can be read.
        """
        path = folder / "tiktoken.model"
        if not path.is_file():
            if (folder / "tokenizer.json").is_file():
                raise UsageError(
                    f"{folder} holds a tokenizer.json; reading it comes with a later version. "
                    "Use a model whose folder holds a tiktoken.model, such as moonshotai/Kimi-K2.5."
                )
            raise UsageError(
                f"{folder} holds no tiktoken.model: give the folder of the model's tokenizer, or its hub id."
            )
        ranks = _read_ranks(path)
        names = _added_tokens(folder) or {number: name for name, number in layout.named.items()}
        block = range(len(ranks), len(ranks) + layout.reserved)
        return cls(ranks, {names.get(i, layout.unnamed.format(i)): i for i in block}, layout.pattern)

    @property
    def size(self) -> int:
        """How many ids there are, special ones included."""
        return len(self._bytes) + len(self._names)

    @property
    def ranks(self) -> int:
        """How many ordinary entries there are."""
        return len(self._bytes)

    def encode(self, text: str) -> list[int]:
        """Ids of a text in which nothing is special: a spelled `<|im_end|>` becomes ordinary ids."""
        if len(text) <= _RUN_CHARS:
            return self._encoding.encode_ordinary(text)
        return [number for part in cuts(text) for number in self._encoding.encode_ordinary(part)]

    def encode_special(self, text: str) -> list[int]:
        """Ids of a text as the engine reads a rendered prompt: every spelled special becomes its id.

        Long text is cut as the official Kimi encoder (`tokenization_kimi.py`) cuts it, which changes ids.
        """
        if not self.spelled(text):
            return self.encode(text)
        parts = [text] if len(text) <= _RUN_CHARS else cuts(text)
        return [number for part in parts for number in self._encoding.encode(part, allowed_special="all")]

    def spelled(self, text: str) -> bool:
        """Whether a special id's spelling stands in the text."""
        return self._spelled.search(text) is not None

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, specials spelled out; bytes that are no UTF-8 become U+FFFD."""
        return self._encoding.decode(ids, errors="replace")

    def token_bytes(self, number: int) -> bytes:
        """The bytes of one id, a special's spelling included.

        Raises:
            KeyError: there is no such id.
        """
        if 0 <= number < len(self._bytes):
            return self._bytes[number]
        return self._names[number].encode()


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


def resolve(spec: str) -> Path:
    """The folder of a tokenizer given as a local folder, or as a hub id with an optional @revision.

    Raises:
        UsageError: there is no such folder, or the hub did not give it.
    """
    folder = Path(spec).expanduser()
    if folder.is_dir():
        return folder
    match = _HUB_ID.fullmatch(spec)
    if match is None:
        raise UsageError(f"tokenizer {spec!r} is neither a folder nor a hub id: use a path, or org/name[@revision].")
    try:
        hub: Any = importlib.import_module("huggingface_hub")
    except ImportError:
        raise UsageError(
            f"tokenizer {spec!r} is no local folder, and loading it from the hub needs: pip install 'eyas[hub]'"
        ) from None
    import httpx  # noqa: PLC0415  # the hub's client raises its errors

    try:
        found = hub.snapshot_download(match["repo"], revision=match["revision"], allow_patterns=_HUB_FILES)
    except (OSError, ValueError, RuntimeError, httpx.HTTPError) as error:
        raise UsageError(
            f"tokenizer {spec!r} could not be loaded from the hub ({error}): check the id and the network, "
            "or give a local folder as [target] tokenizer."
        ) from error
    return Path(found)


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


def _replace(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(data)
    temporary.replace(path)
