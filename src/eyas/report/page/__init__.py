"""The report as one offline HTML file: `html(report)`. Pure.

No request leaves the page: its policy (assets.py) allows its own style and scripts by their hashes, and nothing else. Text
of models, providers and files enters it escaped (parts/markup.py), as JSON (data.py), or by a script's textContent. Tables, bars and
histograms are plain HTML and SVG, so that they are there without scripts; charts over time are drawn by uPlot, samples by our script.
"""

from __future__ import annotations

import re

from eyas.report.document import Report
from eyas.report.page import assets, data
from eyas.report.page.parts import datasets, ends, money, providers, reader, top, words, workers
from eyas.report.page.parts.markup import Html, join, tag
from eyas.report.page.parts.tables import Section

_FIELD = re.compile(r"\{\{(\w+)\}\}")


def html(report: Report, *, refresh: float | None = None) -> str:
    """The page.

    Args:
        report: what it says.
        refresh: seconds after which the page loads itself anew while the run goes on; None for never.

    Returns:
        A whole HTML document, valid UTF-8, under 2 MB: samples that do not fit are left out, and counted on the page.
    """
    samples, left_out = data.packed(report.samples)
    sections = [
        top.headline(report),
        top.yields(report),
        money.cost(report),
        money.speed(report),
        providers.providers(report),
        workers.workers(report),
        datasets.lengths(report),
        datasets.finishes(report),
        ends.tail(report),
        money.reconciliation(report),
        datasets.coverage(report),
        ends.troubles(report),
        reader.samples(report, left_out),
        top.notes(report),
    ]
    shown = [section for section in sections if section is not None]
    fields = {
        "policy": assets.policy(),
        "title": tag("title", f"{report.model}: eyas report"),
        "reload": _reload(refresh),
        "early": Html(assets.joined(*assets.EARLY)),
        "style": Html(assets.joined(*assets.STYLES)),
        "banner": top.banner(report, refresh) or "",
        "head": top.title(report),
        "contents": join(*map(_link, shown)),
        "sections": join(*(section.markup for section in shown)),
        "foot": _foot(report),
        "data": join(data.block("charts-data", data.charts(report)), samples),
        "library": Html(assets.joined(*assets.LIBRARY)),
        "ours": Html(assets.joined(*assets.OURS)),
    }
    return _FIELD.sub(lambda found: fields[found[1]], assets.asset("page.html"))


def _reload(refresh: float | None) -> Html:
    """For browsers that run no scripts; with them, the script reloads and keeps the reader's place."""
    again = tag("meta", attributes={"http-equiv": "refresh", "content": f"{max(refresh, 1):.0f}"}) if refresh else None
    return tag("noscript", again) if again else Html("")


def _link(section: Section) -> Html:
    return tag("li", tag("a", section.title, attributes={"href": f"#{section.name}"}))


def _foot(report: Report) -> Html:
    made = (
        f"Made by eyas {report.eyas} at {words.moment(report.made_at)} UTC. All times are UTC; dollars are US dollars."
    )
    return join(
        tag("p", made),
        tag("p", "No request leaves this page. Charts over time are drawn by uPlot 1.6.32, MIT, © 2022 Leon Sorokin."),
        tag("details", tag("summary", "Licence of uPlot"), tag("pre", assets.asset("uPlot.LICENSE").strip())),
    )
