"""Whether a provider's answers are worth their money: its share of mismatches, and what its streams prove. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from eyas.state import State
from eyas.tokens import Cut, Habits, habit_key
from eyas.types import Label

JUDGED = 50
"""So many labelled answers of a provider are judged; its habits are known by then."""

REPORTED = 0.02
"""The share of mismatches above which a provider is reported."""

_STREAMS = 30


@dataclass(frozen=True, slots=True)
class Standard:
    """What the user asks of providers. `drop_above`: the share of mismatches that sets one aside; None: none does."""

    drop_above: float | None = None
    require_streamed: bool = False


@dataclass(frozen=True, slots=True)
class Concern:
    """What is wrong with a provider, as a sentence; `aside`: it should be asked no more."""

    provider: str
    detail: str
    aside: bool


@dataclass(slots=True)
class Quality:
    """Counts labels by provider, and says once what is wrong with one."""

    standard: Standard = Standard()
    labels: dict[str, Counter[Label]] = field(default_factory=dict[str, Counter[Label]])
    _said: set[tuple[str, bool]] = field(default_factory=set[tuple[str, bool]])

    @classmethod
    def of(cls, state: State, standard: Standard) -> Quality:
        """With the labels that earlier sessions gave."""
        quality = cls(standard)
        quality.labels |= {provider: Counter(counts) for provider, counts in state.labelled.items()}
        return quality

    def count(self, provider: str, label: Label, instead_of: Label | None = None) -> None:
        """An answer of a provider got a label, perhaps instead of an earlier one."""
        counts = self.labels.setdefault(provider, Counter())
        counts[label] += 1
        if instead_of is not None:
            counts[instead_of] -= 1

    def concerned(self, habits: Mapping[str, Habits]) -> list[Concern]:
        """What is wrong now and was not said yet."""
        found = [concern for provider in sorted(self.labels) for concern in self._of(provider, habits)]
        return [concern for concern in found if (concern.provider, concern.aside) not in self._said]

    def concerns(self, habits: Mapping[str, Habits]) -> list[Concern]:
        """The same, and it is said by that."""
        fresh = self.concerned(habits)
        self._said |= {(concern.provider, concern.aside) for concern in fresh}
        return fresh

    def _of(self, provider: str, habits: Mapping[str, Habits]) -> list[Concern]:
        counts = self.labels[provider]
        answers, wrong = counts.total(), counts[Label.MISMATCH]
        found: list[Concern] = []
        if provider and answers >= JUDGED and wrong > REPORTED * answers:
            most = self.standard.drop_above
            found.append(
                Concern(
                    provider,
                    f"{provider}: {wrong} of {answers} answers ({wrong / answers:.1%}) do not agree with its own counts; "
                    "its template, tokenizer or model may be another. [providers] drop_above sets such a provider aside",
                    aside=most is not None and wrong > most * answers,
                )
            )
        if provider and self.standard.require_streamed and _proves_nothing(provider, habits):
            detail = f"{provider}: its streams do not prove token ids, and [providers] require_streamed asks for that"
            found.append(Concern(provider, detail, aside=True))
        return found


def _proves_nothing(provider: str, habits: Mapping[str, Habits]) -> bool:
    """Whether enough answers came, in either mode, to know that pieces of its streams are no tokens."""
    known = [habits[key] for thinking in (True, False) if (key := habit_key(provider, thinking=thinking)) in habits]
    return any(habit.answers >= _STREAMS and habit.cut is not Cut.TOKEN for habit in known)
