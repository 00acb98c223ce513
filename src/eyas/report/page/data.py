"""What the page's scripts read: JSON in data blocks that no text of others can end."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any, cast

import msgspec

from eyas.report.document import Course, Report, Sample
from eyas.report.page.parts.markup import Html

MOST_SAMPLES = 1_500_000
"""Bytes of samples that a page takes, so that it stays under 2 MB whatever it is given."""
_HOT = re.compile("[<>&\x7f\u2028\u2029\ud800-\udfff]")
_SHORT_PAUSE = 5.0
"""Seconds between two processes that are no pause worth a line."""


def block(name: str, value: object) -> Html:
    """A data block that a script finds by its id; never run by the browser."""
    return Html(f'<script type="application/json" id="{name}">{encoded(value)}</script>')


def encoded(value: object) -> str:
    r"""JSON in which no character of markup is left: <, >, &, U+2028, U+2029 and unpaired surrogates are \uXXXX.

    A number that is not finite is null.
    """
    text = json.dumps(_finite(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _HOT.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(each) for key, each in cast("dict[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in cast("Sequence[object]", value)]
    return value


def packed(samples: Sequence[Sample], most: int = MOST_SAMPLES) -> tuple[Html, int]:
    """The samples as a data block, and how many did not fit: each that fits into what is left of `most` bytes is taken."""
    taken: list[str] = []
    for sample in samples:
        text = encoded(msgspec.to_builtins(sample))
        size = len(text.encode("utf-8")) + 1
        if size <= most:
            taken.append(text)
            most -= size
    # Each was encoded alone, to be weighed; together they are encoded already.
    return Html(f'<script type="application/json" id="samples-data">[{",".join(taken)}]</script>'), (
        len(samples) - len(taken)
    )


class Running(msgspec.Struct, frozen=True):
    """The moments of a course as seconds of running: pauses, when no process ran, are cut out. `cuts` are where they were."""

    x: list[float]
    cuts: list[float]


def running(at: Sequence[float], sessions: Sequence[tuple[float, float]]) -> Running:
    """Moments (seconds since 1970, rising) as seconds of running since the first; moments within a pause stand at its cut."""
    if not at:
        return Running([], [])
    spans = _joined(sorted((min(pair), max(pair)) for pair in sessions), (at[0], at[-1]))
    x: list[float] = []
    cuts: list[float] = []
    before, place = 0.0, 0
    for moment in at:
        while place + 1 < len(spans) and moment >= spans[place + 1][0]:
            before += spans[place][1] - spans[place][0]
            cuts.append(round(before, 3))
            place += 1
        opened, ended = spans[place]
        x.append(round(before + min(max(moment, opened), ended) - opened, 3))
    return Running(x, cuts)


def _joined(spans: Sequence[tuple[float, float]], whole: tuple[float, float]) -> list[tuple[float, float]]:
    """Spans that do not overlap, from the first moment to the last; short pauses belong to what is before them."""
    joined: list[tuple[float, float]] = []
    for opened, ended in spans:
        if joined and opened - joined[-1][1] <= _SHORT_PAUSE:
            joined[-1] = (joined[-1][0], max(joined[-1][1], ended))
        else:
            joined.append((opened, ended))
    if not joined:
        return [whole]
    joined[0] = (min(joined[0][0], whole[0]), joined[0][1])
    joined[-1] = (joined[-1][0], max(joined[-1][1], whole[1]))
    return joined


def charts(report: Report) -> dict[str, Any]:
    """The figures that the charts draw, by chart; one that has nothing to draw is left out."""
    drawn: dict[str, Any] = {}
    if len(report.course.at) > 1:
        drawn["course"] = _course(report.course)
    if len(report.tail.seconds) > 1:
        drawn["tail"] = {"x": report.tail.seconds, "y": report.tail.shares}
    if report.coverage and len(report.coverage.sizes) > 1:
        drawn["coverage"] = {
            "x": report.coverage.sizes,
            "lines": [report.coverage.total, *report.coverage.datasets.values()],
        }
    return drawn


def _course(course: Course) -> dict[str, Any]:
    along = running(course.at, course.sessions)
    return {
        "x": along.x,
        "cuts": along.cuts,
        "at": [round(at, 1) for at in course.at],
        "settled": [round(usd, 6) for usd in course.settled_usd],
        "unknown": [round(usd, 6) for usd in course.unknown_usd],
        "reserved": [round(usd, 6) for usd in course.reserved_usd],
        "cap": course.cap_usd,
        "speed": [round(speed, 1) for speed in course.tokens_per_second],
        "flight": course.in_flight,
        "errors": [round(errors, 2) for errors in course.errors_per_minute],
        "rejects": [round(rejects, 2) for rejects in course.rejects_per_minute],
        "answered": course.answered,
    }
