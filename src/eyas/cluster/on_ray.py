"""Workers as actors of Ray. Ray places them, tells when one is lost, and ends them; it knows nothing of the run.

An actor is never restarted and none of its calls is made again by Ray: a call may have been carried out and still end in an
error, so all that is told is numbered (`engine/orders.py`). Source: https://docs.ray.io/en/latest/ray-core/fault-tolerance.html
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import SecretStr

from eyas.cluster.worker import Assignment, Worker, orders_as, report_of
from eyas.config import RunConfig
from eyas.engine.coordinator import Coordinator
from eyas.engine.grants import Crew
from eyas.engine.inputs import list_endpoints, load_tokenizer, read_inputs
from eyas.engine.lead import lead
from eyas.engine.orders import Orders, Report
from eyas.engine.session import Ended, Options, Parts
from eyas.engine.target import backend_of
from eyas.errors import UsageError, WorkerLost
from eyas.lock import lock
from eyas.transport import HttpTransport

HERE = "127.0.0.1"


def address_of(on: str) -> str:
    """The address in what --on says: `ray` (empty) or `ray:ADDRESS`.

    Raises:
        UsageError: it names no engine that is known.
    """
    name, _, address = on.partition(":")
    if name != "ray":
        raise UsageError(f"--on {on}: give ray, or ray:ADDRESS for a cluster that runs, such as ray:10.0.0.1:6379")
    return address


def import_ray() -> Any:
    """The module.

    Raises:
        UsageError: it is not installed.
    """
    try:
        import ray  # noqa: PLC0415  # pyright: ignore[reportMissingImports]  # an extra
    except ImportError:
        raise UsageError("--on ray needs Ray: pip install 'eyas[ray]'") from None
    return ray


def connected(address: str) -> Any:
    """The module, connected to the cluster at that address; empty: to one that is begun on this machine.

    Raises:
        UsageError: Ray is not installed, or no cluster is there.
    """
    ray = import_ray()
    try:
        if not ray.is_initialized():
            ray.init(address=address or None, logging_level="ERROR", log_to_driver=False, include_dashboard=False)
    except (ConnectionError, RuntimeError, ValueError) as error:
        why = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
        raise UsageError(
            f"--on ray: no cluster at {address or 'this machine'} ({why}): `ray start --head` begins one"
        ) from None
    return ray


class _Actor:
    """What of a worker lives in its actor."""

    def __init__(self, assignment: Assignment) -> None:
        self._worker = Worker(assignment, import_ray().util.get_node_ip_address())

    def node(self) -> str:
        """The machine's address."""
        return import_ray().util.get_node_ip_address()

    def exchange(self, orders: bytes) -> bytes:
        return self._worker.exchange(orders)


@dataclass(slots=True)
class RayFleet:
    """Workers as actors; `begin` is the assignment of the first, in which only the number changes."""

    ray: Any
    begin: Assignment
    actors: dict[int, Any] = field(default_factory=dict[int, Any])

    async def start(self, worker: int) -> str:
        """Start an actor on the node with the fewest of them."""
        kind = self.ray.remote(max_restarts=0, max_task_retries=0, num_cpus=1, scheduling_strategy="SPREAD")(_Actor)
        self.actors[worker] = actor = kind.remote(replace(self.begin, number=worker))
        return str(await self._asked(actor.node.remote()))

    async def exchange(self, worker: int, orders: Orders) -> Report:
        """Give a worker orders and get its report."""
        return report_of(await self._asked(self.actors[worker].exchange.remote(orders_as(orders))))

    async def end(self, worker: int) -> None:
        """Have Ray end the actor's process."""
        actor = self.actors.pop(worker, None)
        if actor is not None:
            await asyncio.to_thread(functools.partial(self.ray.kill, actor, no_restart=True))

    async def _asked(self, ref: Any) -> Any:
        try:
            return await asyncio.wrap_future(ref.future())
        except self.ray.exceptions.RayError as error:
            raise WorkerLost(str(error).strip().splitlines()[-1][:200] or type(error).__name__) from error


def crew_of(config: RunConfig, nodes: int) -> Crew:
    """How many workers a run has on so many machines, and what each gets; without [cluster] one a machine."""
    wish = config.cluster
    workers = wish.workers or max(1, nodes)
    flying = wish.in_flight_per_worker or max(1, config.limits.in_flight // workers)
    return Crew(workers, flying, wish.lease_prompts)


async def run_on_ray(
    config: RunConfig, text: str, key: SecretStr, options: Options, begin: Callable[[Coordinator], None], address: str
) -> Ended:
    """Run a session of a RUN.toml over a Ray cluster; `address` as `ray.init` takes it, empty: a cluster on this machine.

    Raises:
        UsageError: Ray is not there; and as `sessions.run_config` does.
    """
    ray = connected(address)
    options.scope.check(config)
    here = config.at_node(HERE)
    tokenizer = load_tokenizer(config)
    inputs = read_inputs(config, tokenizer)
    if options.on_inputs is not None:
        options.on_inputs(inputs)
    crew = crew_of(config, sum(node["Alive"] for node in ray.nodes()))
    backend = backend_of(here, key)
    async with HttpTransport() as transport:
        offer = await list_endpoints(here, backend, transport)
        if options.check is not None:
            options.check(inputs, offer)
        parts = Parts(here, backend, tokenizer, inputs, offer, text)
        absolute = config.model_copy(update={"base": config.base.resolve()})
        fleet = RayFleet(ray, Assignment(absolute, key, offer, 0, crew))
        with lock(config.dir):
            return await lead(parts, transport, options, fleet, begin, crew)
