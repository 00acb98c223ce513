"""A Kimi K2.5 market: ten providers whose habits are those seen in recorded traffic, plus the traps of a price list.

The cheapest endpoint is one that a run on native INT4 weights must not use, and so is every label here that is not
int4 or wider; prices, speeds and slots are made up in the range of real ones.
"""

from __future__ import annotations

from eyas.sim.providers import Provider

PROVIDERS = (
    Provider(
        name="Chutes", tag="chutes/int4", quantization="int4", prompt="0.00000044", completion="0.000002",
        max_output=65_535, uptime=97.0, slots=900, tps=14.0, cancel_stops=True,
    ),
    Provider(
        name="Inceptron", tag="inceptron/int4", quantization="int4", prompt="0.00000044", completion="0.0000022",
        slots=500, tps=18.0, stop_counted=False,
    ),
    Provider(
        name="SiliconFlow", tag="siliconflow/int4", quantization="int4", prompt="0.00000045", completion="0.00000225",
        max_output=235_929, slots=600, tps=16.0, reasoning_count="exact", strip="both", usage_alone=True,
    ),
    Provider(
        name="AtlasCloud", tag="atlas-cloud/int4", quantization="int4", prompt="0.0000005", completion="0.0000025",
        slots=500, tps=20.0, redump="compact", cut="burst",
    ),
    Provider(
        name="ModelRun", tag="modelrun/fp8", quantization="fp8", prompt="0.00000055", completion="0.00000325",
        slots=300, tps=45.0, stop_counted=False, reasoning_count="estimate", trailing_space=True, cut="burst",
    ),
    Provider(
        name="Moonshot AI", tag="moonshotai/int4", quantization="int4", prompt="0.0000006", completion="0.000003",
        uptime=100.0, slots=800, tps=30.0, think_sampled=True, reasoning_count="estimate", strip="leading",
    ),
    Provider(
        name="Parasail", tag="parasail/int4", quantization="int4", prompt="0.0000006", completion="0.0000028",
        max_output=131_072, slots=300, tps=25.0, cut="anywhere",
    ),
    Provider(
        name="Venice", tag="venice", quantization=None, prompt="0.00000075", completion="0.00000375",
        max_output=65_536, slots=200, tps=25.0, reasoning_count="exact",
    ),
    Provider(
        name="DeepInfra", tag="deepinfra/fp4", quantization="fp4", prompt="0.0000004", completion="0.0000019",
        max_output=32_768, slots=600, tps=22.0, cut="anywhere", cancel_stops=True,
    ),
    Provider(
        name="Nebius", tag="nebius/nvfp4", quantization="nvfp4", prompt="0.0000003", completion="0.0000015",
        max_output=None, slots=800, tps=35.0,
    ),
    Provider(
        name="Fireworks", tag="fireworks", quantization="unknown", prompt="0.0000006", completion="0.000003",
        uptime=99.7, slots=800, tps=60.0, cancel_stops=True,
    ),
    Provider(
        name="BaseTen", tag="baseten/fp4", quantization="fp4", prompt="0.0000006", completion="0.000003",
        context=262_000, max_output=262_000, status=-5, uptime=41.0, slots=400, tps=50.0,
    ),
)  # fmt: skip
"""Endpoints of the market, in the order in which the list shows them."""
