"""`eyas.plan` and `eyas.plan_async`: what a run will cost and take. Nothing is bought."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eyas.api.configure import Source, given
from eyas.api.ending import WIDTH
from eyas.api.keys import Key, keys_of
from eyas.api.loop import refuse_in_a_loop
from eyas.config import RunConfig
from eyas.engine.planning import draft, read, state_of
from eyas.errors import StorageError, UsageError
from eyas.machine import run_loop
from eyas.plan.document import Basis, document
from eyas.plan.figures import Wish
from eyas.plan.scenarios import QUOTAS
from eyas.report import loaded
from eyas.report.planned import tables


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan. `print(plan)` shows the tables of `eyas plan`.

    Attributes:
        figures: those of `eyas plan --json` (docs/interfaces.md).
        config: what was planned.
        notes: sentences on what was read: columns, rows left out, what cannot be promised.
        basis: what the plan rests on: keys of RUN.toml, prompts, endpoints and prices.
        run_toml: the file it was made from; None where there was none.
    """

    figures: dict[str, Any]
    config: RunConfig
    notes: tuple[str, ...]
    basis: Basis
    run_toml: Path | None = None

    @property
    def text(self) -> str:
        """The tables of `eyas plan`, for a hundred columns."""
        return tables(self.figures, WIDTH)

    def __str__(self) -> str:
        return self.text

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write plan.json, which `eyas.run` and `eyas run` take in place of its RUN.toml as long as it holds.

        Raises:
            UsageError: its name does not end in .json, or the plan was not made from a file.
            StorageError: it cannot be written.
        """
        out = Path(path)
        if out.suffix != ".json":
            raise UsageError(f"{out}: give a name that ends in .json, for by that a plan is known")
        if self.run_toml is None:
            raise UsageError(
                "a plan names the RUN.toml that it is of, and this one was made from none: plan by the path of a RUN.toml"
            )
        try:
            out.write_text(document(self.figures, self.basis, self.run_toml, out.parent), encoding="utf-8")
        except OSError as error:
            raise StorageError(f"{out} cannot be written ({error.strerror}): choose another place") from error


async def plan_async(
    config: Source,
    *,
    key: Key | None = None,
    quotas: Sequence[int] = QUOTAS,
    local_tps: float | None = None,
    train_max_length: int | None = None,
) -> Plan:
    """Say what a run will cost and how long it takes, and which quota fits the money. Buys nothing.

    A run that has begun is planned for what is still owed, by the lengths of the answers it has: `run(config, limit=5)`
    before it is a pilot.

    Args:
        config: a config, a dict of RUN.toml's shape, or the path of a RUN.toml.
        key: OpenRouter's key, else OPENROUTER_API_KEY; without one the plan knows of no limit of the account.
        quotas: output tokens a dataset to compare.
        local_tps: output tokens a second of servers of yours, all together.
        train_max_length: ids at which a trainer cuts rows; what it cuts off is priced.

    Raises:
        UsageError, KeyOrCreditsError, ApiError: as `run` does before it starts.
    """
    found = given(config)
    sources = await read(found.config, keys_of(found.config, key, needed=False))
    made = draft(sources, state_of(found.config), Wish(tuple(quotas), local_tps, train_max_length))
    notes = (*sources.inputs.caveats, *loaded.sentences(sources.inputs.sets.values()))
    return Plan(made.figures, found.config, notes, made.basis, found.path)


def plan(
    config: Source,
    *,
    key: Key | None = None,
    quotas: Sequence[int] = QUOTAS,
    local_tps: float | None = None,
    train_max_length: int | None = None,
) -> Plan:
    """Say what a run will cost, as `plan_async` does, whose arguments and errors these are; for code without a loop.

    Raises:
        UsageError: also where an event loop is running already: `await plan_async(...)` there.
    """
    refuse_in_a_loop("plan")
    return run_loop(plan_async(config, key=key, quotas=quotas, local_tps=local_tps, train_max_length=train_max_length))
