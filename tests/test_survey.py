"""The figures of a report are those of export, of status and of the journal; nothing is counted in a second way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from eyas import config as configs
from eyas.errors import UsageError
from eyas.events import Corrected, Intent, SessionOpened, Settled
from eyas.export import Manifest, Options, export
from eyas.families import Loaded
from eyas.journal import Journal
from eyas.ledger import usd
from eyas.records import Run
from eyas.report.document import Report
from eyas.report.summary import status
from eyas.survey import Survey, Wanted
from eyas.survey.judged import BUDGET, weight
from eyas.types import NANO, FailureKind, Finish, Prices, Record, Verdict, Work
from tests import exportkit

Make = Callable[..., Record]
OWN = """\
[run]
dir = "."
[target]
model = "moonshotai/kimi-k2.5"
backend = "vllm"
base_url = "http://127.0.0.1:8000/v1"
tokenizer = {tokenizer}
[[datasets]]
name = "B3"
source = "B3.jsonl"
[[datasets]]
name = "B4"
source = "B4.jsonl"
"""
FREE: dict[type, dict[str, Any]] = {Intent: {"prices": Prices(0, 0), "reserved": 0}, Settled: {"seconds": 2.0}}
SIZES = (8_000, 16_000, 32_000, 64_000)


@pytest.fixture(scope="module")
def answers(answer: Make) -> list[Record]:
    """Good answers of two datasets, and some that a strict export leaves out or masks in part."""
    odd = [
        answer([" The"], [" ok"], counted=30, work=Work("B3", f"{100:016x}")),
        answer([" The"], [" ok"], counted=None, streamed=False, work=Work("B3", f"{101:016x}")),
        answer([" The", " user"], finish=Finish.LENGTH, work=Work("B4", f"{102:016x}"), provider="Q"),
        answer([" The", " \ufffd"], work=Work("B4", f"{103:016x}")),
    ]
    return exportkit.good(answer, range(60)) + odd


@pytest.fixture(scope="module")
def run(kimi_folder: Path, answers: list[Record], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with these answers, an attempt that failed, one whose cost came later and one whose cost is unknown."""
    more = [
        (Intent(50.0, 900, Work("B3", f"{0:016x}"), 2, "q", Prices(1, 1), 40), b"{}"),
        (Settled(51.0, 900, Verdict.AGAIN, 0, kind=FailureKind.RATE_LIMIT, detail="wait, says the API"), None),
        (Intent(60.0, 901, Work("B3", f"{1:016x}"), 2, "q", Prices(1, 1), 50), b"{}"),
        (Settled(61.0, 901, Verdict.UNKNOWN, None, kind=FailureKind.LOST, detail="the line broke"), None),
        (Corrected(62.0, 901, 33, counts=(3, 4, None)), None),
        (Intent(90_000.0, 902, Work("B4", f"{2:016x}"), 2, "q", Prices(1, 1), 70), b"{}"),
        (Settled(90_001.0, 902, Verdict.UNKNOWN, None, kind=FailureKind.LOST, detail="the line broke again"), None),
    ]
    folder = tmp_path_factory.mktemp("survey") / "run"
    return exportkit.write_run(folder, kimi_folder, answers, more=more)


def surveyed(folders: list[Path], kimi: Loaded, **wanted: Any) -> Report:
    """The report of some runs, judged in this process."""
    return Survey(folders, lambda: kimi, Wanted(**{"workers": 1, **wanted})).report(99_999.0)


def exported(folders: list[Path], kimi: Loaded, out: Path, **options: Any) -> Manifest:
    """The manifest of a strict export of them."""
    return export(folders, lambda: kimi, Options(out, **{"workers": 1, **options}))


@pytest.fixture(scope="module")
def report(run: Path, kimi: Loaded) -> Report:
    """The report of the run."""
    return surveyed([run], kimi)


