"""`eyas providers` for people: a table as wide as the terminal, each reason under its row, and what the words mean."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from eyas.config.target import API
from eyas.report import server_table
from eyas.report.columns import plain

Row = dict[str, Any]
NOTHING = ("", "-", "?")
"""Cells that say nothing."""

GAP = "  "
INDENT = "    "
OF_RUN = ("real", "streams")
"""Columns that only a run fills."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its head, its cell, and what it is called under the row where the terminal is too narrow (not, if empty)."""

    head: str
    cell: Callable[[Row], str]
    words: str = ""
    left: bool = False


def _yes(value: bool | None) -> str:
    return "?" if value is None else "yes" if value else "no"


def _thousands(value: int | None) -> str:
    return "-" if value is None else f"{value // 1000}k"


def _money(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _run(row: Row, key: str) -> Any:
    run: Row = row.get("run") or {}
    return run.get(key)


def _country(row: Row) -> str:
    home, others = row["country"], [each for each in row["datacenters"] if each != row["country"]]
    return plain(", ".join(filter(None, (home, *others))) or "?", 24)


ALWAYS = (
    Column("endpoint", lambda row: plain(row["tag"], 32), left=True),
    Column("label", lambda row: plain(row["quantization"] or "-", 8)),
    Column("in", lambda row: _money(row["usd_per_m_prompt"])),
    Column("out", lambda row: _money(row["usd_per_m_completion"])),
    Column("verdict", lambda row: row["verdict"], left=True),
)
SOMETIMES = (
    Column("real", lambda row: _money(_run(row, "usd_per_m_output")), "really cost $ per M kept tokens"),
    Column("context", lambda row: _thousands(row["context"]), "context"),
    Column("answer", lambda row: _thousands(row["max_output"]), "longest answer"),
    Column("status", lambda row: "-" if row["status"] is None else str(row["status"]), "status"),
    Column("up", lambda row: "-" if row["uptime"] is None else f"{row['uptime']:.0f}%", "up"),
    Column("cancel", lambda row: _yes(row["cancel_stops_billing"]), "cancel ends the bill"),
    Column("streams", lambda row: _run(row, "streams") or "-", "streams", left=True),
    Column("kept", lambda row: _yes(row["prompts_kept"]), "prompts kept"),
    Column("trained", lambda row: _yes(row["prompts_trained_on"]), "trained on"),
    Column("country", _country, "country", left=True),
    Column("provider", lambda row: plain(row["provider"], 24), left=True),
)
"""In the order of importance: the last ones go under the row first."""


def table(figures: Row, width: int) -> str:
    """The figures of `eyas providers --json`, for a terminal of that many characters, at least 60."""
    if figures["backend"] != API:
        return server_table.table(figures, width)
    width = max(60, width)
    rows: Sequence[Row] = sorted(figures["endpoints"], key=lambda row: row["verdict"] != "use")
    said = [column for column in SOMETIMES if any(column.cell(row) not in NOTHING for row in rows)]
    shown = _fitting(said, rows, width)
    under = [column for column in said if column not in shown]
    columns = (*ALWAYS[:-1], *(column for column in SOMETIMES if column in shown), ALWAYS[-1])
    widths = [_width(column, rows) for column in columns]
    lines = [*_wrapped(_head(figures), width), "", _line([column.head for column in columns], columns, widths)]
    for row in rows:
        lines.append(_line([column.cell(row) for column in columns], columns, widths))
        lines += _wrapped(f"{row['rule']}: {plain(row['reason'], 400)}", width, INDENT)
        more = [
            f"{column.words}: {column.cell(row)}"
            for column in under
            if column.words and column.cell(row) not in NOTHING
        ]
        lines += _wrapped(", ".join(more), width, INDENT)
    silent = [column.words for column in SOMETIMES if column not in said and column.head not in OF_RUN]
    if silent and rows:
        lines += ["", *_wrapped(f"The API does not say: {', '.join(silent)}.", width)]
    return "\n".join([*lines, "", *_sent(figures, width), "", *_legend(figures, width)])


def _head(figures: Row) -> str:
    if figures["native"] is None:
        return f"{figures['model']}: the native weight format is not known to eyas"
    return f"{figures['model']}: native weights are {figures['native']} ({figures['native_source']})"


def _fitting(said: Sequence[Column], rows: Sequence[Row], width: int) -> list[Column]:
    """The columns that fit beside those that always stand."""
    room = width - sum(_width(column, rows) + len(GAP) for column in ALWAYS) + len(GAP)
    shown: list[Column] = []
    for column in said:
        room -= _width(column, rows) + len(GAP)
        if room < 0:
            break
        shown.append(column)
    return shown


def _width(column: Column, rows: Sequence[Row]) -> int:
    return max(map(len, (column.head, *map(column.cell, rows))))


def _line(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    padded = (
        cell.ljust(width) if column.left else cell.rjust(width)
        for cell, column, width in zip(cells, columns, widths, strict=True)
    )
    return GAP.join(padded).rstrip()


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def _sent(figures: Row, width: int) -> list[str]:
    """What requests carry."""
    routes: list[Row] = figures["routes"]
    if not routes:
        return _wrapped("No endpoint may answer: a run would not start.", width)
    block = plain(json.dumps(routes[0]["provider"], ensure_ascii=False), 2000)
    if len(routes) == 1:
        return _wrapped(f"Each request carries provider = {block}", width)
    order = ", ".join(plain(route["tag"], 40) for route in routes)
    return [
        *_wrapped(f"A request names one endpoint, in this order as each is full: {order}.", width),
        *_wrapped(f"To the first it carries provider = {block}", width),
    ]


def _legend(figures: Row, width: int) -> list[str]:
    native = figures["native"] or "not known here"
    ran = any("run" in row for row in figures["endpoints"])
    real = "; real: $ per M output tokens that this run kept there, prompts and waste included" if ran else ""
    return _wrapped(
        f"Native ({native}) is the format that the author released the weights in; a wider one holds each of them, any other "
        "changes them. `use` means that a run sends requests there, `exclude` that it never does: the line below says which "
        'rule decided. To decide otherwise, set only, ignore, max_price, unknown = "accept" or precision = "any" under '
        "[providers] in RUN.toml (only also lets in what is degraded or down). "
        f"in, out: the highest $ per M tokens that may apply; cancel: whether ending a stream ends its bill{real}.",
        width,
    )
