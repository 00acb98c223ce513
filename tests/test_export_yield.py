"""The yield table adds up, and habits are learned from the same few answers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import msgspec
import pytest

from eyas.events import AnyEvent, Intent
from eyas.export import Options, export, learn_habits
from eyas.export import work as chunks
from eyas.exporters.yields import STEPS, Yield
from eyas.families import Loaded
from eyas.journal import Payload
from eyas.records import Ref, Run
from eyas.types import FailureKind, Finish, Prices, Prompt, Record, Verdict, Work
from tests import exportkit

Make = Callable[..., list[Record]]


@pytest.fixture(scope="module")
def make(answer: Callable[..., Record]) -> Make:
    """Good answers to the prompts of these numbers."""
    return partial(exportkit.good, answer)


@pytest.fixture(scope="module")
def here(kimi: Loaded) -> Callable[[], Loaded]:
    """The family of this process, already loaded."""
    return lambda: kimi


def test_the_yield_table_adds_up(
    answer: Callable[..., Record],
    make: Make,
    kimi: Loaded,
    here: Callable[[], Loaded],
    kimi_folder: Path,
    tmp_path: Path,
) -> None:
    """From step to step rows, tokens and dollars go down by just the losses that are named."""
    run = exportkit.write_run(tmp_path / "run", kimi_folder, _odd(answer, make, kimi), more=_unanswered())
    options = Options(tmp_path / "out", workers=1, max_length=24, min_loss_tokens=3, on_length="drop")
    manifest = export([run], here, options)
    table = manifest.yields.total
    _adds_up(table)
    for each in manifest.yields.datasets.values():
        _adds_up(each)
    assert [step.rows for step in table.steps] == [27, 24, 22, 21, 20, 20]
    assert {(loss.step, loss.reason, loss.rows) for loss in table.losses if loss.rows} == {
        ("answers", "refused", 1),
        ("answers", "failed: lost", 1),
        ("answers", "not asked yet", 1),
        ("label", "label mismatch", 1),
        ("label", "label near", 1),
        ("kept", "ended at max_tokens", 1),
        ("max_length", "no supervised token", 1),
    }
    money = {loss.reason: (loss.requests, round(loss.usd * 1e9)) for loss in table.losses if loss.requests}
    assert money == {
        "failed: lost": (1, 70),
        "waste: the work was asked again": (1, 300),
        "outcome not known; run eyas reconcile": (1, exportkit.RESERVED),
    }
    assert round(table.steps[0].usd * 1e9) == 24 * 1000 + 70 + 300 + exportkit.RESERVED
    kept = manifest.datasets
    assert table.steps[-1].tokens == sum(each.supervised_tokens for each in kept.values())
    assert 0 < table.share < 1


def _odd(answer: Callable[..., Record], make: Make, kimi: Loaded) -> list[Record]:
    long_prompt = answer([" The"] * 9, work=Work("D", "f" * 16))
    question = {"role": "user", "content": "Say it again. " * 30}
    prompt = msgspec.structs.replace(long_prompt.prompt, messages=(question,))
    usage = msgspec.structs.replace(
        long_prompt.completion.usage, prompt_tokens=kimi.count_prompt((question,), (), thinking=True)
    )
    return [
        *make(range(20)),
        answer([" The"], [" ok"], counted=30, work=Work("D", "a" * 16)),
        answer([" The", " user"], [" ok"], counted=1, work=Work("D", "b" * 16)),
        answer([" The", " user"], finish=Finish.LENGTH, work=Work("D", "c" * 16)),
        msgspec.structs.replace(
            long_prompt,
            prompt=prompt,
            completion=msgspec.structs.replace(long_prompt.completion, usage=usage),
        ),
    ]


def _unanswered() -> list[tuple[AnyEvent, Payload]]:
    """Works that were refused, lost, or never asked; waste before an answer, and an unknown outcome after one."""
    prompts = [Prompt(name * 16, "D", ({"role": "user", "content": name},)) for name in "123"]
    events: list[tuple[AnyEvent, Payload]] = [exportkit.prompt(each) for each in prompts]
    ends = (
        (Work("D", "1" * 16), Verdict.REFUSED, 0, FailureKind.REFUSED),
        (Work("D", "2" * 16), Verdict.FAILED, 70, FailureKind.LOST),
        (Work("D", "a" * 16), Verdict.AGAIN, 300, FailureKind.EMPTY),
        (Work("D", "b" * 16), Verdict.AGAIN, None, FailureKind.LOST),
    )
    for number, (work, verdict, cost, kind) in enumerate(ends, 100):
        end = msgspec.structs.replace(exportkit.settled(number, verdict, cost), kind=kind)
        events += [(Intent(0.0, number, work, 2, "p", Prices(1, 1), exportkit.RESERVED), b"{}"), (end, None)]
    return events


def _adds_up(table: Yield) -> None:
    assert [step.step for step in table.steps] == list(STEPS)
    for before, after in zip(table.steps, table.steps[1:], strict=False):
        losses = [loss for loss in table.losses if loss.step == after.step]
        assert before.rows - sum(loss.rows for loss in losses) == after.rows
        assert before.usd - sum(loss.usd for loss in losses) == pytest.approx(after.usd, abs=1e-12)
        if before.step != "prompts":
            assert before.tokens - sum(loss.tokens for loss in losses) == after.tokens


def test_habits_are_learned_from_the_same_few_answers_of_each_provider() -> None:
    """Of each provider and mode at most 500, chosen by their works alone; where nobody said who answered, by endpoint."""

    def ref(number: int, provider: str, tag: str, thinking: bool = True) -> Ref:
        work = Work("B3", f"{number:016x}")
        return Ref(0, work, 1, 2, number, tag, 1, None, provider, "", Verdict.DONE, thinking)

    refs = [ref(n, ("P", "")[n % 2], f"tag{n % 4}") for n in range(4000)]
    refs += [ref(n, "P", "p", thinking=False) for n in range(4000, 4010)]
    chosen = chunks.sample(refs)
    assert len(chosen) == 500 + 2 * 500 + 10
    assert chosen == chunks.sample(refs[::-1])


def test_show_learns_what_export_learns(
    make: Make, kimi: Loaded, here: Callable[[], Loaded], kimi_folder: Path, tmp_path: Path
) -> None:
    """The habits in the manifest are those that one run's records give."""
    run = exportkit.write_run(tmp_path / "run", kimi_folder, make(range(40)))
    manifest = export([run], here, Options(tmp_path / "out", workers=1))
    with closing(Run(run)) as known:
        assert learn_habits(known.records, kimi, lambda _: True) == manifest.habits
