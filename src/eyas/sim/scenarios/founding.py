"""The run that eyas is for: six sets of 7 M output tokens, 2000 requests in flight, $100, on one evening's market.

Known of that evening: it took 33 minutes, and 2000 slots kept 10 tokens a second each over the whole run, its emptying tail
included; output cost $2.20 a million. While its slots were full a stream was faster than that average. Slots, first tokens and
lengths are made up: about 21 000 answers of 2000 tokens.
"""

from __future__ import annotations

from msgspec.structs import replace

from eyas.sim.providers import Provider
from eyas.sim.scenarios.base import Scenario, Workload


def _native(name: str, slots: int) -> Provider:
    return Provider(
        name=name, tag=f"{name.lower()}/int4", quantization="int4", prompt="0.0000005", completion="0.0000022",
        slots=slots, tps=16.0, tps_sigma=0.1, cancel_stops=True,
    )  # fmt: skip


FOUNDING = Scenario(
    name="founding",
    providers=(
        _native("Chutes", 1400),
        _native("Novita", 1000),
        Provider(
            name="Fireworks", tag="fireworks/nvfp4", quantization="nvfp4", prompt="0.0000006", completion="0.000003",
            slots=800, tps=60.0, cancel_stops=True,
        ),
        Provider(
            name="BaseTen", tag="baseten/fp4", quantization="fp4", prompt="0.0000006", completion="0.000003",
            context=262_000, max_output=262_000, status=-5, uptime=41.0, slots=400, tps=50.0,
        ),
    ),
    length_median=1500.0,
    length_sigma=0.8,
    keep_ids=False,
    workload=Workload(
        datasets=("B3", "B4", "B5", "B6", "B7", "B8"), prompts=6_000, prompt_tokens=200, output_tokens=7_000_000,
        max_tokens=8192, in_flight=2000, usd=100.0, mode="metered",
    ),
)  # fmt: skip

FOUNDING_FAST = replace(FOUNDING, name="founding-fast", speed=4.0)
"""The same market at four times the speed."""
