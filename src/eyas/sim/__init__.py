"""A simulated OpenRouter: virtual providers with real habits, seeded faults, and books to check a client against."""

from __future__ import annotations

from eyas.sim.providers import Provider
from eyas.sim.reply import Action, Reply, Step
from eyas.sim.scenarios import SCENARIOS, Capacity, Faults, Outage, Scenario, Workload, load
from eyas.sim.text import Vocabulary
from eyas.sim.world import World

__all__ = [
    "SCENARIOS",
    "Action",
    "Capacity",
    "Faults",
    "Outage",
    "Provider",
    "Reply",
    "Scenario",
    "Step",
    "Vocabulary",
    "Workload",
    "World",
    "load",
]
