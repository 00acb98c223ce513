"""What a label means, its colour, and its place among the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eyas.report.page.parts import bars, words
from eyas.report.page.parts.markup import Html, tag
from eyas.report.page.parts.tables import Column, folded, legend, table, worded
from eyas.types import STRICT, Label

MEANING = {
    Label.ENGINE: "the engine sent the ids themselves",
    Label.LOGPROBS: "the log-probabilities name each token",
    Label.STREAMED: "each piece of the stream is one token, and the counts agree",
    Label.COUNTED: "the counts of prompt and completion agree",
    Label.STRIPPED: "the counts agree; tokens that may differ are masked",
    Label.REPAIRED: "the counts agree after one named repair; what it touches is masked",
    Label.UNCOUNTED: "nothing to check against",
    Label.NEAR: "off by at most 2 tokens or 0.5 %",
    Label.MISMATCH: "further off, or the prompt's count does not agree",
    Label.BROKEN: "no valid text, or an answer that repeats itself",
    Label.MISSERVED: "it reasons though thinking was off",
}
_TAKEN = {Label.UNCOUNTED: "loose", Label.NEAR: "loose"}
COLOURS: dict[str, str] = {
    **{str(label): f"ok{place}" for place, label in enumerate((each for each in Label if each in STRICT), 1)},
    Label.UNCOUNTED: "mid1",
    Label.NEAR: "mid2",
    Label.MISMATCH: "bad1",
    Label.BROKEN: "bad2",
    Label.MISSERVED: "bad3",
}
"""Blue for what a strict export takes, yellow for what a loose one does, red for what none does."""


def ordered(names: Iterable[str]) -> list[str]:
    """Labels from the surest to the unusable; names that are none come last."""
    places = [str(label) for label in Label]
    return sorted(names, key=lambda name: (places.index(name) if name in places else len(places), name))


def strict_share(labels: Mapping[str, int]) -> float | None:
    """The share of answers that a strict export takes."""
    total = sum(labels.values())
    return sum(number for name, number in labels.items() if name in STRICT) / total if total else None


def key(names: Iterable[str]) -> Html | None:
    """The legend of these labels."""
    return legend((COLOURS.get(name, "bad3"), name) for name in names)


def by_dataset(labels: Mapping[str, Mapping[str, int]]) -> Html | None:
    """Labels by dataset, and what each means."""
    names = ordered({name for each in labels.values() for name in each})
    if not names:
        return None
    columns = [worded("dataset"), *(Column(name) for name in names), Column("strict", "of all"), worded("")]
    rows = [
        [
            dataset,
            *(words.count(each.get(name, 0)) for name in names),
            words.share(strict_share(each)),
            bars.stacked([(name, each.get(name, 0), COLOURS.get(name, "bad3")) for name in names], sum(each.values())),
        ]
        for dataset, each in sorted(labels.items())
    ]
    meant = [
        [str(label), MEANING[label], "strict" if label in STRICT else _TAKEN.get(label, "never")] for label in Label
    ]
    meaning = table(
        "Labels, from the surest to the unusable",
        [worded("label"), worded("how the ids are known"), worded("exported")],
        meant,
    )
    how = "How the token ids of the answers are known. A strict export takes the blue ones."
    return tag(
        "div",
        tag("h3", "Labels"),
        tag("p", how, of="how"),
        key(names),
        table("Labels by dataset", columns, rows),
        folded("What the labels mean", meaning),
    )
