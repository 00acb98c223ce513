"""Three providers whose limits must be found: slots and requests a second, batching, half capacity for a while, an outage.

A run of 12 000 prompts with 2000 in flight, more than the 1800 slots that there are.
"""

from __future__ import annotations

from eyas.sim.providers import Provider
from eyas.sim.scenarios.base import Capacity, Outage, Scenario, Workload


def _provider(name: str, slots: int, per_second: float, completion: str) -> Provider:
    return Provider(
        name=name, tag=f"{name.lower()}/int4", quantization="int4", prompt="0.0000005", completion=completion,
        slots=slots, per_second=per_second, batching=300.0, tps=60.0, tps_sigma=0.0,
    )  # fmt: skip


THREE = Scenario(
    name="three",
    providers=(
        _provider("First", 900, 100.0, "0.000002"),
        _provider("Second", 600, 60.0, "0.0000021"),
        _provider("Third", 300, 30.0, "0.0000022"),
    ),
    length_median=1000.0,
    length_sigma=1.05,
    length_min=30,
    length_max=16_000,
    capacities=(Capacity("first/int4", 200.0, 400.0, 0.5),),
    outages=(Outage("second/int4", 500.0, 560.0),),
    retry_after=(5, 5),
    keep_ids=False,
    workload=Workload(prompts=12_000, prompt_tokens=100, max_tokens=16_384, in_flight=2000, usd=1000.0),
)
