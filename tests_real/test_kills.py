"""A run over llama.cpp's native API, eyas and the server killed in its middle: nothing lost, nothing doubled, ids the engine's."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests import kit

from eyas.families.template import TemplateFamily
from eyas.records import Run
from eyas.types import FailureKind, Record, Verdict
from tests_real import runs
from tests_real.serving import Task, served
from tests_real.table import Table
from tests_real.truth import judge, rows

pytestmark = pytest.mark.timeout(1500)
SECONDS = 1200.0
_NOT_TAKEN = (FailureKind.CONNECT, FailureKind.RATE_LIMIT)
"""Failures of requests that the server never began: it was not there, or still loading its model."""
_TRIALS = 3
"""Requests of eyas's own: it tries a server before a session, and may when the server comes back."""
_LOG_BEHIND = 3
"""Tokens that the log of a killed server may lack: it is written by a thread of its own."""


@dataclass(frozen=True, slots=True)
class Killed:
    """What came of the run."""

    records: list[Record]
    answers: Counter[str]
    failures: Counter[FailureKind]
    verdicts: set[Verdict | None]
    tasks: list[Task]
    exported: dict[str, dict[str, Any]]
    wanted: int


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory, tokenizer: Path, prompts: int) -> Killed:
    """A run whose eyas dies after a quarter of its answers and is started again; after half of them the server does."""
    folder = tmp_path_factory.mktemp("kills")
    with served(folder) as server:
        runs.write_run(folder, "llamacpp", server.url, tokenizer, prompts)
        with runs.started(folder) as process:
            runs.until_answered(folder, process, prompts // 4, SECONDS)
            kit.kill(process)
        with runs.started(folder) as process:
            runs.until_answered(folder, process, prompts // 2, SECONDS)
            server.kill()
            server.start()
            runs.finish(process, SECONDS)
    tasks = server.tasks()
    run = Run(folder / "run")
    try:
        attempts = list(run.state.attempts.values())
        return Killed(
            records=list(run.records()),
            answers=Counter(each.work.key for each in attempts if each.answered),
            failures=Counter(each.settled.kind for each in attempts if each.settled and each.settled.kind),
            verdicts={known.verdict for known in run.state.works.values()},
            tasks=tasks,
            exported=runs.export(folder),
            wanted=prompts,
        )
    finally:
        run.close()


def test_every_prompt_has_an_answer_and_none_has_two(killed: Killed) -> None:
    """By the journal: all works are done, by one answered attempt each."""
    assert killed.verdicts == {Verdict.DONE}
    assert len(killed.records) == killed.wanted
    assert set(killed.answers.values()) == {1}


def test_only_what_the_kills_cut_off_was_asked_twice(killed: Killed) -> None:
    """By the server's log: a request for each prompt, those in flight at a kill once more, and the trials of two sessions."""
    began = [task for task in killed.tasks if task.ids]
    lost = killed.failures[FailureKind.LOST]
    assert lost <= 2 * runs.IN_FLIGHT
    assert killed.failures.keys() <= {FailureKind.LOST, *_NOT_TAKEN}
    assert killed.wanted <= len(began) <= killed.wanted + lost + _TRIALS
    assert {task.life for task in began} == {0, 1}


def test_every_answer_in_the_journal_is_one_that_the_server_gave(killed: Killed) -> None:
    """The ids of each answer are those of a request of its own in the server's log, the stop token included."""
    given = Counter(tuple(task.ids) for task in killed.tasks if task.ended)
    kept = Counter(record.completion.token_ids or () for record in killed.records)
    cut = [task.ids for task in killed.tasks if not task.life and not task.ended]
    for ids in (kept - given).elements():
        assert any(task == list(ids[: len(task)]) and len(ids) - len(task) <= _LOG_BEHIND for task in cut), ids


def test_every_row_is_the_engines(killed: Killed, tokenizer: Path) -> None:
    """The export: each label is `engine`, each row the prompt's ids and the engine's, its loss on the engine's alone."""
    family = TemplateFamily().load(tokenizer)
    assert len(killed.exported) == killed.wanted
    for record in killed.records:
        row, ids = killed.exported[record.work.key], list(record.completion.token_ids or ())
        prompt = family.prompt_ids(record.prompt.messages, (), False)
        assert row["metadata"]["label"] == "engine"
        assert row["input_ids"] == prompt + ids
        assert row["loss_mask"] == [0] * len(prompt) + [1] * len(ids)
        assert record.completion.usage is not None
        assert record.completion.usage.prompt_tokens == len(prompt)


def test_the_run_cost_nothing(killed: Killed) -> None:
    """A server of one's own: every cost is 0, none is unknown."""
    assert {record.cost for record in killed.records} == {0}


def test_engine_rows_are_the_truth(killed: Killed, tokenizer: Path, table: Table) -> None:
    """The same against the log by text and counts, for the table."""
    judged = judge(killed.records, killed.tasks, TemplateFamily().load(tokenizer))
    table.add(rows("`llamacpp`: ids", judged))
    assert [json.dumps(each.record.completion.content) for each in judged if each.wrong] == []
