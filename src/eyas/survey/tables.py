"""A report as CSV tables, one a subject, each with its heads (pure)."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from eyas.report import workers
from eyas.report.document import Endpoint, Report
from eyas.survey.lengths import KINDS

Cell = str | int | float | None
Row = Sequence[Cell]
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the start of a formula."""


class _Table(NamedTuple):
    """Its heads, and what gives its rows."""

    heads: str
    rows: Callable[[Report], Iterable[Row]]


def tables(report: Report) -> dict[str, str]:
    """The text of every table, by its file name."""
    return {name: _csv(table.heads, table.rows(report)) for name, table in _TABLES.items()}


def _csv(heads: str, rows: Iterable[Row]) -> str:
    out = io.StringIO()
    out.write(f"{heads}\n")
    csv.writer(out, lineterminator="\n").writerows([_safe(cell) for cell in row] for row in rows)
    return out.getvalue()


def _safe(cell: Cell) -> Cell:
    """Text that a spreadsheet would run as a formula gets an apostrophe, by which it takes it for text."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def _fields(heads: str, source: object) -> list[Any]:
    return [getattr(source, name) for name in heads.split(",")]


_COURSE = "at,settled_usd,reserved_usd,unknown_usd,cap_usd,tokens_per_second,in_flight,errors_per_minute,rejects_per_minute,answered"
_TROUBLES = "kind,count,usd,example"
_DAYS = "day,requests,prompt_tokens,completion_tokens,usd,unknown_usd,api_requests,api_usd"
_STATUS = "prompts,done,partial,refused,failed,unknown,skipped,pending,output_tokens,usd"
_ENDPOINT = "tag,name,answers,output_tokens,supervised_tokens,usd,usd_per_m_output,usd_per_m_supervised"
_TIMES = ("first_token_seconds", "seconds", "tokens_per_second")


def _course(report: Report) -> Iterable[Row]:
    return zip(*_fields(_COURSE, report.course), strict=True)


def _providers(report: Report) -> Iterable[Row]:
    return ([*_fields(_ENDPOINT, each), *_spreads(each), sum(each.failures.values())] for each in report.endpoints)


def _spreads(endpoint: Endpoint) -> Iterable[float | None]:
    for name in _TIMES:
        found = getattr(endpoint, name)
        yield from (found.p50, found.p95)


def _failures(report: Report) -> Iterable[Row]:
    return ((each.tag, kind, count) for each in report.endpoints for kind, count in each.failures.items())


def _datasets(report: Report) -> Iterable[Row]:
    datasets = cast("Mapping[str, Mapping[str, Any]]", report.status["datasets"])
    return ((name, *(each[key] for key in _STATUS.split(","))) for name, each in datasets.items())


def _workers(report: Report) -> Iterable[Row]:
    found = cast("Mapping[str, Mapping[str, Any]]", report.status["workers"])
    return ((number, *(each[key] for key in workers.HEADS)) for number, each in found.items())


def _yield(report: Report) -> Iterable[Row]:
    return (
        (name, *map(step.__getitem__, ("step", "rows", "tokens", "usd"))) for name, step in _yields(report, "steps")
    )


def _losses(report: Report) -> Iterable[Row]:
    keys = ("step", "reason", "rows", "requests", "tokens", "usd")
    return ((name, *map(loss.__getitem__, keys)) for name, loss in _yields(report, "losses"))


def _yields(report: Report, part: str) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """The steps or the losses of all datasets, by dataset."""
    for name, table in cast("Mapping[str, Mapping[str, Any]]", report.yields["datasets"]).items():
        yield from ((name, each) for each in table[part])


def _lengths(report: Report) -> Iterable[Row]:
    for name, each in report.lengths.items():
        for kind in KINDS:
            found = getattr(each, kind)
            for place, count in enumerate(found.counts):
                yield name, kind, found.edges[place], found.edges[place + 1], count


def _labels(report: Report) -> Iterable[Row]:
    by_tag = {each.tag: each.labels for each in report.endpoints}
    return [("dataset", *row) for row in _pairs(report.labels)] + [("endpoint", *row) for row in _pairs(by_tag)]


def _pairs(counts: Mapping[str, Mapping[str, int]]) -> list[tuple[str, str, int]]:
    return [(name, key, count) for name, each in counts.items() for key, count in each.items()]


def _finishes(report: Report) -> Iterable[Row]:
    return _pairs(report.finishes)


def _tail(report: Report) -> Iterable[Row]:
    return zip(report.tail.shares, report.tail.seconds, strict=True)


def _days(report: Report) -> Iterable[Row]:
    return (_fields(_DAYS, day) for day in report.reconciliation.days)


def _troubles(report: Report) -> Iterable[Row]:
    return (_fields(_TROUBLES, each) for each in report.troubles)


def _coverage(report: Report) -> Iterable[Row]:
    found = report.coverage
    if found is None:
        return ()
    named = {"": found.total, **found.datasets}
    return ((name, *pair) for name, shares in named.items() for pair in zip(found.sizes, shares, strict=True))


_TABLES: dict[str, _Table] = {
    "course.csv": _Table(_COURSE, _course),
    "providers.csv": _Table(
        f"{_ENDPOINT},{','.join(f'{name}_{part}' for name in _TIMES for part in ('p50', 'p95'))},failures", _providers
    ),
    "workers.csv": _Table(f"worker,{','.join(workers.HEADS)}", _workers),
    "failures.csv": _Table("tag,kind,count", _failures),
    "datasets.csv": _Table(f"dataset,{_STATUS}", _datasets),
    "yield.csv": _Table("dataset,step,rows,tokens,usd", _yield),
    "losses.csv": _Table("dataset,step,reason,rows,requests,tokens,usd", _losses),
    "lengths.csv": _Table("dataset,kind,tokens_from,tokens_below,answers", _lengths),
    "finishes.csv": _Table("dataset,finish,answers", _finishes),
    "labels.csv": _Table("by,name,label,answers", _labels),
    "tail.csv": _Table("share,seconds", _tail),
    "days.csv": _Table(_DAYS, _days),
    "coverage.csv": _Table("dataset,size,share", _coverage),
    "troubles.csv": _Table(_TROUBLES, _troubles),
}
"""Every file, its heads and its rows."""

HEADS = {name: table.heads for name, table in _TABLES.items()}
"""The first line of each file: it tells a table of ours from another file."""
