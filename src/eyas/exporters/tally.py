"""What an export counts on its way, for the manifest."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import msgspec

from eyas.types import NANO, Finish, Label, Record, Sequence

_TRAINER_LENGTHS = {"SpecForge": 2048, "speculators": 8192}
_LENGTH_SHARE = 0.02
_MISMATCH_SHARE = 0.02


class Count(msgspec.Struct):
    """Answers, and those of them that were exported."""

    answers: int = 0
    exported: int = 0


class DatasetCount(msgspec.Struct, frozen=True):
    """One dataset in the manifest.

    Attributes:
        answers: answers that the run has.
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


class Tally:
    """Sums up records one by one; the result does not depend on anything but them."""

    def __init__(self) -> None:
        self._labels: defaultdict[str, defaultdict[Label, Count]] = defaultdict(lambda: defaultdict(Count))
        self._excluded: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._providers: defaultdict[str, Counter[Label]] = defaultdict(Counter)
        self._rows: Counter[str] = Counter()

    def add(self, record: Record, sequence: Sequence, excluded: str) -> None:
        """Count one answer; `excluded` is why it is no row, empty if it is one."""
        dataset, cost, completion = record.work.dataset, record.cost, record.completion
        sums, label = self._sums[dataset], self._labels[dataset][sequence.label]
        label.answers += 1
        sums["answers"] += 1
        sums["paid"] += cost or 0
        sums["unpriced"] += cost is None
        sums["length"] += completion.finish is Finish.LENGTH
        sums["length_paid"] += (cost or 0) if completion.finish is Finish.LENGTH else 0
        self._providers[completion.provider][sequence.label] += 1
        if excluded:
            self._excluded[dataset][excluded] += 1
            return
        label.exported += 1
        length = len(sequence.loss_mask)
        sums.update(exported=1, tokens=length, supervised=sum(sequence.loss_mask), exported_cost=cost or 0)
        self._rows.update({name: 1 for name, limit in _TRAINER_LENGTHS.items() if length > limit})

    def note(self, what: str) -> None:
        """Count a remark; each becomes one warning with its number."""
        self._rows[what] += 1

    def datasets(self) -> dict[str, DatasetCount]:
        """The counts of every dataset, by name."""
        return {name: self._dataset(name) for name in sorted(self._sums)}

    def warnings(self) -> tuple[str, ...]:
        """What a person should look at before training on the rows."""
        return (*self._about_answers(), *self._about_providers(), *self._about_rows())

    def _dataset(self, name: str) -> DatasetCount:
        sums, labels = self._sums[name], self._labels[name]
        return DatasetCount(
            answers=sums["answers"],
            exported=sums["exported"],
            tokens=sums["tokens"],
            supervised_tokens=sums["supervised"],
            usd={"paid": sums["paid"] / NANO, "exported": sums["exported_cost"] / NANO},
            labels={label: labels[label] for label in Label if label in labels},
            excluded=dict(sorted(self._excluded[name].items())),
        )

    def _about_answers(self) -> list[str]:
        found: list[str] = []
        for name, sums in sorted(self._sums.items()):
            if sums["length"] > _LENGTH_SHARE * sums["answers"]:
                usd = sums["length_paid"] / NANO
                found.append(
                    f"{name}: {sums['length']} of {sums['answers']} answers ended at max_tokens (${usd:.2f}); "
                    "raise max_tokens, or set [budget] on_length = 'drop'"
                )
            if sums["unpriced"]:
                found.append(f"{name}: the cost of {sums['unpriced']} answers is not known; run eyas reconcile")
        return found

    def _about_providers(self) -> list[str]:
        return [
            f"{name}: {labels[Label.MISMATCH]} of {labels.total()} answers do not agree with its counts; "
            "its template, tokenizer or mode may differ"
            for name, labels in sorted(self._providers.items())
            if labels[Label.MISMATCH] > _MISMATCH_SHARE * labels.total()
        ]

    def _about_rows(self) -> list[str]:
        long = [
            f"{self._rows[name]} rows are longer than {limit} ids, where {name} cuts by default"
            for name, limit in _TRAINER_LENGTHS.items()
            if self._rows[name]
        ]
        notes: list[Any] = [f"{n} {what}" for what, n in sorted(self._rows.items()) if what not in _TRAINER_LENGTHS]
        return long + notes
