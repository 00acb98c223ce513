"""`eyas providers`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from eyas.cli import start
from eyas.config import OPENROUTER, Providers, RunConfig
from eyas.engine.inputs import Offer, backend_of, list_endpoints
from eyas.providers.choose import allowed, provider_block
from eyas.providers.precision import native_format
from eyas.report.progress import columns
from eyas.transport import HttpTransport

_PER_MILLION = 1e9


@click.command("providers")
@click.argument("model")
@click.option("--base-url", default=OPENROUTER, show_default=True)
@click.option("--ignore", multiple=True, help="A provider to shut out by slug, tag or name; may stand several times.")
@click.option("--precision", type=click.Choice(["native", "any"]), default="native", show_default=True)
@click.option("--key-file", type=click.Path(path_type=Path), help="Read the API key from this file; none is needed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, a stable interface.")
def command(
    model: str, base_url: str, ignore: tuple[str, ...], precision: str, key_file: Path | None, as_json: bool
) -> None:
    """List every endpoint of MODEL with price, precision, and whether eyas would use it, and why."""
    wish = Providers.model_validate({"ignore": ignore, "precision": precision})
    config = RunConfig.model_validate(
        {
            "run": {"dir": "."},
            "target": {"model": model, "base_url": base_url},
            "budget": {"usd": 1},
            "providers": wish,
            "datasets": [{"name": "none", "source": "none"}],
        }
    )
    offer = start.run_loop(_offer(config, key_file))
    figures = listing(model, offer, wish)
    if as_json:
        print(json.dumps(figures, indent=2))
        return
    print(table(figures))
    for each in offer.unpriced:
        print(f"{each.tag or each.provider}: cannot be used: {each.reason}", file=sys.stderr)


async def _offer(config: RunConfig, key_file: Path | None) -> Offer:
    async with HttpTransport() as transport:
        return await list_endpoints(config, backend_of(config, start.key(key_file, needed=False)), transport)


def listing(model: str, offer: Offer, wish: Providers) -> dict[str, Any]:
    """The figures of `eyas providers --json`; prices in USD per million tokens."""
    barred = [verdict.endpoint for verdict in offer.verdicts if not verdict.use]
    return {
        "schema": 1,
        "model": model,
        "native": native_format(model),
        "endpoints": [
            {
                "provider": verdict.endpoint.provider,
                "slug": verdict.endpoint.slug,
                "tag": verdict.endpoint.tag,
                "quantization": verdict.endpoint.quantization,
                "status": verdict.endpoint.status,
                "context": verdict.endpoint.context,
                "max_output": verdict.endpoint.max_output,
                "usd_per_m_prompt": verdict.endpoint.prices.prompt / _PER_MILLION,
                "usd_per_m_completion": verdict.endpoint.prices.completion / _PER_MILLION,
                "verdict": "use" if verdict.use else "exclude",
                "reason": verdict.reason,
            }
            for verdict in offer.verdicts
        ],
        "provider_block": provider_block(allowed(offer.verdicts), wish, barred),
    }


def table(figures: dict[str, Any]) -> str:
    """The same for people."""
    rows = [("endpoint", "label", "in $/M", "out $/M", "verdict", "why")]
    rows += [
        (
            e["tag"],
            e["quantization"] or "-",
            f"{e['usd_per_m_prompt']:.3f}",
            f"{e['usd_per_m_completion']:.3f}",
            e["verdict"],
            e["reason"],
        )
        for e in figures["endpoints"]
    ]
    native = figures["native"] or "not known to eyas"
    return "\n".join([f"{figures['model']}: native weights are {native}", "", *columns(rows, left=(0, -2, -1))])
