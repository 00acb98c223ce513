"""The workers of a run over many machines: where they ran, what became of them, what they did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from eyas.report.document import Report
from eyas.report.page.parts import bars, words
from eyas.report.page.parts.markup import Child
from eyas.report.page.parts.tables import Column, Section, part, table, worded
from eyas.report.page.parts.top import paid


def workers(report: Report) -> Section | None:
    """A table; None for a run of one machine."""
    found = cast("Mapping[str, Mapping[str, Any]]", report.status.get("workers") or {})
    if not found:
        return None
    columns = [worded("worker"), worded("machine"), worded("state"), Column("answers"), Column("output", "tokens")]
    columns += [Column("paid", "USD"), Column("set apart", "USD")] if paid(report) else []
    most = max(each["output_tokens"] for each in found.values())
    spent, apart = (words.column(each[key] for each in found.values()) for key in ("usd", "leased_usd"))
    rows: list[list[Child]] = []
    for place, (number, each) in enumerate(found.items()):
        row: list[Child] = [number, each["node"] or words.NONE, each["state"]]
        row += [words.count(each["answers"]), words.count(each["output_tokens"])]
        row += [spent[place], apart[place]] if paid(report) else []
        rows.append([*row, bars.lone(each["output_tokens"], most)])
    how = "Each worker took prompts and money from the machine that led the run. The bar is its output tokens."
    return part("workers", "Workers", how, table("What each worker did", [*columns, worded("")], rows))
