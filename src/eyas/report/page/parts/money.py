"""Dollars and speed along the run, and our books beside the API's."""

from __future__ import annotations

from collections.abc import Sequence

from eyas.report.document import Course, Day, Report
from eyas.report.page.data import running
from eyas.report.page.parts import bars, words
from eyas.report.page.parts.markup import Child, Html, tag
from eyas.report.page.parts.tables import Chart, Column, Section, figure, folded, lines, missing, part, table, worded
from eyas.report.page.parts.top import command, paid

_ROWS = 24
"""Moments in a chart's table: enough to read, the CSV has them all."""
_KNOWN = {
    "answer": "came with the answer",
    "lookup": "looked up later",
    "written_off": "written off",
    "unknown": "not known",
}


def cost(report: Report) -> Section | None:
    """Dollars over time: settled, unknown and reserved upon each other, below the cap."""
    if not paid(report):
        return None
    course = report.course
    if len(course.at) < 2:
        return part("cost", "Cost over time", "", _too_short(report))
    chart = Chart(
        "money",
        "Dollars over time",
        f"What is settled is paid. What is reserved may still be asked for by requests in flight; what is unknown waits for its bill. "
        f"Their sum, the exposure, never rises above the cap. {_pauses(course)}".strip(),
        _money_says(course),
        (("c1", "settled"), ("c3", "unknown"), ("c2", "reserved"), ("cap", "cap")),
    )
    columns = [
        *_time(),
        Column("settled", "USD"),
        Column("unknown", "USD"),
        Column("reserved", "USD"),
        Column("cap", "USD"),
    ]
    given = (course.settled_usd, course.unknown_usd, course.reserved_usd, course.cap_usd)
    shown = some(len(course.at))
    amounts = [words.column(each[i] for i in shown) for each in given]
    rows = [[*_when(course, i), *(each[row] for each in amounts)] for row, i in enumerate(shown)]
    return part("cost", "Cost over time", "", figure(chart, _folded(chart.title, columns, rows)))


def speed(report: Report) -> Section:
    """Tokens a second, requests in flight and failures over time."""
    course = report.course
    if len(course.at) < 2:
        return part("speed", "Speed over time", "", _too_short(report))
    fast = Chart(
        "speed",
        "Tokens a second",
        f"Output tokens kept, averaged between two moments. {_pauses(course)}".strip(),
        _peak("tokens a second", course.tokens_per_second, report.headline.tokens_per_second),
    )
    flight = Chart(
        "flight",
        "Requests in flight",
        "The most that flew at once between two moments.",
        _peak("in flight", course.in_flight),
    )
    failed = Chart(
        "errors",
        "Failures a minute",
        "Refusals for load (429, 503 and the like) are asked again later and cost nothing; other failures may have.",
        f"{_peak('refusals for load a minute', course.rejects_per_minute)} {_peak('other failures a minute', course.errors_per_minute)}",
        (("c2", "refused for load"), ("c4", "other failures")),
    )
    columns = [*_time(), Column("tokens", "a second"), Column("in flight"), Column("refused", "a minute")]
    columns += [Column("failed", "a minute"), Column("answered")]
    numbers = (
        course.tokens_per_second,
        course.in_flight,
        course.rejects_per_minute,
        course.errors_per_minute,
        course.answered,
    )
    rows = [[*_when(course, i), *(words.count(each[i]) for each in numbers)] for i in some(len(course.at))]
    below = _folded("Speed over time", columns, rows)
    return part("speed", "Speed over time", "", figure(fast), figure(flight), figure(failed, below))


def some(length: int, most: int = _ROWS) -> list[int]:
    """Places of at most so many of `length` moments, evenly apart, the first and the last among them."""
    if length <= most:
        return list(range(length))
    return [round(step * (length - 1) / (most - 1)) for step in range(most)]


def _time() -> list[Column]:
    return [worded("UTC"), Column("running", "minutes")]


def _when(course: Course, place: int) -> list[Child]:
    along = running(course.at[: place + 1], course.sessions)
    return [words.moment(course.at[place]), f"{along.x[-1] / 60:,.1f}"]


