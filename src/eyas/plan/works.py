"""Prompts + State -> what is owed, and what the sources have more or less than the run. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from eyas.config import RunConfig
from eyas.state import State, askable
from eyas.types import Prompt, Work


@dataclass(frozen=True, slots=True)
class Change:
    """Prompts that the run does not know yet, or with other turns; and those of the run that the sources no longer hold."""

    added: tuple[Prompt, ...]
    removed: tuple[tuple[str, str], ...]


def change(state: State, prompts: Iterable[Prompt]) -> Change:
    """What the sources have more, or less, than the journal. Datasets that RUN.toml dropped count as removed."""
    prompts = tuple(prompt for prompt in prompts if not forgotten(state, prompt))
    found = {(prompt.dataset, prompt.id) for prompt in prompts}
    known = {
        (name, prompt_id): dataset.turns.get(prompt_id, 0)
        for name, dataset in state.datasets.items()
        for prompt_id in dataset.prompts
    }
    return Change(
        added=tuple(prompt for prompt in prompts if known.get((prompt.dataset, prompt.id)) != len(prompt.turns)),
        removed=tuple(sorted(known.keys() - found)),
    )


def forgotten(state: State, prompt: Prompt) -> bool:
    """Whether the user had a prompt removed for good: it is never asked again, also where a source still holds it."""
    known = state.datasets.get(prompt.dataset)
    return known is not None and prompt.id in known.forgotten


def owed(config: RunConfig, state: State, ordered: Iterable[Prompt]) -> Iterator[tuple[Work, Prompt]]:
    """The works that can be asked now, in the order given, samples of a prompt one after the other.

    Of a later turn the prompt is the one that its conversation began with; it is asked only behind a whole answer.
    """
    for prompt in ordered:
        if forgotten(state, prompt):
            continue
        for sample in range(config.dataset(prompt.dataset).samples):
            for turn in range(1 + len(prompt.turns)):
                work = Work(prompt.dataset, prompt.id, turn, sample)
                known = state.works.get(work)
                if (known is None or known.owed) and askable(state, work):
                    yield work, prompt