@pytest.fixture(scope="module")
def manifest(run: Path, kimi: Loaded, tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    """The manifest of its strict export."""
    return exported([run], kimi, tmp_path_factory.mktemp("rows") / "out", draft_vocab=SIZES)


def test_the_yield_table_is_that_of_the_export(report: Report, manifest: Manifest) -> None:
    """Steps, losses and their reasons are equal, number by number."""
    assert report.yields == msgspec.to_builtins(manifest.yields)
    assert report.headline.yield_share == manifest.yields.total.share
    assert report.headline.answers == sum(each.answers for each in manifest.datasets.values())


def test_labels_and_supervised_tokens_are_those_of_the_export(report: Report, manifest: Manifest) -> None:
    """By dataset, and by endpoint as by provider."""
    labels = {name: {label: n.answers for label, n in each.labels.items()} for name, each in manifest.datasets.items()}
    assert report.labels == labels
    supervised = sum(each.supervised_tokens for each in manifest.datasets.values())
    assert report.headline.supervised_tokens == supervised == sum(each.supervised_tokens for each in report.endpoints)
    assert sum(sum(each.labels.values()) for each in report.endpoints) == report.headline.answers


def test_coverage_is_that_of_the_export(report: Report, manifest: Manifest) -> None:
    """The shares are those that `--draft-vocab` tells."""
    told = manifest.draft_vocab
    assert report.coverage is not None
    assert report.coverage.sizes == list(SIZES)
    assert report.coverage.total == list(told["coverage"]["all"].values())
    assert report.coverage.datasets == {
        name: list(each.values()) for name, each in told["coverage"]["datasets"].items()
    }
    assert (report.coverage.distinct, report.coverage.vocab_size) == (told["distinct"], told["vocab_size"])


def test_status_and_money_are_those_of_the_state(report: Report, run: Path) -> None:
    """What `eyas status --json` prints stands in it, and the headline and the course end there."""
    opened = Run(run)
    state = opened.state
    opened.close()
    assert report.status == status(state, running=False)
    assert report.headline.paid_usd == usd(state.money.settled) == report.course.settled_usd[-1]
    assert report.headline.unknown_usd == usd(70) == report.course.unknown_usd[-1]
    assert report.headline.wasted_usd == usd(33)
    assert report.course.answered[-1] == report.headline.answers


def test_every_answer_is_in_every_count(report: Report) -> None:
    """Histograms, finish reasons and labels hold each answer once."""
    for name, each in report.lengths.items():
        total = sum(report.labels[name].values())
        assert sum(report.finishes[name].values()) == total
        for histogram in (each.prompt, each.reasoning, each.answer):
            assert sum(histogram.counts) == total
            assert len(histogram.edges) == len(histogram.counts) + 1


def test_days_hold_all_money_and_say_how_it_became_known(report: Report) -> None:
    """The days of UTC sum to the books; costs that came later and those that did not come are told apart."""
    found = report.reconciliation
    assert [day.day for day in found.days] == ["1970-01-01", "1970-01-02"]
    assert sum(round(day.usd * NANO) for day in found.days) == round(report.headline.paid_usd * NANO)
    assert [day.unknown_usd for day in found.days] == [0.0, usd(70)]
    assert found.known_by == {"answer": 64, "lookup": 1, "written_off": 0, "unknown": 1}
    assert "--activity" in found.source


def test_what_went_wrong_is_told_in_words(report: Report, run: Path, kimi: Loaded) -> None:
    """Each kind with its count, its dollars and its last words; without text the words are left out."""
    told = {each.kind: (each.count, each.usd, each.example) for each in report.troubles}
    assert told == {"lost": (2, usd(33), "the line broke again"), "rate_limit": (1, 0.0, "wait, says the API")}
    bare = surveyed([run], kimi, text=False)
    assert {each.example for each in bare.troubles} == {""}
    assert bare.samples == []


def test_samples_are_of_every_kind_and_within_the_budget(report: Report) -> None:
    """Every (dataset, provider, label, finish) can be read, and the same answers are chosen each time."""
    kinds = {(each.dataset, each.label, each.finish) for each in report.samples}
    assert {(name, label) for name, each in report.labels.items() for label in each} == {kind[:2] for kind in kinds}
    assert sum(map(weight, report.samples)) <= BUDGET
    first = report.samples[0]
    assert first.tokens
    assert first.messages[0]["content"].startswith("Say ")


def test_two_runs_are_one_report(run: Path, kimi: Loaded, kimi_folder: Path, answer: Make, tmp_path: Path) -> None:
    """Their figures are those of one export of both, whatever their order; what both have counts once."""
    other = exportkit.write_run(tmp_path / "other", kimi_folder, exportkit.good(answer, range(40, 90)))
    found = surveyed([run, other], kimi)
    both = exported([other, run], kimi, tmp_path / "rows")
    assert found.yields == msgspec.to_builtins(both.yields)
    turned = surveyed([other, run], kimi)
    assert (turned.yields, turned.labels, turned.headline) == (found.yields, found.labels, found.headline)
    assert found.headline.answers == 94
    assert any(str(both.duplicates) in note for note in found.notes)
    assert found.status["money"]["settled"] == pytest.approx(found.headline.paid_usd)
    assert found.status["datasets"]["B3"]["done"] == report_done(run, "B3") + report_done(other, "B3")


def report_done(folder: Path, name: str) -> int:
    """Answers of a dataset that are done, as status says."""
    run = Run(folder)
    run.close()
    return status(run.state, running=False)["datasets"][name]["done"]


def test_runs_of_different_targets_are_refused(run: Path, kimi: Loaded, kimi_folder: Path, tmp_path: Path) -> None:
    """They are no one report; the sentence says what differs."""
    other = exportkit.write_run(tmp_path / "other", kimi_folder, [], model="moonshotai/kimi-k2.6")
    with pytest.raises(UsageError, match="cannot be one set"):
        surveyed([run, other], kimi)


def test_a_run_without_answers_is_a_report(kimi_folder: Path, kimi: Loaded, tmp_path: Path) -> None:
    """Nothing was asked: all parts are there and empty, no tokenizer is loaded, nothing is divided."""
    folder = exportkit.write_run(tmp_path / "run", kimi_folder, [])

    def never() -> Loaded:
        raise AssertionError("no tokenizer is needed")

    found = Survey([folder], never, Wanted()).report(1.0)
    assert (found.headline.answers, found.headline.yield_share, found.headline.usd_per_m_supervised) == (0, None, None)
    assert (found.coverage, found.samples, found.lengths, found.tail.shares) == (None, [], {}, [])


def test_a_journal_without_tables_is_a_report(kimi_folder: Path, kimi: Loaded, tmp_path: Path) -> None:
    """A run killed before its first event has no course and harms nothing."""
    exportkit.open_run(tmp_path / "run", kimi_folder, ["D"]).close()
    found = surveyed([tmp_path / "run"], kimi)
    assert (found.began, found.course.at, found.state) == (0.0, [], "stopped")


def test_no_run_is_said(kimi: Loaded, tmp_path: Path) -> None:
    """A folder that holds no run is named, with what to give."""
    with pytest.raises(UsageError, match="holds no run"):
        surveyed([tmp_path], kimi)


async def resumed(folder: Path, records: list[Record]) -> None:
    """A second session brings more answers, and is killed."""
    with closing(Journal(folder)) as journal:
        journal.write(SessionOpened(10.0, exportkit.MODEL, None, {"B3": None, "B4": None, "D": None}))
        await exportkit.append(journal, records, 11)


def test_a_report_reads_on(kimi_folder: Path, kimi: Loaded, answer: Make, tmp_path: Path) -> None:
    """Made again it takes in what came since; what was not judged anew says how old it is."""
    folder = exportkit.write_run(tmp_path / "run", kimi_folder, exportkit.good(answer, range(10)))
    survey = Survey([folder], lambda: kimi, Wanted(workers=1))
    before = survey.report(100.0)
    asyncio.run(resumed(folder, exportkit.good(answer, range(10, 16))))
    between = survey.report(130.0, anew=False)
    assert between.course.answered[-1] == 16
    assert between.headline.answers == before.headline.answers == 10
    assert any("30 s older" in note for note in between.notes)
    after = survey.report(140.0)
    assert after.headline.answers == 16
    assert not any("older" in note for note in after.notes)


def test_a_run_of_ones_own_servers_has_no_dollars(
    kimi_folder: Path, kimi: Loaded, answer: Make, tmp_path: Path
) -> None:
    """It names no API: no cap, no price of a token, and nothing to reconcile; tokens and days are there."""
    folder = tmp_path / "run"
    text = OWN.format(tokenizer=json.dumps(str(kimi_folder)))
    folder.mkdir()
    configs.freeze(configs.parse(text, folder / "RUN.toml"), text)
    asyncio.run(answered(folder, [msgspec.structs.replace(each, cost=0) for each in exportkit.good(answer, range(8))]))
    found = surveyed([folder], kimi)
    assert (found.backend, found.headline.paid_usd, found.headline.yield_share) == ("local", 0.0, None)
    assert (found.course.cap_usd[-1], found.reconciliation.source) == (
        None,
        "No API was asked: the servers were the user's own.",
    )
    assert found.endpoints[0].usd_per_m_supervised == 0.0
    assert found.reconciliation.days[0].requests == 8


async def answered(folder: Path, records: list[Record]) -> None:
    """A session in which a server of the user's gave these answers."""
    with closing(Journal(folder)) as journal:
        journal.write(SessionOpened(10.0, exportkit.MODEL, None, {"B3": None, "B4": None}))
        for number, record in enumerate(records, 1):
            journal.write(*exportkit.prompt(record.prompt))
            for event, payload in exportkit.answered(record, number):
                journal.write(msgspec.structs.replace(event, **FREE.get(type(event), {})), payload)
        await journal.flush()
