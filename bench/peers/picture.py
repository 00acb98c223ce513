"""Results as a picture: bars of the share of the ideal and of CPU an answer, a case below the other (SVG, pure)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from peers import figures, tools
from peers.figures import Trial

_ROW, _BAR, _TOP, _NAME, _WIDE, _GAP = 26, 15, 62, 130, 270, 90
_WIDTH = _NAME + 2 * _WIDE + 2 * _GAP
_INK, _GREY = "#333", "#8a8f98"
_COLOURS = {"own": "#1b7f5c", "persists": "#4a74b4", "other": "#a9b4c4"}
_HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" font-family="sans-serif" '
    'font-size="12">\n<rect width="{0}" height="{1}" fill="#fff"/>\n'
)


def svg(cases: Sequence[tuple[str, Sequence[Trial]]]) -> str:
    """The picture of (case, trials); a tool without a figure has a dash."""
    parts, top = [], 0
    for name, trials in cases:
        block, height = _case(name, trials, top)
        parts += block
        top += height
    return _HEAD.format(_WIDTH, top + 12) + "\n".join(parts) + "\n</svg>\n"


def _case(name: str, trials: Sequence[Trial], top: int) -> tuple[list[str], int]:
    names = list(dict.fromkeys(trial.tool for trial in trials if not trial.error))
    rows = {each: [trial for trial in trials if trial.tool == each] for each in names}
    second = "cpu_us" if any(figures.spread(own, "cpu_us") for own in rows.values()) else "cpu_ms"
    unit = "CPU µs a piece" if second == "cpu_us" else "CPU ms an answer"
    found = [spread for own in rows.values() if (spread := figures.spread(own, second))]
    scale = _log(min((least for _, least, _ in found), default=1.0), max((most for _, _, most in found), default=1.0))
    parts = [
        _text(12, top + 22, name, weight="bold"),
        _text(_NAME, top + 46, "throughput, % of ideal", _GREY),
        _text(_NAME + _WIDE + _GAP, top + 46, f"{unit} (logarithmic)", _GREY),
    ]
    for place, (each, own) in enumerate(rows.items()):
        y = top + _TOP + place * _ROW
        parts.append(_text(_NAME - 8, y + 12, each, anchor="end"))
        parts += _bar(_NAME, y, _colour(each), figures.spread(own, "share"), _line, "{:.1%}")
        parts += _bar(_NAME + _WIDE + _GAP, y, _colour(each), figures.spread(own, second), scale, "{:.3g}")
    return parts, _TOP + len(rows) * _ROW + 10


def _colour(name: str) -> str:
    kind = "own" if name == "eyas" else "persists" if tools.TOOLS[name].persists else "other"
    return _COLOURS[kind]


def _line(value: float) -> float:
    return min(value, 1.05)


def _log(least: float, most: float) -> Callable[[float], float]:
    """From half of the least to the most: the tools lie orders of magnitude apart."""
    return lambda value: math.log(2 * value / least) / math.log(2 * most / least)


def _bar(
    x: int, y: int, colour: str, found: tuple[float, float, float] | None, scale: Callable[[float], float], words: str
) -> list[str]:
    if found is None:
        return [_text(x + 4, y + 12, "-", _GREY)]
    middle, least, most = (_WIDE * scale(value) for value in found)
    line = f'<line x1="{x + least:.1f}" x2="{x + most:.1f}" y1="{y + _BAR / 2}" y2="{y + _BAR / 2}" stroke="{_INK}"/>'
    return [
        f'<rect x="{x}" y="{y}" width="{middle:.1f}" height="{_BAR}" fill="{colour}"/>',
        line,
        _text(x + max(middle, most) + 6, y + 12, words.format(found[0])),
    ]


def _text(x: float, y: float, text: str, fill: str = _INK, *, anchor: str = "start", weight: str = "normal") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{fill}" text-anchor="{anchor}" font-weight="{weight}">{escape(text)}</text>'
