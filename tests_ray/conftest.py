"""A cluster of a head and three nodes, and the simulator's vocabulary."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest
from ray.cluster_utils import Cluster

from eyas import vocab

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"


class Nodes:
    """A cluster whose nodes can be killed. The head carries no worker."""

    def __init__(self) -> None:
        self._cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        self._nodes = [self._cluster.add_node(num_cpus=2) for _ in range(3)]

    @property
    def address(self) -> str:
        """As `--on ray:ADDRESS` takes it."""
        return str(self._cluster.address)

    def kill(self, place: int) -> None:
        """End a node as a power cut does."""
        self._cluster.remove_node(self._nodes.pop(place % len(self._nodes)), allow_graceful=False)

    def mend(self) -> None:
        """Have three nodes again."""
        while len(self._nodes) < 3:
            self._nodes.append(self._cluster.add_node(num_cpus=2))

    def end(self) -> None:
        """End all of it."""
        self._cluster.shutdown()


@pytest.fixture(scope="session")
def nodes() -> Generator[Nodes]:
    """The cluster, ended at the end."""
    found = Nodes()
    try:
        yield found
    finally:
        found.end()


@pytest.fixture(scope="session")
def kimi_folder() -> Path:
    """The vocabulary that the demo carries."""
    return vocab.kimi_folder()
