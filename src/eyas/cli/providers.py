"""`eyas providers`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from eyas.cli import start
from eyas.cli.keys import key_for
from eyas.cli.say import columns_of
from eyas.cli.style import style_of
from eyas.config import Providers, RunConfig, frozen, load
from eyas.engine.inputs import Offer, list_endpoints
from eyas.engine.target import backend_of
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


def command(
    model: str,
    base_url: tuple[str, ...],
    backend: str | None,
    rundir: Path | None,
    key_file: Path | None,
    as_json: bool,
    **wish: Any,
) -> None:
    """List every endpoint of MODEL with price, precision, and whether eyas would use it, and why."""
    run = None if rundir is None else frozen(rundir)
    if model.endswith(".toml"):
        run = load(Path(model))
        model = run.target.model
    where = {"base_url": base_url[0] if len(base_url) == 1 else base_url} if base_url else {}
    config = _config(model, where | ({"backend": backend} if backend else {}), run, wish)
    state = None if rundir is None else _state(rundir, model)
    offer = start.run_loop(_offer(config, key_file))
    shown = figures(market(config, offer, state))
    if as_json:
        print(json.dumps(shown, indent=2))
        return
    told = table(shown, columns_of(sys.stdout) or PIPED)
    print(style_of(sys.stdout).ending(told))


def market(config: RunConfig, offer: Offer, state: State | None = None) -> Market:
    """What a run under that config would meet, and send: its routes are those of the run itself."""
    usable = allowed(offer.verdicts)
    barred = [verdict.endpoint for verdict in offer.verdicts if not verdict.use]
    endpoints = tuple(verdict.endpoint for verdict in offer.verdicts)
    seen: dict[Any, Learned] | None = None if state is None else learned(state, endpoints)
    return Market(
        model=config.target.asked_as,
        verdicts=offer.verdicts,
        terms=offer.terms,
        block=provider_block(usable, config.providers, barred) if config.target.bills else {},
        routes=[(route.tag, route.block) for route in routes(config, usable, barred)] if usable else [],
        learned=seen,
        backend=config.target.backend,
    )


def _config(model: str, where: dict[str, Any], run: RunConfig | None, wish: dict[str, Any]) -> RunConfig:
    """The run's config, or one of defaults, under the wishes of the command line; `where` are keys of [target]."""
    given = {name: value for name, value in wish.items() if value}
    try:
        providers = Providers.model_validate((run.providers.model_dump() if run else {}) | given)
        return RunConfig.model_validate(
            {
                "run": {"dir": "."},
                "target": (run.target.model_dump(exclude_unset=True) if run else {}) | where | {"model": model},
                "budget": {"usd": 1},
                "providers": providers,
                "datasets": [{"name": "none", "source": "none"}],
            },
            context={"insecure_http": run is not None and not where},
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        says = str(first["msg"]).removeprefix("Value error, ")
        if "base_url" in first["loc"]:
            raise UsageError(f"--base-url: {says}") from None
        raise UsageError(says.replace("base_url: ", "--base-url: ") if where else f"{_named(first)}: {says}") from None


def _named(entry: Any) -> str:
    return ".".join(map(str, entry["loc"]))


def _state(rundir: Path, model: str) -> State:
    run = Run(rundir)
    run.close()
    if run.state.model not in ("", model):
        raise UsageError(f"{rundir} asks {run.state.model}, not {model}: name that model, or leave --run away")
    return run.state


async def _offer(config: RunConfig, key_file: Path | None) -> Offer:
    async with HttpTransport() as transport:
        backend = backend_of(config, key_for(config.target, key_file, needed=False))
        return await list_endpoints(config, backend, transport, privacy=True)
