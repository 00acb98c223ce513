"""Colour and weight of what commands print: on a terminal only, and never under NO_COLOR (no-color.org) or TERM=dumb."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TextIO

_BOLD, _DIM, _UNDERLINED, _RED, _GREEN, _YELLOW, _CYAN = "1", "2", "4", "31", "32", "33", "36"
_END = "\x1b[0m"
_WARNS = re.compile(r"^(warning|warn|note|alarm)(?=:| )", re.MULTILINE)
_USED = re.compile(r"(?<=  )use$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Style:
    """Text with weight and colour, or the same text as it is where `on` is false."""

    on: bool

    def _set(self, codes: str, text: str) -> str:
        return f"\x1b[{codes}m{text}{_END}" if self.on and text else text

    def bold(self, text: str) -> str:
        """Bold."""
        return self._set(_BOLD, text)

    def dim(self, text: str) -> str:
        """Faint."""
        return self._set(_DIM, text)

    def faint_line(self, text: str) -> str:
        """Faint and underlined: ids that nothing is learned from."""
        return self._set(f"{_DIM};{_UNDERLINED}", text)

    def good(self, text: str) -> str:
        """What is as it should be: green."""
        return self._set(_GREEN, text)

    def warned(self, text: str) -> str:
        """What may need a look: yellow."""
        return self._set(_YELLOW, text)

    def bad(self, text: str) -> str:
        """What failed: red."""
        return self._set(_RED, text)

    def named(self, text: str) -> str:
        """A name that stands before others: cyan."""
        return self._set(_CYAN, text)

    def block(self, text: str, number: int) -> str:
        """The `number`th of pieces that stand side by side: dark on one of two light grounds, by turns."""
        return self._set(f"30;{(46, 47)[number % 2]}", text)

    def told(self, text: str) -> str:
        """Lines that begin with `warning`, `note` or `alarm`: that word in yellow."""
        return _WARNS.sub(lambda match: self.warned(match[0]), text) if self.on else text

    def ending(self, text: str) -> str:
        """Lines that end with `use`, the verdict on an endpoint that would be asked: that word in green."""
        return _USED.sub(lambda match: self.good(match[0]), text) if self.on else text

    def standing(self, word: str) -> str:
        """A verdict, label or state in the colour of what it means; another word as it is."""
        return _MEANING[word](self, word) if word in _MEANING else word


_MEANING = {
    **dict.fromkeys(("done", "complete", "ok", "use"), Style.good),
    **dict.fromkeys(("engine", "logprobs", "streamed", "counted", "stripped", "repaired"), Style.good),
    **dict.fromkeys(
        ("partial", "stopped", "again", "warn", "pending", "skipped", "unknown", "in flight"), Style.warned
    ),
    **dict.fromkeys(("uncounted", "near", "running", "interrupted"), Style.warned),
    **dict.fromkeys(("failed", "refused", "fail", "mismatch", "broken", "misserved", "killed"), Style.bad),
}


def coloured(stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a stream takes colour: a terminal that can, and nobody said NO_COLOR (set, and not empty)."""
    return stream.isatty() and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def style_of(stream: TextIO) -> Style:
    """The style that suits a stream."""
    return Style(coloured(stream))
