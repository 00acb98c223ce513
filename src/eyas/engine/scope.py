"""Which part of what is owed a session asks: `eyas run --limit N --dataset NAME`. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from eyas.config import RunConfig
from eyas.engine.admit import Candidate
from eyas.errors import UsageError
from eyas.state import State
from eyas.types import Prompt, Work

Conversation = tuple[str, str, int]
"""(dataset, prompt id, sample): all turns of it belong together."""


@dataclass(frozen=True, slots=True)
class Scope:
    """At most `limit` conversations of each dataset (None: all), of the named datasets only (none named: of all).

    The limit counts what the run has begun already, so the same one twice asks nothing new.
    """

    limit: int | None = None
    datasets: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether it leaves nothing out."""
        return self.limit is None and not self.datasets

    def holds(self, dataset: str) -> bool:
        """Whether anything of that dataset is asked."""
        return not self.datasets or dataset in self.datasets

    def check(self, config: RunConfig) -> None:
        """Look whether it fits a run.

        Raises:
            UsageError: a limit below 1, or a dataset that RUN.toml does not have.
        """
        if self.limit is not None and self.limit < 1:
            raise UsageError(f"--limit {self.limit}: give 1 or more")
        names = [each.name for each in config.datasets]
        for name in self.datasets:
            if name not in names:
                raise UsageError(f"--dataset {name}: there is no such dataset; RUN.toml has {', '.join(names)}")


WHOLE = Scope()
"""All that is owed."""


def within(scope: Scope, state: State, owed: Iterable[tuple[Work, Prompt]]) -> Iterator[tuple[Work, Prompt]]:
    """What of the owed works is asked, in the order given: conversations begun before fresh ones, up to the limit."""
    wanted = [each for each in owed if scope.holds(each[0].dataset)]
    if scope.limit is None:
        yield from wanted
        return
    begun = {_conversation(work) for work, known in state.works.items() if known.numbers}
    open_ones = list(dict.fromkeys(_conversation(work) for work, _ in wanted))
    room = dict.fromkeys((name for name, _, _ in open_ones), scope.limit)
    for name, _, _ in begun.difference(open_ones):
        if name in room:
            room[name] -= 1
    chosen = set[Conversation]()
    for each in sorted(open_ones, key=lambda each: each not in begun):
        if room[each[0]] > 0:
            room[each[0]] -= 1
            chosen.add(each)
    yield from (each for each in wanted if _conversation(each[0]) in chosen)


def left_out(scope: Scope, state: State, asked: Iterable[Candidate]) -> Counter[str]:
    """How many works of each dataset a session leaves alone that asks those first, and after them what follows in their conversations."""
    found = Counter[str]()
    if not scope.whole:
        for name, dataset in state.datasets.items():
            found[name] = dataset.works - sum(dataset.ended.values())
        for candidate in asked:
            found[candidate.work.dataset] -= 1 + len(candidate.prompt.turns)
    return +found


def _conversation(work: Work) -> Conversation:
    return work.dataset, work.prompt_id, work.sample
