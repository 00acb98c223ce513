"""What a tokenizer's files give: a table of bytes, the special ids, and the way from text to ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol


@dataclass(frozen=True, slots=True)
class Layout:
    """What a `tiktoken.model` does not say about its tokenizer.

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


class Coder(Protocol):
    """The way from text to ids. Safe to share between threads."""

    @property
    def normalizes(self) -> bool:
        """Whether `encode_special` may change text that is no ASCII before it is split (to NFC)."""
        ...

    def encode(self, text: str) -> list[int]:
        """Ids whose bytes are the text; nothing in it is special, and nothing is normalised."""
        ...

    def encode_special(self, text: str) -> list[int]:
        """Ids as an engine reads a rendered prompt: spelled specials by their id, text normalised as the file says."""
        ...


class Files(NamedTuple):
    """A tokenizer as its files define it: ordinary entries by their bytes, special ids by spelling, and the coder."""

    ranks: dict[bytes, int]
    specials: dict[str, int]
    coder: Coder


def well_formed(text: str) -> str:
    """The text with every lone surrogate as U+FFFD, as `tiktoken` reads it."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
