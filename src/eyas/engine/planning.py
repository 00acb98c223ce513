"""What a plan is made of, read: prompts, endpoints, the account, the run so far. Buys nothing; a pilot is an ordinary session."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import SecretStr

from eyas.config import RunConfig
from eyas.engine.account import Account, read_account
from eyas.engine.inputs import Inputs, Offer, backend_of, list_endpoints, load_tokenizer, read_inputs
from eyas.errors import ApiError, StalePlanError, UsageError
from eyas.journal import NAME
from eyas.ledger import nano_dollars
from eyas.plan import routes
from eyas.plan.cost import Market
from eyas.plan.document import Basis, Planned, basis, differences
from eyas.plan.document import read as read_plan
from eyas.plan.estimate import estimate, seen, speed
from eyas.plan.facts import SetFacts, gather, ladder
from eyas.plan.figures import Wish, figures
from eyas.plan.scenarios import Ground, KeyLimit, Wall
from eyas.providers.choose import allowed
from eyas.records import Run
from eyas.report.planned import advice
from eyas.state import State
from eyas.transport import HttpTransport, Transport


@dataclass(frozen=True, slots=True)
class Sources:
    """What was read for a plan; `account` is None where no key was given, or the API does not tell of keys."""

    config: RunConfig
    inputs: Inputs
    offer: Offer
    account: Account | None


class Draft(NamedTuple):
    """A plan: its figures, what it rests on, and the most that a pilot of N answers a dataset can cost, nano-dollars."""

    figures: dict[str, Any]
    basis: Basis
    pilot: Callable[[int], int]


async def read(config: RunConfig, key: SecretStr) -> Sources:
    """Read all that a plan of this config needs; an empty key leaves the account out.

    Raises:
        UsageError, ApiError, KeyOrCreditsError: as a session does before it starts.
    """
    inputs = read_inputs(config, load_tokenizer(config))
    async with HttpTransport() as transport:
        return await ask(config, inputs, key, transport)


async def ask(config: RunConfig, inputs: Inputs, key: SecretStr, transport: Transport) -> Sources:
    """Ask the API what it offers and, with a key, what the account may spend."""
    backend = backend_of(config, key)
    offer = await list_endpoints(config, backend, transport)
    if not key.get_secret_value():
        return Sources(config, inputs, offer, None)
    try:
        return Sources(config, inputs, offer, await read_account(backend, transport))
    except ApiError:
        return Sources(config, inputs, offer, None)


def state_of(config: RunConfig) -> State:
    """Where the run stands; a fresh state where it has not begun.

    Raises:
        StorageError: its journal cannot be read.
    """
    if not (config.dir / NAME).exists():
        return State()
    run = Run(config.dir)
    run.close()
    return run.state


def draft(sources: Sources, state: State, wish: Wish) -> Draft:
    """The plan of what is still to come.

    Raises:
        UsageError: no endpoint may answer, or none takes a dataset's max_tokens.
    """
    config, inputs = sources.config, sources.inputs
    endpoints = allowed(sources.offer.verdicts)
    barred = [verdict.endpoint for verdict in sources.offer.verdicts if not verdict.use]
    rungs = ladder(routes(config, endpoints, barred))
    facts = gather(config, state, inputs.prompts, inputs.counts, rungs)
    for name, of in facts.items():
        _check_served(of)
        if name in inputs.sets:
            held = inputs.sets[name]
            of.rows, of.duplicates, of.quarantined = held.rows, held.duplicates, len(held.quarantined)
            of.left_out = held.images + sum(held.removed.values())
    answers = seen(state)
    ground = Ground(
        config,
        facts,
        {name: estimate(config, name, answers.get(name)) for name in facts},
        Market(rungs, config.limits.in_flight, _observed(state, config.limits.in_flight)),
    )
    made = figures(ground, _wall(config, state, sources.account), speed(state), wish)
    every = {each.facts.name: each for each in ground.costs(None, own=False).sets}

    def pilot(number: int) -> int:
        return math.ceil(
            sum(each.worst * min(1.0, number / each.facts.works) for each in every.values() if each.facts.works)
        )

    return Draft({**made, "advice": advice(made)}, basis(config, facts, endpoints), pilot)


def _check_served(of: SetFacts) -> None:
    if of.unserved and not of.groups:
        raise UsageError(
            f"dataset {of.name}: no allowed endpoint takes max_tokens = {of.max_tokens}: lower it, or see "
            "`eyas providers` for what each takes"
        )


def _observed(state: State, in_flight: int) -> dict[str, int]:
    """Tokens by endpoint; nothing before the run has filled its slots once, for the cheapest takes the first requests."""
    if sum(each.answers for each in state.providers.values()) < in_flight:
        return {}
    return {tag: each.output_tokens for tag, each in state.providers.items()}


def _wall(config: RunConfig, state: State, account: Account | None) -> Wall:
    cap = None if config.budget.usd is None else nano_dollars(config.budget.usd)
    spent = state.money.committed
    if account is None:
        return Wall(cap, spent)
    balance = account.credits.balance if account.credits else None
    remaining = account.key.remaining
    return Wall(cap, spent, remaining, balance, KeyLimit.NONE if remaining is None else KeyLimit.LIMITED)


def opened(path: Path) -> tuple[Path, Planned | None]:
    """The RUN.toml that a path means, and the plan if it is one (its name ends in .json).

    Raises:
        UsageError: the plan cannot be read.
    """
    if path.suffix != ".json":
        return path, None
    planned = read_plan(path)
    return path.parent / planned.run_toml, planned


def holds(path: Path, planned: Planned, config: RunConfig) -> Callable[[Inputs, Offer], None]:
    """A check that a plan still holds for what a session has read; `path` is the plan's, for the message.

    It raises StalePlanError with every difference: keys of RUN.toml, prompts, endpoints and prices.
    """

    def check(inputs: Inputs, offer: Offer) -> None:
        sets = gather(config, State(), inputs.prompts, inputs.counts, ())
        found = differences(planned.basis, basis(config, sets, allowed(offer.verdicts)))
        if found:
            lines = "\n".join(f"  {each}" for each in found)
            again = f"eyas plan {path.parent / planned.run_toml} --out {path}"
            raise StalePlanError(f"{path} no longer holds; nothing was spent:\n{lines}\nPlan again: {again}")

    return check
