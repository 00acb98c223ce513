"""What an export counts on its way, for the manifest: one small fact an answer, summed up in any order."""

from __future__ import annotations

from collections import Counter, defaultdict

import msgspec

from eyas.types import NANO, Label

TRAINER_LENGTHS = {"SpecForge": 2048, "speculators": 8192}
"""Where trainers cut rows by default, in ids."""

_LENGTH_SHARE = 0.02
_MISMATCH_SHARE = 0.02


class Fact(msgspec.Struct, frozen=True):
    """What is counted of one answer.

    Attributes:
        dataset, provider, label: of the answer.
        source: the file its prompt was read from.
        cost: nano-dollars, None while unknown.
        limited: whether it ended at max_tokens.
        tokens: ids of the answer.
        kept: those of them within --max-length.
        length: ids of the row, prompt included.
        supervised: ids of the row with mask 1.
        beyond: those of them that each trainer of TRAINER_LENGTHS would cut by default.
        step: the step of the yield table at which it is lost, empty for a row.
        reason: why it is no row, empty for a row.
        notes: remarks; each becomes one warning with its number.
    """

    dataset: str
    provider: str
    label: Label
    source: str
    cost: int | None
    limited: bool
    tokens: int
    kept: int
    length: int
    supervised: int
    beyond: tuple[int, ...]
    step: str = ""
    reason: str = ""
    notes: tuple[str, ...] = ()

    def part(self, tokens: int) -> int:
        """The part of its cost that so many of its ids stand for, in nano-dollars, rounded down."""
        return (self.cost or 0) * tokens // self.tokens if self.tokens else 0


class Count(msgspec.Struct):
    """Answers, and those of them that were exported."""

    answers: int = 0
    exported: int = 0


class DatasetCount(msgspec.Struct, frozen=True):
    """One dataset in the manifest.

    Attributes:
        answers: answers that the runs have.
        exported: answers that became rows.
        tokens: ids in the rows.
        supervised_tokens: ids with mask 1 in the rows.
        usd: what the answers cost ("paid") and what the exported ones cost ("exported"), as far as costs are known.
        labels: answers by label.
        excluded: answers that are no rows, by reason.
    """

    answers: int
    exported: int
    tokens: int
    supervised_tokens: int
    usd: dict[str, float]
    labels: dict[str, Count]
    excluded: dict[str, int]


class ProviderCount(msgspec.Struct, frozen=True):
    """One provider in the manifest: its answers and rows, their ids with mask 1, what the answers cost, and labels."""

    answers: int
    exported: int
    supervised_tokens: int
    usd: float
    labels: dict[str, int]


class _Sums:
    """Sums of one dataset or provider."""

    def __init__(self) -> None:
        self.labels: defaultdict[Label, Count] = defaultdict(Count)
        self.excluded: Counter[str] = Counter()
        self.of: Counter[str] = Counter()

    def add(self, fact: Fact) -> None:
        label, cost = self.labels[fact.label], fact.cost or 0
        label.answers += 1
        self.of.update(answers=1, paid=cost, unpriced=int(fact.cost is None))
        if fact.limited:
            self.of.update(limited=1, limited_paid=cost)
        if fact.reason:
            self.excluded[fact.reason] += 1
            return
        label.exported += 1
        self.of.update(exported=1, tokens=fact.length, supervised=fact.supervised, exported_paid=cost)


class Tally:
    """Sums up facts; the result does not depend on their order."""

    def __init__(self) -> None:
        self._datasets: defaultdict[str, _Sums] = defaultdict(_Sums)
        self._providers: defaultdict[str, _Sums] = defaultdict(_Sums)
        self._sources: Counter[str] = Counter()
        self._beyond: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._notes: Counter[str] = Counter()

    def add(self, fact: Fact) -> None:
        """Count one answer."""
        self._datasets[fact.dataset].add(fact)
        self._providers[fact.provider].add(fact)
        self._notes.update(fact.notes)
        if fact.reason:
            return
        self._sources[fact.source] += 1
        for (trainer, limit), tokens in zip(TRAINER_LENGTHS.items(), fact.beyond, strict=True):
            if fact.length > limit:
                self._beyond[trainer].update(rows=1, tokens=tokens, paid=fact.part(tokens))

    def datasets(self) -> dict[str, DatasetCount]:
        """The counts of every dataset, by name."""
        return {
            name: DatasetCount(
                answers=sums.of["answers"],
                exported=sums.of["exported"],
                tokens=sums.of["tokens"],
                supervised_tokens=sums.of["supervised"],
                usd={"paid": sums.of["paid"] / NANO, "exported": sums.of["exported_paid"] / NANO},
                labels={label: sums.labels[label] for label in Label if label in sums.labels},
                excluded=dict(sorted(sums.excluded.items())),
            )
            for name, sums in sorted(self._datasets.items())
        }

    def providers(self) -> dict[str, ProviderCount]:
        """The counts of every provider, by its display name; empty for answers that do not say who gave them."""
        return {
            name: ProviderCount(
                answers=sums.of["answers"],
                exported=sums.of["exported"],
                supervised_tokens=sums.of["supervised"],
                usd=sums.of["paid"] / NANO,
                labels={label.value: sums.labels[label].answers for label in Label if label in sums.labels},
            )
            for name, sums in sorted(self._providers.items())
        }

    def sources(self) -> dict[str, int]:
        """Rows by the file that their prompt was read from."""
        return dict(sorted(self._sources.items()))

    def warnings(self) -> tuple[str, ...]:
        """What a person should look at before training on the rows."""
        notes = [f"{number} {what}" for what, number in sorted(self._notes.items())]
        return (*self._about_answers(), *self._about_providers(), *self._about_rows(), *notes)

    def _about_answers(self) -> list[str]:
        found: list[str] = []
        for name, sums in sorted(self._datasets.items()):
            of = sums.of
            if of["limited"] > _LENGTH_SHARE * of["answers"]:
                found.append(
                    f"{name}: {of['limited']} of {of['answers']} answers ended at max_tokens "
                    f"(${of['limited_paid'] / NANO:.2f}); raise max_tokens, or set [budget] on_length = 'drop'"
                )
            if of["unpriced"]:
                found.append(f"{name}: the cost of {of['unpriced']} answers is not known; run eyas reconcile")
        return found

    def _about_providers(self) -> list[str]:
        return [
            f"{name}: {sums.labels[Label.MISMATCH].answers} of {sums.of['answers']} answers do not agree with its "
            "counts; its template, tokenizer or mode may differ"
            for name, sums in sorted(self._providers.items())
            if Label.MISMATCH in sums.labels
            and sums.labels[Label.MISMATCH].answers > _MISMATCH_SHARE * sums.of["answers"]
        ]

    def _about_rows(self) -> list[str]:
        return [
            f"{cut['rows']} rows are longer than {limit} ids, where {trainer} cuts by default: "
            f"{cut['tokens']} supervised tokens (${cut['paid'] / NANO:.2f}) would be lost"
            for trainer, limit in TRAINER_LENGTHS.items()
            if (cut := self._beyond[trainer])["rows"]
        ]
