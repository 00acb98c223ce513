"""What a session tells: how far it is, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

from eyas.api.opened import OpenRun, open_run
from eyas.config import RunConfig
from eyas.engine.session import Ended
from eyas.ledger import usd
from eyas.report.progress import table
from eyas.report.summary import exit_code, status
from eyas.standing import ANSWERED
from eyas.state import State
from eyas.types import StopReason

WIDTH = 100
"""Columns that tables are written for."""


class Ending(IntEnum):
    """What the end of a session means for the run; the numbers are the exit codes of `eyas run`.

    Where several hold, the first of INTERRUPTED, STORAGE, KEY, CAP, UNKNOWN, FAILED is given.
    """

    COMPLETE = 0
    """Nothing is owed; quotas that are met are complete too."""
    CAP = 3
    """The cap is reached, or an alarm stopped the run; what is there is valid."""
    FAILED = 4
    """Some works failed or were refused, or nobody is left that may answer the rest."""
    UNKNOWN = 5
    """What some requests cost is not known yet: `eyas reconcile`."""
    KEY = 6
    """The key was refused, its limit is used up, or there are no credits."""
    STORAGE = 7
    """The journal could not be written."""
    INTERRUPTED = 130
    """Somebody ended it; the same call goes on."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a session is, at one moment.

    Attributes:
        at: seconds since 1970.
        works: answers that the run owes in all; quotas may be met by fewer.
        answers: those that are there, whole or partial, of all sessions so far.
        ended: works that nothing more is asked for: the answers, and what failed, was refused or is unknown.
        output_tokens: tokens of the answers.
        usd: US dollars booked.
        reserved_usd: US dollars that requests in flight may cost at most.
        unknown_usd: US dollars that requests of unknown outcome may have cost.
        in_flight: requests in flight.
        last_error: the last thing that went wrong, in words; empty where nothing did.
    """

    at: float
    works: int
    answers: int
    ended: int
    output_tokens: int
    usd: float
    reserved_usd: float
    unknown_usd: float
    in_flight: int = 0
    last_error: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """How a session ended. `print(result)` shows the table that `eyas run` ends with.

    Attributes:
        dir: the run directory.
        ending: what that means for the run.
        reason: why this session ended.
        detail: the same in words, where there is more to say; may be empty.
        figures: those of `eyas status --json` (docs/interfaces.md).
        notes: sentences on what was read and found: columns, rows left out, what cannot be promised.
    """

    dir: Path
    ending: Ending
    reason: StopReason
    detail: str
    figures: dict[str, Any]
    notes: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether nothing is owed any more."""
        return self.ending is Ending.COMPLETE

    def open(self) -> OpenRun:
        """The run directory, opened for reading."""
        return open_run(self.dir)

    def __str__(self) -> str:
        return f"{self.figures['state']}: {self.figures['model']}\n{table(self.figures, WIDTH)}"


def progress(state: State, at: float, in_flight: int = 0, last_error: str = "") -> Progress:
    """How far a session is that has this state."""
    sets = state.datasets.values()
    return Progress(
        at=at,
        works=sum(each.works for each in sets),
        answers=sum(each.ended.get(verdict, 0) for each in sets for verdict in ANSWERED),
        ended=sum(sum(each.ended.values()) for each in sets),
        output_tokens=sum(each.quota.kept for each in sets),
        usd=usd(state.money.settled),
        reserved_usd=usd(state.money.reserved),
        unknown_usd=usd(state.money.unknown),
        in_flight=in_flight,
        last_error=last_error,
    )


def result(config: RunConfig, ended: Ended, notes: tuple[str, ...]) -> Result:
    """How a session of that config ended."""
    return Result(
        dir=config.dir,
        ending=Ending(exit_code(ended.state)),
        reason=ended.reason,
        detail=ended.detail,
        figures=status(ended.state, running=False),
        notes=notes,
    )
