"""The place where samples are read: filters, list, and the sample that is open. A script fills them."""

from __future__ import annotations

from eyas.report.document import Report
from eyas.report.page.parts import words
from eyas.report.page.parts.markup import Html, join, tag
from eyas.report.page.parts.tables import Section, legend, missing, part
from eyas.report.page.parts.top import command

FILTERS = ("dataset", "provider", "label", "finish")
_CHANNELS = (("m1", "trained on (mask 1)"), ("m0", "not trained on (mask 0): hatched"))


def samples(report: Report, left_out: int) -> Section:
    """The browser of samples, or why there is none. `left_out` are those for which the page had no room."""
    if not report.samples:
        return part("samples", "Samples", "", _none(report))
    how = (
        f"{words.several(len(report.samples) - left_out, 'answer')} to be read, some of each dataset, provider, label and finish. "
        "In the list, the arrow keys move and Enter opens; in the tokens, the arrow keys move from one to the next."
    )
    room = f"{words.several(left_out, 'long sample')} did not fit into the page: " if left_out else ""
    more = missing(f"{room}to have all of them:", command(report, "--json")) if left_out else None
    return part("samples", "Samples", how, _noscript(), _filters(), _panes(), more)


def _none(report: Report) -> Html:
    if not report.headline.answers:
        return missing("There is nothing to read yet: no answers. Later:", command(report))
    return missing(
        "This page holds no text of prompts or answers: it was made with --no-text. To have samples in it:",
        command(report),
    )


def _noscript() -> Html:
    return tag(
        "noscript", tag("p", "Samples are shown by a script of this page; scripts are switched off here.", of="missing")
    )


def _filters() -> Html:
    """Four selects; the script puts in the choices that occur."""
    fields = [
        tag("label", tag("span", name), tag("select", attributes={"id": f"filter-{name}", "data-filter": name}))
        for name in FILTERS
    ]
    clear = tag("button", "Show all", attributes={"type": "button", "id": "filter-clear"})
    found = tag("output", "", attributes={"id": "found"})
    return tag(
        "div",
        *fields,
        clear,
        found,
        of="filters scripted",
        attributes={"role": "group", "aria-label": "Filters of the samples"},
    )


def _panes() -> Html:
    listed = tag("ul", attributes={"id": "list", "role": "listbox", "tabindex": "0", "aria-label": "Samples"})
    shown = tag("article", attributes={"id": "sample", "tabindex": "-1", "aria-label": "The open sample"})
    return join(tag("div", listed, tag("div", _switches(), shown, of="open"), of="panes scripted"))


def _switches() -> Html:
    """Tokens or plain text, and what the shades mean."""
    buttons = [
        tag("button", name, attributes={"type": "button", "data-view": view, "aria-pressed": pressed})
        for view, name, pressed in (("tokens", "Tokens", "true"), ("text", "Text", "false"))
    ]
    views = tag("div", *buttons, of="views", attributes={"role": "group", "aria-label": "How the answer is shown"})
    return tag("div", views, legend(_CHANNELS), of="switches")
