"""What a plan is made of, read: prompts, endpoints, the account, the run so far. Buys nothing; a pilot is an ordinary session."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import SecretStr

from eyas.backends.openrouter import OpenRouter
from eyas.config import RunConfig
from eyas.engine.account import Account, read_account
from eyas.engine.inputs import Inputs, Offer, list_endpoints, load_tokenizer, read_inputs
from eyas.engine.target import backend_of
from eyas.errors import ApiError, EyasError, StalePlanError, UsageError
from eyas.journal import NAME
from eyas.ledger import nano_dollars
from eyas.plan import routes
from eyas.plan.both import Side, compared
from eyas.plan.cost import Market
from eyas.plan.document import Basis, Planned, basis, differences
from eyas.plan.document import read as read_plan
from eyas.plan.estimate import estimate, seen, speed
from eyas.plan.facts import SetFacts, gather, ladder
from eyas.plan.figures import Wish, figures
from eyas.plan.scenarios import Ground, KeyLimit, Wall
from eyas.providers.choose import allowed
from eyas.providers.throughput import Throughput, own, spans, throughput
from eyas.records import Run
from eyas.report.planned import advice
from eyas.state import State
from eyas.transport import HttpTransport, Transport


@dataclass(frozen=True, slots=True)
class Sources:
    """What was read for a plan; `account` is None where no key was given, or the API does not tell of keys.

    `fallback` is the same for [fallback]; `silent` says why that could not be asked.
    """

    config: RunConfig
    inputs: Inputs
    offer: Offer
    account: Account | None
    fallback: Sources | None = None
    silent: str = ""


class Keys(NamedTuple):
    """The target's key, and that of [fallback]; empty where there is none."""

    target: SecretStr
    fallback: SecretStr = SecretStr("")


class Draft(NamedTuple):
    """A plan: its figures, what it rests on, and the most that a pilot of N answers a dataset can cost, nano-dollars."""

    figures: dict[str, Any]
    basis: Basis
    pilot: Callable[[int], int]


async def read(config: RunConfig, keys: Keys) -> Sources:
    """Read all that a plan of this config needs; an empty key leaves the account out.

    Raises:
        UsageError, ApiError, KeyOrCreditsError: as a session does before it starts.
    """
    inputs = read_inputs(config, load_tokenizer(config))
    async with HttpTransport() as transport:
        found = await ask(config, inputs, keys.target, transport)
        if config.fallback is None:
            return found
        try:
            return replace(found, fallback=await ask(config.fallen_back, inputs, keys.fallback, transport))
        except EyasError as error:  # what the servers here take can be said all the same
            return replace(found, silent=str(error))


async def ask(config: RunConfig, inputs: Inputs, key: SecretStr, transport: Transport) -> Sources:
    """Ask who may answer and, where that bills and there is a key, what the account may spend."""
    backend = backend_of(config, key)
    offer = await list_endpoints(config, backend, transport)
    if not key.get_secret_value() or not isinstance(backend, OpenRouter):
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
    """The plan of what is still to come; beside it, where there is [fallback], the plan of having it all done there.

    Raises:
        UsageError: no endpoint may answer, or none takes a dataset's max_tokens.
    """
    config = sources.config
    ground = _ground(sources, state)
    measured = None if config.target.bills else _measured(state, {rung.tag for rung in ground.market.rungs})
    side = Side(ground, _wall(config, state, sources.account), speed(state, _others(config, state)))
    made = figures(side.ground, side.wall, side.speed, wish, measured)
    if not config.target.bills:
        made["excluded"] = [{"tag": e.endpoint.tag, "reason": e.reason} for e in sources.offer.verdicts if not e.use]
    if config.fallback is not None:
        made |= _beside(sources, state, made, wish)
    every = {each.facts.name: each for each in ground.costs(None, own=False).sets}

    def pilot(number: int) -> int:
        return math.ceil(
            sum(each.worst * min(1.0, number / each.facts.works) for each in every.values() if each.facts.works)
        )

    on = basis(config, ground.facts, allowed(sources.offer.verdicts))
    return Draft({**made, "advice": advice(made)}, on, pilot)


def _beside(sources: Sources, state: State, made: Mapping[str, Any], wish: Wish) -> dict[str, Any]:
    """What [fallback] would take and cost."""
    there = sources.fallback
    until = sources.config.fallback.after_minutes if sources.config.fallback else None
    if there is None:
        return {"fallback": None, "silent": sources.silent}
    try:
        ground = _ground(there, state)
    except UsageError as error:
        return {"fallback": None, "silent": str(error)}
    side = Side(ground, _wall(there.config, state, there.account), speed(state, own(state)))
    theirs = figures(side.ground, side.wall, side.speed, replace(wish, local_tps=None))
    return compared(made, {**theirs, "advice": advice(theirs)}, side, until)


def _measured(state: State, tags: set[str]) -> Throughput | None:
    return throughput(chain.from_iterable(spans(state, tags).values()))


def _others(config: RunConfig, state: State) -> frozenset[str]:
    """Tags of this run whose streams tell nothing of those planned: an API's of one's own servers', and the other way."""
    mine = own(state)
    return mine if config.target.bills else frozenset(state.providers) - mine


def _ground(sources: Sources, state: State) -> Ground:
    config, inputs = sources.config, sources.inputs
    barred = [verdict.endpoint for verdict in sources.offer.verdicts if not verdict.use]
    rungs = ladder(routes(config, allowed(sources.offer.verdicts), barred))
    facts = gather(config, state, inputs.prompts, inputs.counts, rungs)
    for name, of in facts.items():
        _check_served(of, config)
        if name in inputs.sets:
            held = inputs.sets[name]
            of.rows, of.duplicates, of.quarantined = held.rows, held.duplicates, len(held.quarantined)
            of.left_out = held.images + sum(held.removed.values())
    answers = seen(state)
    return Ground(
        config,
        facts,
        {name: estimate(config, name, answers.get(name)) for name in facts},
        Market(rungs, config.limits.in_flight, _observed(config, state)),
    )


def _check_served(of: SetFacts, config: RunConfig) -> None:
    if not of.unserved or of.groups:
        return
    if config.target.bills:
        raise UsageError(
            f"dataset {of.name}: no allowed endpoint takes max_tokens = {of.max_tokens}: lower it, or see "
            "`eyas providers` for what each takes"
        )
    raise UsageError(
        f"dataset {of.name}: no server's context holds its prompts and max_tokens = {of.max_tokens}: lower it, or start "
        "the server with a longer context"
    )


def _observed(config: RunConfig, state: State) -> dict[str, int]:
    """Tokens by endpoint; nothing before the run has filled its slots once, for the cheapest takes the first requests."""
    others = _others(config, state)
    known = {tag: each for tag, each in state.providers.items() if tag not in others}
    if sum(each.answers for each in known.values()) < config.limits.in_flight:
        return {}
    return {tag: each.output_tokens for tag, each in known.items()}


def _wall(config: RunConfig, state: State, account: Account | None) -> Wall:
    if not config.target.bills:
        return Wall(None)
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
