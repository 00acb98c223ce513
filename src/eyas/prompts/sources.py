"""What a reading of the prompts hangs on, as a digest: the same digest means the same prompts, in the same order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import BinaryIO, Protocol

from eyas.config import Dataset
from eyas.prompts.source.files import STDIN, source_files
from eyas.prompts.source.hub import SCHEME

_ASIDE = {"output_tokens", "max_tokens", "thinking", "temperature", "top_p", "samples", "weight", "expected_tokens"}
"""Keys of a set that say how its prompts are asked, not which they are; `thinking` is given by itself."""
_ROOMS = ("prompts", "families", "vocab")


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


def made_of(sets: Iterable[tuple[Dataset, bool]], base: Path, seed: int, tokenizer: str) -> str:
    """The digest of a reading; empty where it cannot be known: of the hub, of standard input, of a user's own filter.

    Every byte of every file is read.

    Args:
        sets: each set, and whether it is asked in thinking mode.
        base: the folder that relative paths start from.
        seed: of the run.
        tokenizer: a digest of what counts the tokens.

    Raises:
        UsageError: a source is not there, or cannot be read.
    """
    digest = hashlib.sha256(f"{_code()} {seed} {tokenizer}".encode())
    for one, thinking in sets:
        named = [one.source, *one.decontaminate]
        if one.filter or any(name == STDIN or name.startswith(SCHEME) for name in named):
            return ""
        digest.update(f"{thinking} {one.model_dump_json(exclude=_ASIDE)}".encode())
        for name in named:
            for file in source_files(name, base):
                with file.open() as opened:
                    _add(digest, file.name, _content(opened))
        for path in _pool(one, base):
            _add(digest, str(path), path.read_bytes())
    return digest.hexdigest()


def _pool(one: Dataset, base: Path) -> Iterator[Path]:
    """The files of a pool of system prompts."""
    for each in () if one.system is None or isinstance(one.system, str) else one.system:
        if each.file is not None and (path := base / Path(each.file).expanduser()).is_file():
            yield path


def _content(file: BinaryIO) -> bytes:
    digest = hashlib.sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.digest()


def _add(digest: _Digest, name: str, data: bytes) -> None:
    for each in (name.encode(errors="surrogateescape"), data):
        digest.update(b"%d:" % len(each) + each)


@cache
def _code() -> str:
    """A digest of the code that makes prompts of rows and counts them."""
    here = Path(__file__).parent.parent
    code = hashlib.sha256()
    for path in sorted(path for room in _ROOMS for path in (here / room).rglob("*.py")):
        code.update(path.read_bytes())
    return code.hexdigest()
