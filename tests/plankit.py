"""What the tests of the plan share: a run of several sets, its facts, and a plan of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from eyas.config import RunConfig, parse
from eyas.ledger import nano_dollars
from eyas.plan import routes
from eyas.plan.cost import Market
from eyas.plan.curve import lognormal
from eyas.plan.estimate import PRIOR_SPEED, Estimate, Source
from eyas.plan.facts import BUCKET, Group, SetFacts, ladder
from eyas.plan.figures import Wish, figures
from eyas.plan.scenarios import Ground, KeyLimit, Wall
from eyas.report.planned import advice
from eyas.types import Endpoint, Prices

SETS = ("B3", "B4", "B5", "B6", "B7", "B8")
TOML = """
[run]
dir = "run"
[target]
model = "moonshotai/kimi-k2.5"
max_tokens = {max_tokens}
[budget]
usd = 100.0
mode = "{mode}"
{quota}
[limits]
in_flight = {in_flight}
"""
DATASET = """
[[datasets]]
name = "{name}"
source = "{name}.jsonl"
"""


def config(quota: int | None = None, **more: Any) -> RunConfig:
    """The founding run's RUN.toml."""
    keys = {"max_tokens": 16_384, "mode": "strict", "in_flight": 2000, **more}
    text = TOML.format(quota=f"output_tokens = {quota}" if quota else "", **keys)
    return parse(text + "".join(DATASET.format(name=name) for name in SETS), Path("RUN.toml"))


def endpoint(tag: str, prompt: float, completion: float, **more: Any) -> Endpoint:
    """An endpoint at US dollars a million tokens."""
    prices = Prices(nano_dollars(prompt), nano_dollars(completion), more.pop("request", 0))
    slug = tag.split("/", maxsplit=1)[0]
    return Endpoint("moonshotai/kimi-k2.5", slug.title(), slug, tag, prices, **more)


def market(of: RunConfig, *endpoints: Endpoint, **observed: int) -> Market:
    """These endpoints; the founding run's $2.20 without any."""
    found = endpoints or (endpoint("chutes/int4", 0.1, 2.20),)
    return Market(ladder(routes(of, found)), of.limits.in_flight, observed)


def facts(of: RunConfig, name: str, works: int = 20_000, tokens: int = 120, **more: Any) -> SetFacts:
    """A set of that many prompts of so many tokens each, which every endpoint serves."""
    serve = more.pop("serve", (0,))
    found = SetFacts(name, of.max_tokens(name), of.thinking(name), of.quota(name), rows=works, prompts=works, **more)
    found.prompt_tokens = works * tokens
    found.groups[serve] = Group(works, works * tokens)
    found.sizes = Counter({tokens // BUCKET: works})
    return found


def estimate(mean: float = 1650, doubt: float = 0.05, most: int = 16_384, source: Source = Source.ANSWERS) -> Estimate:
    """Lengths with that mean."""
    return Estimate(source, lognormal(mean, 0.8, most), doubt, 200)


def ground(of: RunConfig, made: Market | None = None, works: int = 20_000, guess: Estimate | None = None) -> Ground:
    """The founding run: six sets alike."""
    found = {name: facts(of, name, works) for name in SETS}
    return Ground(of, found, dict.fromkeys(SETS, guess or estimate()), made or market(of))


def wall(usd: float = 100.0, **more: Any) -> Wall:
    """A cap, and a key whose limit is the same."""
    return Wall(nano_dollars(usd), key=nano_dollars(usd), key_limit=KeyLimit.LIMITED, **more)


def plan(of: Ground, money: Wall | None = None, wish: Wish | None = None) -> dict[str, Any]:
    """The figures with their advice."""
    made = figures(of, money or wall(), PRIOR_SPEED, wish or Wish())
    return {**made, "advice": advice(made)}
