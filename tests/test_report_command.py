"""`eyas report`: what it writes and where, that it loses no file of others, and that a watched page follows the run."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from eyas.cli import main
from eyas.cli.report import Places, follow
from eyas.errors import UsageError
from eyas.families import Loaded
from eyas.lock import lock
from eyas.report.document import Report
from eyas.survey import Survey, Wanted
from eyas.survey.tables import HEADS, tables
from eyas.types import Record, Work
from tests import exportkit, pagekit

Make = Callable[..., Record]


@pytest.fixture(scope="module")
def run(kimi_folder: Path, answer: Make, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of twelve answers and one whose provider's name is a formula."""
    evil = answer([" The"] * 9, [" ok"] * 9, work=Work("B3", f"{99:016x}"), provider="=cmd|'/c calc'!A1")
    records = [*exportkit.good(answer, range(12)), msgspec.structs.replace(evil, tag="@tag,1")]
    return exportkit.write_run(tmp_path_factory.mktemp("command") / "run", kimi_folder, records)


def eyas(*arguments: object) -> int:
    """The exit code of `eyas ARGUMENTS`."""
    with pytest.raises(SystemExit) as ended:
        main([str(each) for each in arguments])
    return int(ended.value.code or 0)


def test_a_page_is_written_to_the_current_folder(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`eyas report RUNDIR` writes report.html, says so on stderr, prints nothing, and does so again."""
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert eyas("report", run, "--workers", 1) == 0
        out, err = capsys.readouterr()
        assert out == ""
        assert "written to report.html: " in err
        assert "13 of 13 answers" in err
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert (tmp_path / "report.html").read_text(encoding="utf-8").lower().startswith("<!doctype html>")


def test_a_file_of_others_is_not_replaced(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A page or a table that is not ours stays, unless --force is given."""
    for option, name in (("--out", "page.html"), ("--csv", "days.csv")):
        other = tmp_path / name
        other.write_text("mine", encoding="utf-8")
        target = tmp_path if option == "--csv" else other
        assert eyas("report", run, option, target, "--workers", 1) == 2
        assert "--force" in capsys.readouterr().err
        assert other.read_text() == "mine"
        assert eyas("report", run, option, target, "--workers", 1, "--force") == 0
        assert other.read_text() != "mine"


def test_json_is_the_document(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--json prints the Report on stdout and writes no page unless --out is given."""
    assert eyas("report", run, "--json", "--workers", 1) == 0
    found = msgspec.json.decode(capsys.readouterr().out, type=Report)
    assert found.headline.answers == 13
    assert found.samples
    page = tmp_path / "p.html"
    assert eyas("report", run, "--json", "--out", page, "--no-text", "--workers", 1) == 0
    assert json.loads(capsys.readouterr().out)["samples"] == []
    assert page.exists()


def test_tables_hold_the_same_figures(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--csv writes every table with its heads; each can be read and has the figures of the document."""
    assert eyas("report", run, "--csv", tmp_path, "--json", "--workers", 1) == 0
    found = json.loads(capsys.readouterr().out)
    read: dict[str, list[dict[str, Any]]] = {
        path.name: list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))) for path in tmp_path.iterdir()
    }
    assert read.keys() == HEADS.keys()
    assert [float(row["settled_usd"]) for row in read["course.csv"]] == found["course"]["settled_usd"]
    assert sum(int(row["answers"]) for row in read["providers.csv"]) == 13
    steps = {step["step"]: step for step in found["yields"]["datasets"]["B3"]["steps"]}
    assert {r["step"]: int(r["tokens"]) for r in read["yield.csv"] if r["dataset"] == "B3"} == {
        name: step["tokens"] for name, step in steps.items()
    }
    assert sum(int(row["answers"]) for row in read["lengths.csv"] if row["kind"] == "prompt") == 13


