"""Tables and parts of the page as markup: captions, heads with scope, figures to the right."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eyas.report.page.parts.markup import Child, Html, tag

_NO_NAME = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `unit` stands small under its name; `words` are set to the left, figures to the right."""

    name: str
    unit: str = ""
    words: bool = False
    note: str = ""


def worded(name: str, *, note: str = "") -> Column:
    """A column of words."""
    return Column(name, words=True, note=note)


def table(caption: str, columns: Sequence[Column], rows: Iterable[Sequence[Child]], foot: Sequence[Child] = ()) -> Html:
    """A table that scrolls sideways where it is too wide; the first cell of a row is its head."""
    head = tag("tr", *(_head(column) for column in columns))
    body = [tag("tr", *_cells(columns, row)) for row in rows]
    inner = tag(
        "table",
        tag("caption", caption),
        tag("thead", head),
        tag("tbody", *body),
        tag("tfoot", tag("tr", *_cells(columns, foot))) if foot else None,
    )
    return tag("div", inner, of="wide", attributes={"role": "region", "aria-label": caption, "tabindex": "0"})


def _head(column: Column) -> Html:
    unit = tag("small", column.unit) if column.unit else None
    attributes = {"scope": "col", "title": column.note or None}
    return tag("th", column.name, unit, of="words" if column.words else "figure", attributes=attributes)


def _cells(columns: Sequence[Column], row: Sequence[Child]) -> Iterable[Html]:
    for place, (column, cell) in enumerate(zip(columns, row, strict=True)):
        kind = "words" if column.words else "figure"
        yield tag("td", cell, of=kind) if place else tag("th", cell, of=kind, attributes={"scope": "row"})


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page, and how the contents name it."""

    name: str
    title: str
    markup: Html


def part(name: str, title: str, how: str, *children: Child) -> Section:
    """A section of the page: its head, a sentence on how to read it, what it shows."""
    head = tag("h2", title, attributes={"id": f"{name}-head"})
    attributes = {"id": name, "aria-labelledby": f"{name}-head"}
    inner = tag("section", head, tag("p", how, of="how") if how else None, *children, attributes=attributes)
    return Section(name, title, inner)


def missing(sentence: str, command: str = "") -> Html:
    """What a part says in place of figures that are not there, and the command that gives them."""
    return tag("p", sentence, " " if command else None, tag("code", command) if command else None, of="missing")


def folded(summary: str, *children: Child, of: str = "", opened: bool = False) -> Html:
    """What is shown only when it is asked for."""
    return tag("details", tag("summary", summary), *children, of=of, attributes={"open": "" if opened else None})


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart that a script draws. `says` is what it shows in one sentence, for whoever does not see it."""

    name: str
    title: str
    how: str
    says: str
    keys: tuple[tuple[str, str], ...] = ()
    """(class of the colour, what is drawn in it)."""


def figure(chart: Chart, below: Child = None) -> Html:
    """The place of a chart: head, how to read it, legend, and its figures as a table below."""
    place = {
        "id": f"chart-{chart.name}",
        "data-chart": chart.name,
        "role": "group",
        "tabindex": "0",
        "aria-label": f"{chart.title}. {chart.says} The arrow keys move along the chart.",
    }
    return tag(
        "figure",
        tag("figcaption", tag("h3", chart.title), tag("p", chart.how, of="how"), legend(chart.keys)),
        tag("div", of="chart", attributes=place),
        tag("output", chart.says, of="readout", attributes={"id": f"readout-{chart.name}"}),
        below,
    )


def legend(keys: Iterable[tuple[str, str]]) -> Html | None:
    """What each colour stands for."""
    items = [tag("li", tag("i", of=f"key {kind}", attributes={"aria-hidden": "true"}), name) for kind, name in keys]
    return tag("ul", *items, of="legend") if items else None


def anchor(name: str) -> str:
    """A name as part of an id: small letters, digits, dashes."""
    return _NO_NAME.sub("-", name.lower()).strip("-") or "unnamed"


def terms(pairs: Iterable[tuple[str, Child]], of: str = "") -> Html:
    """Names and what they are."""
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs), of=of)


def lines(items: Iterable[Child], of: str = "") -> Html:
    """A plain list."""
    return tag("ul", *(tag("li", item) for item in items), of=of)
