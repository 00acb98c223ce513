"""Model families: what a prompt ends with, what the model samples, and the presets. One file a family, one line here."""

from __future__ import annotations

from fnmatch import fnmatchcase

from eyas.errors import UsageError
from eyas.families.base import Channel, Family, Loaded, Part, Shift
from eyas.families.kimi import KimiK25

__all__ = ["FAMILIES", "Channel", "Family", "Loaded", "Part", "Shift", "by_name", "guess"]

FAMILIES: dict[str, Family] = {
    "kimi-k2.5": KimiK25(),
}
"""Every family by its name."""


def by_name(name: str) -> Family:
    """The family of this name.

    Raises:
        UsageError: there is none.
    """
    try:
        return FAMILIES[name]
    except KeyError:
        raise UsageError(f"unknown family {name!r}: [target] family is one of {', '.join(sorted(FAMILIES))}.") from None


def guess(model: str) -> str | None:
    """The name of the family that a model id belongs to, or None."""
    plain = model.lower()
    hits = (name for name, family in FAMILIES.items() if any(fnmatchcase(plain, glob) for glob in family.models))
    return next(hits, None)
