"""What an editor sees of the Python interface; pyright reads this file (`make check`), nothing runs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, assert_type

import numpy as np

import eyas
from eyas import errors
from eyas.config import RunConfig
from eyas.types import StopReason


def configs() -> None:
    """From a path, a dict or a config comes a config."""
    config = assert_type(eyas.load("RUN.toml", budget={"usd": 5.0}), eyas.Config)
    assert_type(config, RunConfig)
    assert_type(eyas.load({"run": {"dir": "run"}}), eyas.Config)
    assert_type(config.budget.usd, float | None)


def runs(config: eyas.Config) -> None:
    """A run gives a result, which opens its directory."""

    def look(now: eyas.Progress) -> bool:
        assert_type(now.in_flight, int)
        return assert_type(now.usd, float) < 1.0

    result = assert_type(eyas.run(config, key="sk", on_progress=look, limit=5, datasets=["B3"]), eyas.Result)
    assert_type(result.complete, bool)
    assert_type(result.ending, eyas.Ending)
    assert_type(result.reason, StopReason)
    assert_type(result.figures, dict[str, Any])
    assert_type(result.open(), eyas.OpenRun)


async def notebooks(path: Path) -> None:
    """The same where a loop runs."""
    assert_type(await eyas.run_async(path), eyas.Result)
    assert_type(await eyas.plan_async(path), eyas.Plan)


def plans(path: Path) -> None:
    """A plan has figures and text."""
    plan = assert_type(eyas.plan(path, quotas=[5_000_000], local_tps=400.0), eyas.Plan)
    assert_type(plan.text, str)
    assert_type(plan.figures, dict[str, Any])
    plan.save("plan.json")


def opened() -> None:
    """What is read of a run has types too."""
    with eyas.open_run(["a", Path("b")]) as run:
        assert_type(run, eyas.OpenRun)
        assert_type(run.records(), Iterator[eyas.Record])
        assert_type(run.sequences("all", max_length=4096), Iterator[eyas.Sequence])
        assert_type(run.prompts(), Iterator[eyas.Prompt])
        assert_type(run.table("attempts"), dict[str, np.ndarray[Any, np.dtype[Any]]])
        for sequence in run.sequences():
            assert_type(sequence.label, eyas.Label)
            assert_type(run.decode(sequence.completion_ids), str)
        for record in run.records():
            assert_type(record.completion, eyas.Completion)


def written() -> None:
    """Exports and reports give values."""
    assert_type(eyas.export("run", "rows", labels="loose", draft_vocab=[16_384]), eyas.Manifest)
    assert_type(eyas.report(["run"], "report.html"), eyas.Report)


def failures() -> None:
    """Errors are found under their names."""
    assert_type(eyas.errors.UsageError("…"), errors.UsageError)
    error: eyas.EyasError = errors.LockedError("…")
    assert_type(eyas.__version__, str)
    raise error
