"""Figures as the page says them. Pure. None is a dash: nothing was measured, or there is nothing to divide by."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime

NONE = "\u2013"
MINUS = "\u2212"


def count(value: float | None) -> str:
    """A whole number with all its digits."""
    return NONE if value is None else f"{value:,.0f}"


def short(value: float | None) -> str:
    """A number in at most six characters: 950, 12.3 k, 7.00 M."""
    if value is None:
        return NONE
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if abs(value) >= size * 0.9995:
            scaled = value / size
            return f"{scaled:.{2 if scaled < 10 else 1 if scaled < 100 else 0}f}\u202f{unit}"
    return f"{value:,.0f}"


def dollars(value: float | None, digits: int | None = None) -> str:
    """An amount with so many digits; cents, or more where it is less than ten cents, if they are not given."""
    if value is None:
        return NONE
    digits = fine([value]) if digits is None else digits
    if value == 0 and digits > 2:
        return "0"
    if value and abs(value) < 10**-digits / 2:
        return f"<\u202f{10**-digits:.{digits}f}"
    return f"{value:,.{digits}f}"


def fine(values: Iterable[float | None]) -> int:
    """Digits after the point that show the smallest of these amounts, so that a column has the same in each row."""
    amounts = [abs(value) for value in values if value]
    least, most = min(amounts, default=1.0), max(amounts, default=1.0)
    if least >= 0.1:
        return 2
    return 4 if least >= 0.001 or most >= 0.1 else 6


def column(values: Iterable[float | None]) -> list[str]:
    """Amounts of one column."""
    given = list(values)
    digits = fine(given)
    return [dollars(value, digits) for value in given]


def money(value: float | None) -> str:
    """An amount with its sign, at most four digits after the point."""
    if value is None:
        return NONE
    said = dollars(abs(value), min(fine([value]), 4))
    return f"<\u202f${said[2:]}" if said.startswith("<") else f"{'-' if value < 0 else ''}${said}"


def share(value: float | None) -> str:
    """A share as percent with one digit; never 100 % where something is missing, nor 0 % where something is there."""
    if value is None:
        return NONE
    percent = round(100 * value, 1)
    if percent == 100 and value < 1:
        percent = 99.9
    if percent == 0 and value > 0:
        return "<\u202f0.1\u202f%"
    return f"{percent:.1f}\u202f%"


def seconds(values: Iterable[float | None]) -> list[str]:
    """Measured times of one column: the longest decides how many digits all have."""
    given = list(values)
    most = max((value for value in given if value is not None), default=0.0)
    digits = 2 if most < 10 else 1 if most < 1000 else 0
    return [NONE if value is None else f"{value:,.{digits}f}" for value in given]


def lasting(value: float) -> str:
    """How long something went on, in words."""
    if value < 120:
        return f"{value:.0f} s"
    if value < 90 * 60:
        return f"{value / 60:.0f} min"
    return f"{value / 3600:.1f} h" if value < 72 * 3600 else f"{value / 86400:.1f} days"


def moment(at: float) -> str:
    """A time of UTC, to the second; a dash where there is none."""
    if not math.isfinite(at) or not 0 < at < 253402300800:
        return NONE
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")


def listed(names: Iterable[str]) -> str:
    """Names as a sentence lists them."""
    *first, last = list(names) or [""]
    return f"{', '.join(first)} and {last}" if first else last


def several(number: int, noun: str, plural: str = "") -> str:
    """A count and its noun."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
