"""How long prompts and answers are, why they ended, and which tokens they are made of, by dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from eyas.report.document import Coverage, Lengths, Report
from eyas.report.page.parts import bars, labels, words
from eyas.report.page.parts.markup import Child, Html, tag
from eyas.report.page.parts.money import some
from eyas.report.page.parts.tables import Chart, Column, Section, figure, folded, legend, missing, part, table, worded
from eyas.report.page.parts.top import command

_OPEN = 8
"""Datasets whose histograms are shown at once; those of the others are folded away."""
_SIZES = 7
"""Sizes of draft vocabularies in the table."""
_ALL = "all together"
FINISHES = {
    "stop": "ok1",
    "tool_calls": "ok4",
    "length": "mid1",
    "content_filter": "bad1",
    "error": "bad2",
    "none": "mid2",
    "other": "c6",
}


def lengths(report: Report) -> Section:
    """Histograms of the tokens of prompts, reasoning and answers."""
    filled = sorted((name, each) for name, each in report.lengths.items() if _any(each))
    how = "How many tokens the prompts, the reasoning and the answers proper have. Each picture has its own height; the bins are those below it."
    if not filled:
        return part(
            "lengths", "Lengths", "", missing("No lengths yet: nothing has been answered. Later:", command(report))
        )
    first = _histograms(filled[:_OPEN])
    rest = filled[_OPEN:]
    more = folded(f"{words.several(len(rest), 'more dataset')}", _histograms(rest)) if rest else None
    return part("lengths", "Lengths", how, first, more)


def _any(each: Lengths) -> bool:
    return any(sum(one.counts) for one in (each.prompt, each.reasoning, each.answer))


def _histograms(named: Sequence[tuple[str, Lengths]]) -> Html:
    columns = [worded("dataset"), Column("prompt", "tokens"), Column("reasoning", "tokens"), Column("answer", "tokens")]
    rows: list[list[Child]] = [
        [
            name,
            bars.histogram(f"{name}, prompt", each.prompt, "c5"),
            bars.histogram(f"{name}, reasoning", each.reasoning, "c3"),
            bars.histogram(f"{name}, answer", each.answer, "c1"),
        ]
        for name, each in named
    ]
    return tag("div", table("Lengths by dataset", columns, rows), of="histograms")


def finishes(report: Report) -> Section:
    """Why the answers ended, and how their ids are known."""
    counts = Counter[str]()
    for each in report.finishes.values():
        counts.update(each)
    if not counts:
        return part("finishes", "Finish reasons and labels", "", missing("No answers yet. Later:", command(report)))
    names = [name for name, _ in counts.most_common()]
    colours = bars.colours(names, {name: kind for name, kind in FINISHES.items() if name in counts})
    columns = [worded("dataset"), *(Column(name) for name in names), worded("")]
    rows: list[list[Child]] = [
        [
            dataset,
            *(words.count(each.get(name, 0)) for name in names),
            bars.stacked([(name, each.get(name, 0), colours[name]) for name in names], sum(each.values())),
        ]
        for dataset, each in sorted(report.finishes.items())
    ]
    how = "Only stop and tool_calls mean that the model itself ended its answer; length means that it ran into its limit, none that it was cut."
    reasons = tag(
        "div",
        tag("h3", "Finish reasons"),
        tag("p", how, of="how"),
        legend((colours[name], name) for name in names),
        table("Finish reasons by dataset", columns, rows),
    )
    return part("finishes", "Finish reasons and labels", "", reasons, labels.by_dataset(report.labels))


def coverage(report: Report) -> Section:
    """How much of the supervised tokens a smaller draft vocabulary would cover."""
    covered = report.coverage
    name = "Draft vocabulary"
    if covered is None or not covered.sizes:
        sentence = "There are no supervised tokens to count, so no vocabulary can be measured. Later:"
        return part("coverage", name, "", missing(sentence, command(report)))
    curves = {_ALL: covered.total, **covered.datasets}
    chart = Chart(
        "coverage",
        "Coverage by size",
        "A drafter may guess only among the most frequent tokens. The curve is the share of the supervised tokens that so many of them cover.",
        _says(covered),
        tuple((f"c{place % bars.COLOURS + 1}", each) for place, each in enumerate(curves)),
    )
    shown = some(len(covered.sizes), _SIZES)
    columns = [worded("dataset"), *(Column(words.short(covered.sizes[place]), "tokens") for place in shown)]
    rows = [[each, *(words.share(shares[place]) for place in shown)] for each, shares in curves.items()]
    how = f"{words.count(covered.distinct)} of the {words.count(covered.vocab_size)} tokens of the vocabulary occur."
    below = table("Share of the supervised tokens that a vocabulary covers", columns, rows)
    if len(covered.sizes) < 2:
        return part("coverage", name, how, below)
    return part("coverage", name, how, figure(chart, folded("The figures as a table", below)))


def _says(covered: Coverage) -> str:
    place = len(covered.sizes) // 2
    said = (
        f"The {words.count(covered.sizes[place])} most frequent tokens cover {words.share(covered.total[place])} of all"
    )
    if not covered.datasets:
        return f"{said}."
    name, shares = min(covered.datasets.items(), key=lambda item: item[1][place])
    if shares[place] >= covered.total[place]:
        return f"{said}."
    return f"{said}, and the least, {words.share(shares[place])}, of {name}."
