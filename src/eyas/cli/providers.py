"""`eyas providers`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from eyas.cli import start
from eyas.cli.say import columns_of
from eyas.config import OPENROUTER, Providers, RunConfig, frozen
from eyas.engine.inputs import Offer, backend_of, list_endpoints
from eyas.errors import UsageError
from eyas.plan import routes
from eyas.providers.choose import allowed, provider_block
from eyas.records import Run
from eyas.report.offer_table import table
from eyas.report.offers import Learned, Market, figures, learned
from eyas.state import State
from eyas.transport import HttpTransport

PIPED = 120
"""Characters a line where stdout is no terminal."""


@click.command("providers")
@click.argument("model")
@click.option("--base-url", help=f"The API to ask.  [default: {OPENROUTER}, or the run's]")
@click.option(
    "--run", "rundir", type=click.Path(path_type=Path), help="Judge as this run does, and add what it learned."
)
@click.option(
    "--only", multiple=True, help="Use this provider (slug, tag or name) and no other; may stand several times."
)
@click.option("--ignore", multiple=True, help="A provider to shut out by slug, tag or name; may stand several times.")
@click.option("--precision", type=click.Choice(["native", "any"]), help="[default: native, or the run's]")
@click.option("--unknown", type=click.Choice(["reject", "accept"]), help="Endpoints whose precision nobody says.")
@click.option("--key-file", type=click.Path(path_type=Path), help="Read the API key from this file; none is needed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, a stable interface.")
def command(
    model: str, base_url: str | None, rundir: Path | None, key_file: Path | None, as_json: bool, **wish: Any
) -> None:
    """List every endpoint of MODEL with price, precision, and whether eyas would use it, and why."""
    config = _config(model, base_url, None if rundir is None else frozen(rundir), wish)
    state = None if rundir is None else _state(rundir, model)
    offer = start.run_loop(_offer(config, key_file))
    shown = figures(market(config, offer, state))
    if as_json:
        print(json.dumps(shown, indent=2))
        return
    print(table(shown, columns_of(sys.stdout) or PIPED))


def market(config: RunConfig, offer: Offer, state: State | None = None) -> Market:
    """What a run under that config would meet, and send: its routes are those of the run itself."""
    usable = allowed(offer.verdicts)
    barred = [verdict.endpoint for verdict in offer.verdicts if not verdict.use]
    endpoints = tuple(verdict.endpoint for verdict in offer.verdicts)
    seen: dict[Any, Learned] | None = None if state is None else learned(state, endpoints)
    return Market(
        model=config.target.model,
        verdicts=offer.verdicts,
        terms=offer.terms,
        block=provider_block(usable, config.providers, barred),
        routes=[(route.tag, route.block) for route in routes(config, usable, barred)] if usable else [],
        learned=seen,
    )


def _config(model: str, base_url: str | None, run: RunConfig | None, wish: dict[str, Any]) -> RunConfig:
    """The run's config, or one of defaults, under the wishes of the command line."""
    given = {name: value for name, value in wish.items() if value}
    try:
        providers = Providers.model_validate((run.providers.model_dump() if run else {}) | given)
        return RunConfig.model_validate(
            {
                "run": {"dir": "."},
                "target": {"model": model, "base_url": base_url or (run.target.base_url if run else OPENROUTER)},
                "budget": {"usd": 1},
                "providers": providers,
                "datasets": [{"name": "none", "source": "none"}],
            },
            context={"insecure_http": run is not None and base_url is None},
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        what = "--base-url" if "base_url" in first["loc"] else ".".join(map(str, first["loc"]))
        raise UsageError(f"{what}: {str(first['msg']).removeprefix('Value error, ')}") from None


def _state(rundir: Path, model: str) -> State:
    run = Run(rundir)
    run.close()
    if run.state.model not in ("", model):
        raise UsageError(f"{rundir} asks {run.state.model}, not {model}: name that model, or leave --run away")
    return run.state


async def _offer(config: RunConfig, key_file: Path | None) -> Offer:
    async with HttpTransport() as transport:
        backend = backend_of(config, start.key(key_file, needed=False))
        return await list_endpoints(config, backend, transport, privacy=True)
