"""A quiet evening: no faults, no full provider."""

from eyas.sim.scenarios.base import Scenario

CLEAN = Scenario(name="clean", slots=0)
