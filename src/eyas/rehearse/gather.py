"""What a rehearsal is made of, read: prompts and the run so far as `eyas plan` reads them, the endpoint list if it answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace
from pydantic import SecretStr

from eyas.config import RunConfig
from eyas.engine.inputs import Offer, ask, list_endpoints, load_tokenizer, read_inputs
from eyas.engine.planning import state_of
from eyas.engine.target import api_of
from eyas.errors import ApiError, UsageError
from eyas.plan.curve import Curve
from eyas.plan.estimate import Source, estimate, seen
from eyas.rehearse.demand import counts_of, lightly, own
from eyas.rehearse.figures import Origin
from eyas.rehearse.market import Speed, market, speeds
from eyas.rehearse.play import Job
from eyas.sim import Scenario
from eyas.state import State
from eyas.transport import HttpTransport


class _Listed(NamedTuple):
    """What the API lists, and what it has measured."""

    offer: Offer
    measured: Mapping[str, Speed]


def of_scenario(scenario: Scenario) -> tuple[Job, Origin]:
    """The run that a scenario brings along."""
    config, prompts = own(scenario)
    counts = counts_of(prompts, scenario.workload.prompt_tokens)
    lengths = {each.name: "scenario" for each in config.datasets}
    return Job(config, prompts, counts, scenario), Origin("", scenario.name, "scenario", 0, lengths)


async def of_run(config: RunConfig, path: str, scenario: Scenario, key: SecretStr) -> tuple[Job, Origin]:
    """The run of a RUN.toml, from where it stands; an empty key leaves out what the API tells only with one.

    Raises:
        UsageError: a source or the tokenizer cannot be read, or the API does not know the model.
        StorageError: the run's journal cannot be read.
    """
    if not config.target.bills:
        raise UsageError(
            "a rehearsal plays an API's market, and this run asks servers of your own: `eyas plan` says what they take"
        )
    inputs = read_inputs(config, load_tokenizer(config))
    found, state = await _listed(config, key), state_of(config)
    curves = _curves(config, state)
    made = replace(scenario, model=config.target.model, permaslug=config.target.model)
    if found is not None:
        made = market(made, [each.endpoint for each in found.offer.verdicts], found.measured)
    job = Job(
        config=config,
        prompts=lightly(inputs.prompts, inputs.counts),
        counts=dict(inputs.counts.items()),
        scenario=made,
        offer=found.offer if found else None,
        curves={name: curve for name, (_, curve) in curves.items()},
        state=state,
    )
    lengths = {each.name: curves[each.name][0] if each.name in curves else "scenario" for each in config.datasets}
    measured = sum(each.tps is not None for each in found.measured.values()) if found else 0
    source = "list" if found else "scenario"
    return job, Origin(path, scenario.name, source, measured, lengths, state.money.settled)


async def _listed(config: RunConfig, key: SecretStr) -> _Listed | None:
    """The endpoint list; None where nothing answers."""
    backend = api_of(config, key)
    async with HttpTransport() as transport:
        try:
            offer = await list_endpoints(config, backend, transport)
            measured = speeds(await ask("the endpoint list", backend, transport, backend.endpoints()))
        except ApiError:
            return None
    return _Listed(offer, measured)


def _curves(config: RunConfig, state: State) -> dict[str, tuple[str, Curve]]:
    """Lengths by dataset with their source, where something is known of them."""
    answers = seen(state)
    found = {each.name: estimate(config, each.name, answers.get(each.name)) for each in config.datasets}
    return {name: (of.source.value, of.curve) for name, of in found.items() if of.source is not Source.PRIOR}