def test_workers_are_a_table_too() -> None:
    """Of a run over many machines: one row a worker."""
    text = tables(pagekit.report(status={"datasets": {}, **pagekit.LED}))["workers.csv"]
    assert text.splitlines()[2:] == [
        "2,10.0.0.2,written off,14000,6100000,41.25,0.0,0",
        "3,10.0.0.3,away or at work,0,0,0.0,1.75,12",
    ]


def test_no_cell_is_a_formula(run: Path, kimi: Loaded) -> None:
    """Names that a spreadsheet would run begin with an apostrophe."""
    report = Survey([run], lambda: kimi, Wanted(workers=1)).report(1.0)
    text = tables(report)["providers.csv"]
    assert "\n\"'@tag,1\",'=cmd|'/c calc'!A1," in text
    for made in tables(report).values():
        assert not any(cell.startswith(("=", "+", "@")) for row in csv.reader(made.splitlines()) for cell in row)


def test_without_text_no_word_of_an_answer_is_in_any_file(run: Path, tmp_path: Path) -> None:
    """--no-text leaves out what prompts and answers say, in the page and in the tables."""
    assert eyas("report", run, "--csv", tmp_path, "--out", tmp_path / "p.html", "--no-text", "--workers", 1) == 0
    for path in tmp_path.iterdir():
        assert "Say 0000" not in path.read_text(encoding="utf-8")


def test_the_activity_of_the_api_stands_beside_our_books(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--activity fills the API's figures of the days that both have; a wrong file ends with exit code 2."""
    row = {"date": "1970-01-01", "model": exportkit.MODEL, "usage": 0.5, "requests": 3}
    (tmp_path / "a.json").write_text(json.dumps({"data": [row]}))
    assert eyas("report", run, "--json", "--activity", tmp_path / "a.json", "--workers", 1) == 0
    day = json.loads(capsys.readouterr().out)["reconciliation"]["days"][0]
    assert (day["api_requests"], day["api_usd"], day["requests"]) == (3, 0.5, 13)
    (tmp_path / "a.json").write_text("[3]")
    assert eyas("report", run, "--json", "--activity", tmp_path / "a.json") == 2
    assert "row 1" in capsys.readouterr().err


def test_watch_and_json_do_not_go_together(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One prints once, the other writes again and again."""
    assert eyas("report", run, "--json", "--watch") == 2
    assert "--watch" in capsys.readouterr().err


def test_a_watched_page_follows_the_run_to_its_end(run: Path, kimi: Loaded, tmp_path: Path) -> None:
    """While a process holds the run the page loads itself anew; the last one does not, and says how the run ended."""
    page = tmp_path / "report.html"
    pages: list[str] = []

    def looks() -> Iterator[None]:
        with lock(run):
            yield
            pages.append(page.read_text(encoding="utf-8"))
        yield
        raise AssertionError("it ends when the run has ended")

    survey = Survey([run], lambda: kimi, Wanted(workers=1))
    last = follow(survey, Places(page, None, stdout=False, force=False), 7.0, looks())
    assert 'content="7"' in pages[0]
    assert last.state != "running"
    assert 'http-equiv="refresh"' not in page.read_text(encoding="utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html"]


def test_a_watched_page_is_whole_when_nobody_looks_any_more(run: Path, kimi: Loaded, tmp_path: Path) -> None:
    """^C leaves a page that waits for nothing, of a run that goes on."""
    page = tmp_path / "report.html"

    def looks() -> Iterator[None]:
        yield
        raise KeyboardInterrupt

    with lock(run):
        survey = Survey([run], lambda: kimi, Wanted(workers=1))
        last = follow(survey, Places(page, None, stdout=False, force=False), 7.0, looks())
    assert last.state == "running"
    assert 'http-equiv="refresh"' not in page.read_text(encoding="utf-8")


def test_a_place_that_cannot_be_looked_at_is_said_before_the_work(tmp_path: Path) -> None:
    """A folder in place of the page is no report of ours."""
    with pytest.raises(UsageError, match="no report of eyas"):
        Places(tmp_path, None, stdout=False, force=False).check()
