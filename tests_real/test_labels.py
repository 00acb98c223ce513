"""Text answers of a real model: what eyas's labels say of their ids, against the ids that were sampled."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from bench.truth import PROVEN

from eyas.families.template import TemplateFamily
from tests_real import runs
from tests_real.serving import served
from tests_real.table import Table
from tests_real.truth import Judged, encoded_again, judge, rows

pytestmark = pytest.mark.timeout(1500)
SECONDS = 1200.0
KNOWN = 0.97
"""Of the answers, at least this share must be found in the server's log by text and counts."""
ROUTES = {
    "`openai`: streamed": {},
    "`openai`: streamed, logprobs": {"logprobs": True, "top_logprobs": 1},
}


@dataclass(frozen=True, slots=True)
class Answers:
    """A run over one route."""

    judged: list[Judged]
    exported: dict[str, list[int]]
    wanted: int


@pytest.fixture(scope="module", params=ROUTES)
def answers(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    tokenizer: Path,
    prompts: int,
    table: Table,
) -> Answers:
    """The answers of a route beside their truth, the server killed in mid-run; the route's lines go to the table."""
    folder, route = tmp_path_factory.mktemp("labels"), str(request.param)
    family = TemplateFamily().load(tokenizer)
    with served(folder) as server:
        sampling = {"top_k": 0, "min_p": 0.0}
        runs.write_run(folder, "openai", f"{server.url}/v1", tokenizer, prompts, **sampling, **ROUTES[route])
        with runs.started(folder) as process:
            runs.until_answered(folder, process, prompts // 2, SECONDS)
            server.kill()
            server.start()
            runs.finish(process, SECONDS)
    judged = judge(runs.records(folder), server.tasks(), family)
    table.add(rows(route, judged))
    if not ROUTES[route]:
        table.add([encoded_again(judged, family)])
    exported = {key: row["input_ids"] for key, row in runs.export(folder).items()}
    return Answers(judged, exported, prompts)


def test_every_prompt_has_an_answer_whose_truth_is_known(answers: Answers) -> None:
    """Nothing below holds because nothing was there: all are answered, whole, and the log tells the ids of nearly all."""
    assert len(answers.judged) == answers.wanted
    assert all(each.record.completion.cut is None for each in answers.judged)
    assert sum(each.truth is not None for each in answers.judged) >= KNOWN * answers.wanted


def test_no_proven_label_is_wrong(answers: Answers) -> None:
    """`engine`, `logprobs` and `streamed` rows have the sampled ids, every one of them."""
    wrong = [
        (each.sequence.record_id, each.sequence.label, each.truth, each.sequence.completion_ids)
        for each in answers.judged
        if each.wrong and each.sequence.label in PROVEN
    ]
    assert not wrong, f"{len(wrong)}, such as {wrong[:2]}"


def test_most_answers_are_proven(answers: Answers) -> None:
    """Labels are not right by saying nothing: more than half of the answers have a sure one."""
    proven = sum(each.sequence.label in PROVEN for each in answers.judged)
    assert proven > len(answers.judged) / 2


def test_the_export_holds_the_same_ids(answers: Answers) -> None:
    """What is judged here is what a trainer reads."""
    for each in answers.judged:
        ids = [*each.sequence.prompt_ids, *each.sequence.completion_ids]
        assert answers.exported.get(each.sequence.record_id, ids) == ids
    assert answers.exported
