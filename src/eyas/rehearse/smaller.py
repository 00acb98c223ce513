"""The same run made smaller: answers, slots, rates, quotas and dollars by one factor, so that its minutes stay what they are."""

from __future__ import annotations

import random
from dataclasses import replace

import msgspec

from eyas.config import RunConfig
from eyas.ledger import nano_dollars, usd
from eyas.rehearse.play import Job
from eyas.sim import Provider, Scenario
from eyas.state import State
from eyas.types import Prompt, Work


def smaller(job: Job, factor: float) -> Job:
    """What is left of a run, `factor` (above 0, at most 1) times as large. A run that has begun starts anew with what it owes."""
    if factor >= 1.0:
        return job
    rng = random.Random(f"smaller {factor}")
    prompts = tuple(prompt for prompt in job.prompts if _owes(job, prompt) and rng.random() < factor)
    return replace(
        job,
        config=_config(job.config, job.state, factor),
        prompts=prompts,
        scenario=_scenario(job.scenario, factor),
        state=State(),
    )


def _owes(job: Job, prompt: Prompt) -> bool:
    dataset = job.state.datasets.get(prompt.dataset)
    if dataset is None:
        return True
    known = job.state.works.get(Work(prompt.dataset, prompt.id))
    return not dataset.quota.met and prompt.id not in dataset.forgotten and (known is None or known.owed)


def _config(config: RunConfig, state: State, factor: float) -> RunConfig:
    cap = None if config.budget.usd is None else nano_dollars(config.budget.usd) - state.money.committed
    budget = {
        "usd": None if cap is None else max(1e-6, usd(cap) * factor),
        "output_tokens": None,
        "total_output_tokens": None,
    }
    limits = {
        "in_flight": _least(config.limits.in_flight, factor),
        "connects_per_second": _least(config.limits.connects_per_second, factor),
    }
    datasets: list[object] = []
    for each in config.datasets:
        quota, known = config.quota(each.name), state.datasets.get(each.name)
        left = None if quota is None else max(1, round((quota - (known.quota.kept if known else 0)) * factor))
        datasets.append(each.model_copy(update={"output_tokens": left}))
    return config.model_copy(
        update={
            "budget": config.budget.model_copy(update=budget),
            "limits": config.limits.model_copy(update=limits),
            "datasets": tuple(datasets),
        }
    )


def _least(number: int, factor: float) -> int:
    return max(1, round(number * factor))


def _scenario(scenario: Scenario, factor: float) -> Scenario:
    def part(amount: float | None) -> float | None:
        return None if amount is None else amount * factor

    return msgspec.structs.replace(
        scenario,
        providers=tuple(_provider(each, factor) for each in scenario.providers),
        slots=_least(scenario.slots, factor) if scenario.slots else scenario.slots,
        balance_usd=part(scenario.balance_usd),
        key_limit_usd=part(scenario.key_limit_usd),
        in_flight_budget_usd=part(scenario.in_flight_budget_usd),
    )


def _provider(provider: Provider, factor: float) -> Provider:
    return msgspec.structs.replace(
        provider,
        slots=_least(provider.slots, factor) if provider.slots else 0,
        per_second=provider.per_second * factor,
        batching=provider.batching * factor,
    )
