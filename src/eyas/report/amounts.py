"""Tokens, minutes, dollars and names as a plan says them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Figures = Mapping[str, Any]
WIDE_BAND = 0.2
"""The width of a band, by what is expected, from which the advice shows it."""
_HOURS_FROM, _DAYS_FROM = 90, 72 * 60
"""Minutes from which hours are said, and days."""


def what(figures: Figures) -> str:
    """What is planned: a quota, or an answer to every prompt."""
    quotas = {each["quota"] for each in figures["datasets"].values()}
    if figures["quotas"] == "none":
        return "An answer to every prompt"
    return f"{quantity(quotas.pop())} tokens a set" if figures["quotas"] == "one" else "The quotas of RUN.toml"


def minutes_of(minutes: float) -> str:
    """Minutes in words."""
    if minutes < 1:
        return "less than a minute"
    return f"{minutes:,.0f} minute{'' if round(minutes) == 1 else 's'}"


def time_of(minutes: float) -> str:
    """The same, long ones as hours or days."""
    if minutes < _HOURS_FROM:
        return minutes_of(minutes)
    return f"{minutes / 60:,.1f} hours" if minutes < _DAYS_FROM else f"{minutes / 1440:,.1f} days"


def dollars(band: Figures) -> tuple[str, str, str]:
    """What is to be paid at the least, as expected and at worst, for three cells."""
    return cents(band["low"]), cents(band["expected"]), cents(band["worst"])


def cents(usd: float) -> str:
    """An amount without its sign."""
    return f"{usd:,.2f}" if usd < 1000 else f"{usd:,.0f}"


def about(band: Figures) -> str:
    """What is expected, and between what it may be where that is far apart."""
    low, expected, high = band["low"], band["expected"], band["high"]
    far = high - low > WIDE_BAND * expected and f"{low:.2f}" != f"{high:.2f}"
    return f"about ${expected:,.2f}" + (f" (${low:,.2f} to ${high:,.2f})" if far else "")


def quantity(tokens: int) -> str:
    """Tokens as people say them: 7 M, 2.5 M, 300 k."""
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if tokens >= size:
            return f"{tokens / size:.2f}".rstrip("0").rstrip(".") + f" {unit}"
    return str(tokens)


def full(number: int) -> str:
    """A count with all its digits: 7,000,000."""
    return f"{number:,}"


def short(number: int) -> str:
    """A count in at most six characters: 950, 12.3k, 7.0M, 1.2B."""
    for unit, size in (("B", 10**9), ("M", 10**6), ("k", 10**3)):
        if number >= size * 0.9995:
            return f"{number / size:.1f}{unit}"
    return str(number)


def clipped(name: str, most: int) -> str:
    """A name of at most so many characters."""
    return name if len(name) <= most else name[: most - 1] + "…"