def _folded(name: str, columns: Sequence[Column], rows: Sequence[Sequence[Child]]) -> Html:
    return folded("The figures as a table", table(f"{name}: {words.several(len(rows), 'moment')}", columns, rows))


def _too_short(report: Report) -> Html:
    return missing("The run has no course yet: nothing was asked, or only just now. Later:", command(report))


def _pauses(course: Course) -> str:
    cuts = len(running(course.at, course.sessions).cuts)
    if not cuts:
        return ""
    return f"Time is that of running: {words.several(cuts, 'pause')} left out, where the dashed {'line stands' if cuts == 1 else 'lines stand'}."


def _money_says(course: Course) -> str:
    exposure = [sum(each) for each in zip(course.settled_usd, course.unknown_usd, course.reserved_usd, strict=True)]
    cap = course.cap_usd[-1]
    below = f", under a cap of {words.money(cap)}" if cap is not None else "; there is no cap"
    return f"{words.money(course.settled_usd[-1])} settled at the end; the exposure was {words.money(max(exposure))} at most{below}."


def _peak(unit: str, values: Sequence[float], average: float | None = None) -> str:
    mean = f", {words.count(average)} on average" if average is not None else ""
    return f"At most {words.count(max(values))} {unit}{mean}."


def reconciliation(report: Report) -> Section | None:
    """Our books beside the API's by day, and how costs became known; without dollars, what was done on each day."""
    books, priced = report.reconciliation, paid(report)
    rows = _days(books.days, priced=priced)
    caption = "Requests, tokens and dollars by day"
    if not priced:
        return part("books", "By day", "", table(caption, _columns(priced=False, given=False), rows)) if rows else None
    how = "What this run booked on each day of UTC, beside what the API says it billed for the same model. "
    how += "Other programs that used the account on that day are in the API's figures too."
    given = _given(books.days)
    if given:
        below = tag("p", f"The API's figures: {books.source}", of="how")
    elif books.source:
        below = missing(books.source)
    else:
        below = missing(
            "The API's own figures were not given. To have them beside ours:", command(report, "--activity", "FILE")
        )
    shown = table(caption, _columns(priced=True, given=given), rows) if rows else missing("Nothing was booked yet.")
    return part("books", "Our books and the API's", how, shown, below, _known(books.known_by))


def _given(days: Sequence[Day]) -> bool:
    return any(day.api_usd is not None for day in days)


def _columns(*, priced: bool, given: bool) -> list[Column]:
    ours = [worded("day"), Column("requests"), Column("prompt", "tokens"), Column("completion", "tokens")]
    ours += [Column("booked", "USD"), Column("unknown", "USD")] if priced else []
    theirs = [Column("API", "requests"), Column("API", "USD"), Column(f"API {words.MINUS} booked", "USD")]
    return [*ours, *(theirs if given else ())]


def _days(days: Sequence[Day], *, priced: bool) -> list[list[Child]]:
    digits = words.fine(usd for day in days for usd in (day.usd, day.unknown_usd, day.api_usd))
    given = priced and _given(days)
    rows: list[list[Child]] = []
    for day in days:
        row: list[Child] = [day.day, *map(words.count, (day.requests, day.prompt_tokens, day.completion_tokens))]
        row += [words.dollars(usd, digits) for usd in (day.usd, day.unknown_usd)] if priced else []
        if given:
            apart = None if day.api_usd is None else day.api_usd - day.usd
            row += [words.count(day.api_requests), words.dollars(day.api_usd, digits), _signed(apart, digits)]
        rows.append(row)
    return rows


def _signed(usd: float | None, digits: int) -> str:
    if usd is None:
        return words.NONE
    sign = "+" if usd > 0 else words.MINUS if usd < 0 else ""
    return f"{sign}{words.dollars(abs(usd), digits)}"


def _known(by: dict[str, int]) -> Html | None:
    total = sum(by.values())
    if not total:
        return None
    kinds = bars.colours(list(by))
    said = lines(
        f"{_KNOWN.get(name, name.replace('_', ' '))}: {words.count(number)} ({words.share(number / total)})"
        for name, number in by.items()
    )
    bar = bars.stacked([(name, number, kinds[name]) for name, number in by.items()], total)
    return tag("div", tag("h3", "How the costs became known"), bar, said, of="known")
