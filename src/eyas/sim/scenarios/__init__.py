"""Scenarios by name; a new one is a file and a line here."""

from __future__ import annotations

from eyas.errors import UsageError
from eyas.sim.scenarios.base import Capacity, Faults, Outage, Scenario, Workload
from eyas.sim.scenarios.clean import CLEAN
from eyas.sim.scenarios.founding import FOUNDING, FOUNDING_FAST
from eyas.sim.scenarios.labels import LABELS
from eyas.sim.scenarios.rough import ROUGH
from eyas.sim.scenarios.storm import STORM
from eyas.sim.scenarios.three import THREE

SCENARIOS = {scenario.name: scenario for scenario in (CLEAN, ROUGH, STORM, LABELS, FOUNDING, FOUNDING_FAST, THREE)}
"""Every scenario that `eyas simulate` and `eyas rehearse` know."""


def load(name: str) -> Scenario:
    """The scenario of that name.

    Raises:
        UsageError: there is none.
    """
    try:
        return SCENARIOS[name]
    except KeyError:
        raise UsageError(f"no scenario named {name}; choose one of {', '.join(sorted(SCENARIOS))}") from None


__all__ = ["SCENARIOS", "Capacity", "Faults", "Outage", "Scenario", "Workload", "load"]
