"""All that a report tells of some runs, gathered: read on where they go on, judged anew only when that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from eyas import __version__
from eyas import config as configs
from eyas.config import RunConfig
from eyas.export import Options
from eyas.export.merge import common
from eyas.families import Loaded
from eyas.journal import Store
from eyas.ledger import usd
from eyas.lock import is_locked
from eyas.report.document import Headline, Report
from eyas.report.summary import status
from eyas.report.watched import outlook
from eyas.survey.activity import HINT, Activity
from eyas.survey.activity import read as read_activity
from eyas.survey.books import paid, reconciliation, tail, troubles
from eyas.survey.course import course
from eyas.survey.endpoints import endpoints, per_million
from eyas.survey.history import History, active
from eyas.survey.judged import Judged, judge
from eyas.survey.together import together

OnLength = Literal["keep", "drop"]

_NO_API = "No API was asked: the servers were the user's own."
_LENGTHS_DIFFER = "The runs differ in [budget] on_length: answers that ended at max_tokens are counted as `eyas export --on-length keep` does."


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a report is to hold.

    Attributes:
        text: whether samples and the words of errors are wanted.
        activity: a file with what the API says was used.
        workers: processes that judge the answers; None: one a processor, fewer for few answers.
    """

    text: bool = True
    activity: Path | None = None
    workers: int | None = None


class Survey:
    """Some run directories, looked at once or again and again while they go on."""

    def __init__(self, folders: Sequence[Path], load: Callable[[], Loaded], wanted: Wanted) -> None:
        """Look at nothing yet.

        Args:
            folders: the run directories; one given twice counts once.
            load: loads the family of their model; called once in each process, so it must be picklable unless workers is 1.
            wanted: what the report is to hold.

        Raises:
            UsageError: no run directory, runs of different targets, or a file of the API's figures that cannot be read.
            StorageError: a run could not be read.
        """
        self._folders = tuple(dict.fromkeys(folder.resolve() for folder in folders))
        for folder in self._folders:
            Store(folder).close()  # says so where there is no run
        self._configs = [configs.frozen(folder) for folder in self._folders]
        self._target = common(list(zip(self._folders, self._configs, strict=True)))
        self._load, self._wanted = load, wanted
        asked = _asked(self._configs)
        self._activity: Activity | None = read_activity(wanted.activity, asked) if wanted.activity else None
        self._history = History(self._folders)
        self._judged: Judged | None = None
        self._judged_at = 0.0

    @property
    def running(self) -> bool:
        """Whether a living process holds one of the run directories."""
        return any(map(is_locked, self._folders))

    def report(self, now: float, *, anew: bool = True) -> Report:
        """The report as of now.

        Args:
            now: wall seconds.
            anew: whether the answers are judged again; if not, what needs that stays as it was.

        Raises:
            StorageError: a run could not be read.
        """
        running = [is_locked(folder) for folder in self._folders]
        if anew or self._judged is None:
            self._judged, self._judged_at = self._judge(), now
        judged = self._judged
        self._history.read()
        states, sessions = self._history.states, self._history.sessions
        figures = together([self._status(place, running[place], now) for place in range(len(states))])
        stretches = active(sessions)
        bills = _backend(self._configs) != "local"
        return Report(
            made_at=now,
            eyas=__version__,
            runs=[_name(folder) for folder in self._folders],
            state=figures["state"],
            model=self._target.model,
            family=self._target.family,
            backend=_backend(self._configs),
            began=min((begin for begin, _ in sessions), default=0.0),
            headline=self._headline(judged, figures, sum(end - begin for begin, end in stretches)),
            status=figures,
            yields=msgspec.to_builtins(judged.yields),
            course=course(self._history.moments, sessions),
            endpoints=endpoints(states, judged.tags),
            lengths=judged.lengths,
            finishes=judged.finishes,
            labels=judged.labels,
            tail=tail(states, stretches),
            reconciliation=reconciliation(states, self._activity, HINT if bills else _NO_API),
            coverage=judged.coverage,
            troubles=troubles(states, text=self._wanted.text),
            samples=judged.samples,
            notes=self._notes(judged, now),
        )

    def _judge(self) -> Judged:
        on_length = _on_length(self._configs) or "keep"
        options = Options(Path(), on_length=on_length, workers=self._wanted.workers)
        return judge(self._folders, self._load, options, text=self._wanted.text)

    def _status(self, place: int, running: bool, now: float) -> dict[str, Any]:
        state = self._history.states[place]
        predicted = outlook(state, self._configs[place], now) if running else None
        return status(state, running=running, predicted=predicted)

    def _headline(self, judged: Judged, figures: dict[str, Any], seconds: float) -> Headline:
        table = judged.yields.total
        steps = {step.step: step for step in table.steps}
        settled, wasted, unknown = paid(self._history.states)
        tokens = sum(known["output_tokens"] for known in figures["datasets"].values())
        return Headline(
            prompts=steps["prompts"].rows,
            answers=steps["answers"].rows,
            output_tokens=tokens,
            supervised_tokens=steps["supervised"].tokens,
            paid_usd=usd(settled),
            wasted_usd=usd(wasted),
            unknown_usd=usd(unknown),
            yield_share=table.share if table.steps[0].usd else None,
            usd_per_m_supervised=per_million(settled, steps["supervised"].tokens),
            tokens_per_second=round(tokens / seconds, 3) if seconds else None,
            seconds=round(seconds, 3),
        )

    def _notes(self, judged: Judged, now: float) -> list[str]:
        notes = [_LENGTHS_DIFFER] if _on_length(self._configs) is None else []
        if judged.duplicates:
            notes.append(
                f"{judged.duplicates} answers are left out of the yield: another run's stands for the same work."
            )
        if self._judged_at < now:
            old = round(now - self._judged_at)
            notes.append(f"Yield, labels, lengths, coverage and samples are {old} s older than the other figures.")
        return [*notes, *judged.warnings]


def _asked(found: Sequence[RunConfig]) -> str:
    """The model's name at the API, as the first run asks for it."""
    config = found[0]
    there = config.fallback
    if not config.target.bills and there is not None and there.bills:
        return there.served_as or config.target.model
    return config.target.asked_as


def _backend(found: Sequence[RunConfig]) -> str:
    services = [service for config in found for service in (config.target, config.fallback) if service is not None]
    bills = {service.bills for service in services}
    return "both" if len(bills) > 1 else "api" if True in bills else "local"


def _on_length(found: Sequence[RunConfig]) -> OnLength | None:
    """What export does with answers that ended at max_tokens; None where the runs differ."""
    said: set[OnLength] = {"drop" if config.budget.on_length == "drop" else "keep" for config in found}
    return said.pop() if len(said) == 1 else None


def _name(folder: Path) -> str:
    """A run directory as its user knows it: its last two names, which say nothing of the machine."""
    return "/".join(folder.parts[-2:]).lstrip("/")
