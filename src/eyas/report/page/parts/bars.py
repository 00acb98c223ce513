"""Bars and histograms as small SVG, drawn without a script: they print, and they are there when scripts are off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eyas.report.document import Histogram
from eyas.report.page.parts import words
from eyas.report.page.parts.markup import Html, tag

_LONG = 1000
"""Width of a bar's own coordinates; it is stretched to the cell it stands in."""
COLOURS = 8
_PLAIN = {"aria-hidden": "true", "preserveAspectRatio": "none", "focusable": "false"}


def stacked(parts: Sequence[tuple[str, float, str]], whole: float) -> Html | None:
    """One bar of parts (name, amount, class of the colour), as long as their share of `whole`.

    Its figures stand beside it as text; a part's name and share show when it is pointed at.
    """
    rects: list[Html] = []
    x = 0.0
    total = sum(amount for _, amount, _ in parts)
    if total <= 0 or whole <= 0:
        return None
    for name, amount, kind in parts:
        wide = _LONG * amount / whole
        if wide > 0:
            title = tag("title", f"{name}: {words.count(amount)} ({words.share(amount / total)})")
            rects.append(_rect(kind, (x, 0, max(wide - 2, 2), 14), title))
        x += wide
    attributes = {"viewBox": f"0 0 {_LONG} 14", **_PLAIN}
    return tag("svg", *rects, of="bar", attributes=attributes)


def lone(amount: float | None, most: float) -> Html | None:
    """A bar for one amount among others, of which the greatest is `most`."""
    if not amount or most <= 0:
        return None
    wide = max(_LONG * amount / most, 3)
    return tag("svg", _rect("c1", (0, 0, wide, 14)), of="bar lone", attributes={"viewBox": f"0 0 {_LONG} 14", **_PLAIN})


def reach(low: float | None, high: float | None, most: float) -> Html | None:
    """A mark from one percentile to another, both with an end of their own."""
    if low is None or high is None or most <= 0:
        return None
    left, right = _LONG * low / most, _LONG * high / most
    bars = (
        _rect("c1 soft", (left, 4, max(right - left, 1), 6)),
        _rect("c1", (max(left - 4, 0), 0, 8, 14)),
        _rect("c1", (min(max(right - 3, 0), _LONG - 6), 2, 6, 10)),
    )
    return tag("svg", *bars, of="bar", attributes={"viewBox": f"0 0 {_LONG} 14", **_PLAIN})


def histogram(name: str, lengths: Histogram, kind: str) -> Html:
    """Columns of equal width, one a bin, with the first, the middle and the last edge below; its sentence is its label."""
    counts, edges = lengths.counts, lengths.edges
    most = max(counts, default=0)
    if not most:
        return tag("p", "none", of="none")
    wide = _LONG / len(counts)
    columns = [
        _rect(
            f"{kind} column",
            (place * wide + 1, 100 - tall, max(wide - 2, 1), tall),
            tag("title", f"{edges[place]:,} to {edges[place + 1] - 1:,} tokens: {number:,}"),
        )
        for place, number in enumerate(counts)
        if (tall := max(100 * number / most, 1.5 if number else 0))
    ]
    label = says(name, lengths)
    picture = tag(
        "svg",
        *columns,
        of="histogram",
        attributes={"viewBox": f"0 0 {_LONG} 100", "preserveAspectRatio": "none", "role": "img", "aria-label": label},
    )
    marks = (edges[0], edges[len(edges) // 2], edges[-1])
    axis = tag(
        "div", *(tag("span", words.short(mark)) for mark in marks), of="axis", attributes={"aria-hidden": "true"}
    )
    middle = tag("p", f"half below {words.short(median(lengths))}", of="half")
    return tag("div", picture, axis, middle, of="histogram-box")


def median(lengths: Histogram) -> int:
    """The upper edge of the bin in which the middle one lies; 0 where there is none."""
    half, seen = sum(lengths.counts) / 2, 0
    for place, number in enumerate(lengths.counts):
        seen += number
        if seen and seen >= half:
            return lengths.edges[place + 1]
    return 0


def says(name: str, lengths: Histogram) -> str:
    """A histogram in one sentence."""
    filled = [place for place, number in enumerate(lengths.counts) if number]
    if not filled:
        return f"{name}: none."
    low, high = lengths.edges[filled[0]], lengths.edges[filled[-1] + 1]
    return f"{name}: {sum(lengths.counts):,} of {low:,} to {high:,} tokens, half of them below {median(lengths):,}."


def colours(names: Sequence[str], fixed: Mapping[str, str] | None = None) -> dict[str, str]:
    """A class of colour for each name: its own where it has one, otherwise the next; those after the last share it."""
    chosen = dict(fixed or {})
    free = [f"c{number}" for number in range(1, COLOURS + 1) if f"c{number}" not in chosen.values()] or ["c8"]
    rest = [name for name in names if name not in chosen]
    return {name: chosen.get(name) or free[min(rest.index(name), len(free) - 1)] for name in names}


def _rect(kind: str, box: tuple[float, float, float, float], title: Html | None = None) -> Html:
    x, y, wide, tall = (f"{value:.1f}".removesuffix(".0") for value in box)
    attributes = {"x": x, "y": y, "width": wide, "height": tall}
    # SVG has no void elements of its own in HTML: a rect with a title needs its end.
    head = " ".join(f'{key}="{value}"' for key, value in attributes.items())
    return Html(f'<rect class="{kind}" {head}>{title or ""}</rect>')
