"""The chunks of an export done by actors of Ray, which read the run directories by the same paths. The bytes are the same."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from typing import Any

from eyas.cluster.on_ray import connected
from eyas.errors import EyasError
from eyas.export.pool import Crew
from eyas.export.work import Setup, Worker


class _Actor:
    """Does jobs; keeps the runs open and the tokenizer loaded between them."""

    def __init__(self, setup: Setup) -> None:
        self._worker = Worker(setup)

    def do(self, task: Callable[[Worker, Any], Any], job: Any) -> Any:
        return task(self._worker, job)


def hire_on(address: str) -> Callable[[Setup, int | None, int], Any]:
    """A crew of the Ray cluster at that address (empty: one on this machine): an actor a processor, unless a number is given."""

    @contextmanager
    def hire(setup: Setup, workers: int | None, chunks: int) -> Generator[Crew]:
        ray = connected(address)
        count = max(1, min(workers or int(ray.cluster_resources().get("CPU", 1)), chunks))
        kind = ray.remote(num_cpus=1, scheduling_strategy="SPREAD")(_Actor)
        actors = [kind.remote(setup) for _ in range(count)]
        turn = itertools.cycle(actors)

        def submit(task: Callable[[Worker, Any], Any], job: Any) -> Future[Any]:
            return next(turn).do.remote(task, job).future()

        with closing(Worker(setup)) as worker:
            try:
                yield Crew(worker, submit, count)
            except ray.exceptions.RayTaskError as error:
                raise error.cause if isinstance(error.cause, EyasError) else error from None
            except ray.exceptions.RayError as error:
                raise EyasError(
                    f"a worker of the export was lost ({str(error).strip().splitlines()[-1][:200]}): export again"
                ) from None
            finally:
                for actor in actors:
                    ray.kill(actor)

    return hire
