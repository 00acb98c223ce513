"""The last answers, and what went wrong."""

from __future__ import annotations

from typing import Any

from eyas.report.document import Report, Tail
from eyas.report.page.parts import bars, words
from eyas.report.page.parts.markup import Html, tag
from eyas.report.page.parts.tables import Chart, Column, Section, figure, folded, missing, part, table, worded
from eyas.report.page.parts.top import command, paid

_TIMES = ("first_token_seconds", "seconds", "ended_after_seconds")


def tail(report: Report) -> Section:
    """How long the last answers kept the run from its end."""
    given = report.tail
    if len(given.seconds) < 2:
        return part(
            "tail", "The tail", "", missing("Too few answers to speak of the last ones. Later:", command(report))
        )
    chart = Chart(
        "tail",
        "Answers that were there",
        "The share of the answers that were there after so long. A curve that lies flat at its end waits for a few slow ones.",
        _says(given),
    )
    rows = list(zip(map(words.share, given.shares), words.seconds(given.seconds), strict=True))
    below = folded("The figures as a table", table("Answers by time", [worded("answers"), Column("after", "s")], rows))
    return part("tail", "The tail", "", figure(chart, below), _slowest(given.slowest, with_money=paid(report)))


def _says(given: Tail) -> str:
    half = given.seconds[min(range(len(given.shares)), key=lambda place: abs(given.shares[place] - 0.5))]
    near = next((place for place, share in enumerate(given.shares) if share >= 0.99), len(given.shares) - 1)
    last = given.seconds[-1] - given.seconds[near]
    return f"Half were there after {words.lasting(half)}, all after {words.lasting(given.seconds[-1])}; the last hundredth took {words.lasting(last)}."


def _slowest(slowest: list[dict[str, Any]], *, with_money: bool) -> Html | None:
    if not slowest:
        return None
    columns = [worded("id"), worded("dataset"), worded("provider"), worded("finish"), Column("completion", "tokens")]
    columns += [Column("paid", "USD")] if with_money else []
    columns += [Column("first token", "s"), Column("whole", "s"), Column("ended after", "s of running")]
    numbers = [[words.count(each.get("completion_tokens")) for each in slowest]]
    numbers += [words.column(each.get("usd") for each in slowest)] if with_money else []
    numbers += [words.seconds(each.get(name) for each in slowest) for name in _TIMES]
    named = [[str(each.get(name, words.NONE)) for each in slowest] for name in ("id", "dataset", "provider", "finish")]
    rows = list(zip(*named, *numbers, strict=True))
    return tag("div", tag("h3", "The slowest answers"), table("The slowest answers", columns, rows))


def troubles(report: Report) -> Section:
    """What went wrong, by kind, with the last one in words."""
    if not report.troubles:
        return part("troubles", "Troubles", "Nothing went wrong.")
    with_money = paid(report)
    columns = [
        worded("kind"),
        Column("times"),
        worded(""),
        *([Column("cost", "USD")] if with_money else []),
        worded("the last one"),
    ]
    most = max(each.count for each in report.troubles)
    digits = words.fine(each.usd for each in report.troubles)
    rows = [
        [
            each.kind,
            words.count(each.count),
            bars.lone(each.count, most),
            *([words.dollars(each.usd, digits)] if with_money else []),
            each.example or words.NONE,
        ]
        for each in sorted(report.troubles, key=lambda each: -each.count)
    ]
    how = "Each kind of what went wrong, and the last one in the words of who reported it."
    return part("troubles", "Troubles", how, table("Troubles by kind", columns, rows))
