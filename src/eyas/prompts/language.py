"""Which language a prompt is in, by py3langid (the extra `languages`)."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from functools import cache
from typing import Any

from eyas.errors import UsageError

SURE = 0.5
"""A language is told where its probability is at least so high; code, formulas and a few words are mostly below."""

_LONGEST = 4000
"""Characters of a prompt that are looked at: more change nothing and cost time."""
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+", re.DOTALL)
_ALIKE = {"wuu": "zh", "yue": "zh", "ary": "ar", "arz": "ar", "nn": "no", "pcm": "en", "uzs": "uz"}
"""Languages that the model tells apart and a user names together."""


def speaks(texts: Iterable[str], wanted: frozenset[str]) -> bool:
    """Whether texts are in a wanted language, or in none that can be told; code blocks and addresses do not count."""
    text = _CODE.sub(" ", "\n".join(texts))[:_LONGEST]
    shares: dict[str, float] = {}
    ranked: list[tuple[str, float]] = _model().rank(text)
    for name, share in ranked:
        known = _ALIKE.get(name, name)
        shares[known] = shares.get(known, 0.0) + share
    best = max(shares, key=lambda name: shares[name])
    return best in wanted or shares[best] < SURE


def languages(names: Iterable[str]) -> frozenset[str]:
    """The languages of RUN.toml's `languages`, checked.

    Raises:
        UsageError: the extra is not installed, or a name is not one of its languages.
    """
    labels: list[str] = _model().labels
    known = {_ALIKE.get(name, name) for name in labels} - {"zxx"}
    for name in names:
        if name not in known:
            near = name[:2].lower()
            meant = f"did you mean {near}? " if near in known else ""
            raise UsageError(f"languages: {name!r} is not known: {meant}Use ISO 639 codes such as en, zh, de")
    return frozenset(names)


@cache
def _model() -> Any:
    try:
        langid: Any = importlib.import_module("py3langid.langid")
    except ImportError as error:
        raise UsageError("languages: py3langid tells them: pip install 'eyas[languages]'") from error
    return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
