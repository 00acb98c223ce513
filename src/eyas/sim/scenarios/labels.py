"""Providers that differ in one habit or two each, at one price and with few slots: what labels are checked against.

An even share of the requests goes to each of them. Their names say what they do.
"""

from __future__ import annotations

from typing import Any

from eyas.sim.providers import Provider
from eyas.sim.scenarios.base import Faults, Scenario


def _provider(name: str, **habits: Any) -> Provider:
    tag = f"{name.lower().replace(' ', '-')}/int4"
    return Provider(name=name, tag=tag, quantization="int4", prompt="0.0000005", completion="0.0000025", **habits)


HONEST = (
    _provider("Token"),
    _provider("Burst", cut="burst"),
    _provider("Word", cut="word"),
    _provider("Anywhere", cut="anywhere"),
    _provider("Leading", strip="leading"),
    _provider("Stripped", strip="both"),
    _provider("Stripped Burst", strip="both", cut="burst"),
    _provider("Stripped Anywhere", strip="both", cut="anywhere"),
    _provider("No Stop", stop_counted=False),
    _provider("Think", think_sampled=True),
    _provider("Exact", reasoning_count="exact"),
    _provider("Estimate", reasoning_count="estimate"),
    _provider("Artefact", trailing_space=True),
    _provider("Odd", trailing_space=True, stop_counted=False, reasoning_count="estimate", cut="burst"),
    _provider("Compact", redump="compact"),
    _provider("Spaced", redump="spaced"),
    _provider("Escaped", redump="escaped"),
    _provider("Listed", logprobs="all"),
    _provider("Listed Burst", logprobs="all", cut="burst", stop_counted=False),
    _provider("Listed Anywhere", logprobs="text", cut="anywhere"),
    _provider("Listed Content", logprobs="content", cut="anywhere"),
    _provider("Listed Stripped", logprobs="all", strip="both", cut="burst"),
    _provider("Folded", logprobs="folded", cut="anywhere"),
    _provider("Folded Burst", logprobs="folded", cut="burst", stop_counted=False),
)
"""Every way to count, cut, strip, list logprobs and write arguments anew that leaves the model what it is."""

WRONG = (
    _provider("Hidden", hidden_prompt=37),
    _provider("Hidden One", hidden_prompt=1),
    _provider("Hidden Anywhere", hidden_prompt=300, cut="anywhere"),
    _provider("Template", other_template=True),
    _provider("Tokenizer", other_tokenizer=True),
)
"""Another prompt, template or tokenizer than the model's."""

LABELS = Scenario(
    name="labels",
    providers=HONEST + WRONG,
    slots=10,
    length_median=250.0,
    length_sigma=0.5,
    tool_share=0.8,
    compact_share=0.4,
    generation_delay=1.5,
    faults=Faults(error_chunk=0.01, cut_close=0.01, cut_reset=0.01, no_usage=0.03),
)
