"""What a rehearsal asks: prompts of which only their size is kept, the run of a scenario, what an earlier session answered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from eyas.config import RunConfig
from eyas.errors import UsageError
from eyas.families import Family, by_name, guess
from eyas.families.template import TEMPLATE, TemplateFamily
from eyas.plan.facts import TURN_CHARACTERS
from eyas.sim import Scenario
from eyas.sim.light import spell
from eyas.state import Attempt, State
from eyas.types import Completion, Prompt, Work

Counts = Mapping[tuple[str, str], int]
"""Tokens of a prompt by (dataset, prompt id)."""

_TOOL = {"type": "function", "function": {"name": "tool"}}


def light(prompt: Prompt, tokens: int) -> Prompt:
    """The same prompt, its text nothing but its name and its tokens. Later turns are counted by their characters."""
    text = spell(f"{prompt.dataset}/{prompt.id}", tokens)
    return Prompt(
        prompt.id,
        prompt.dataset,
        ({"role": "user", "content": text},),
        tools=(_TOOL,) if prompt.tools else (),
        turns=tuple(spell("", max(1, -(-len(turn) // TURN_CHARACTERS))) for turn in prompt.turns),
    )


def lightly(prompts: Iterable[Prompt], counts: Counts) -> tuple[Prompt, ...]:
    """All of these prompts, of a size that fits into memory."""
    return tuple(light(prompt, counts[prompt.dataset, prompt.id]) for prompt in prompts)


def dataset_of(messages: Iterable[Mapping[str, Any]]) -> str:
    """The dataset that a prompt made by `light` names."""
    return next((str(message.get("content", "")).partition("/")[0] for message in messages), "")


def own(scenario: Scenario) -> tuple[RunConfig, tuple[Prompt, ...]]:
    """The run that a scenario brings along: its config, and its prompts as `light` makes them."""
    load = scenario.workload
    config = RunConfig.model_validate({
        "run": {"dir": scenario.name},
        "target": {"model": scenario.model, "base_url": "http://127.0.0.1/api/v1", "max_tokens": load.max_tokens},
        "budget": {"usd": load.usd, "mode": load.mode, "output_tokens": load.output_tokens},
        "limits": {"in_flight": load.in_flight},
        "datasets": [{"name": name, "source": "made by the scenario"} for name in load.datasets],
    })  # fmt: skip
    plain = (Prompt(f"{number:016x}", name, ()) for number in range(load.prompts) for name in load.datasets)
    return config, tuple(light(prompt, load.prompt_tokens) for prompt in plain)


def counts_of(prompts: Iterable[Prompt], tokens: int) -> dict[tuple[str, str], int]:
    """Prompts that all have so many tokens."""
    return {(prompt.dataset, prompt.id): tokens for prompt in prompts}


def family_of(config: RunConfig) -> Family:
    """The family of the target; its tokenizer is not needed.

    Raises:
        UsageError: none is known for the model.
    """
    target = config.target
    name = target.family or guess(target.model)
    if name is None:
        raise UsageError(f"[target] family: none is known for the model {target.model!r}: set it in RUN.toml")
    if name != TEMPLATE:
        return by_name(name)
    return TemplateFamily(config.base / target.chat_template if target.chat_template else None)


@dataclass(frozen=True, slots=True)
class Remembered:
    """What the journal knows of earlier sessions' conversations, by counts."""

    state: State
    prompts: Mapping[tuple[str, str], Prompt] = field(default_factory=dict[tuple[str, str], Prompt])

    def asked(self, attempt: Attempt) -> Prompt:
        """The prompt of an attempt, its history and all in one turn."""
        work = attempt.work
        begun = self.prompts[work.dataset, work.prompt_id]
        text = spell(f"{work.dataset}/{work.prompt_id}", self.state.prompt_tokens(work))
        message = {"role": "user", "content": text}
        return msgspec.structs.replace(begun, messages=(message,), turns=begun.turns[work.turn :])

    def completion(self, attempt: Attempt) -> Completion:
        """The answer of an attempt, of which a history shows what is no reasoning."""
        _, tokens, reasoned = attempt.counts or (0, 0, 0)
        return Completion(content=spell("", max(1, tokens - (reasoned or 0))))

    def noted(self, work: Work) -> Prompt | None:
        """Later turns are made anew."""
        del work
        return None
