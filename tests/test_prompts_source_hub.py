"""Sets of the hub: how they are written, what is asked of `datasets`, and one sentence for each way it fails."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from eyas.errors import UsageError
from eyas.prompts.read import BadRow, Row, rows
from eyas.prompts.source.hub import HubSet, parse


class DatasetsError(Exception):
    """The base of errors of `datasets`."""


class DatasetNotFoundError(DatasetsError, FileNotFoundError):
    """What `datasets` raises for a set that is not there, or gated."""


class Library(SimpleNamespace):
    """Stands where `datasets` is imported: gives records, fails as it is told to, and keeps what it was asked."""

    def __init__(self, records: list[Any]) -> None:
        super().__init__(exceptions=SimpleNamespace(DatasetsError=DatasetsError), asked=[])
        self._records = records

    def load_dataset(self, *names: str | None, **options: Any) -> Iterator[Any]:
        self.asked.append((names, options))
        return self._given()

    def _given(self) -> Iterator[Any]:
        for record in self._records:
            if isinstance(record, Exception):
                raise record
            yield record


def install(monkeypatch: pytest.MonkeyPatch, records: list[Any]) -> Library:
    """Puts a library in the place of `datasets`."""
    library = Library(records)
    monkeypatch.setitem(sys.modules, "datasets", library)
    return library


SPECS = {
    "hub:org/name": HubSet("org/name", None, None, "train"),
    "hub:org/name:test": HubSet("org/name", None, None, "test"),
    "hub:org/name@main": HubSet("org/name", None, "main", "train"),
    "hub:org/name@refs/convert/parquet:train_sft": HubSet("org/name", None, "refs/convert/parquet", "train_sft"),
    "hub:org/na.me-2/socratic@abc123:test": HubSet("org/na.me-2", "socratic", "abc123", "test"),
}


@pytest.mark.parametrize(("source", "wanted"), SPECS.items(), ids=SPECS)
def test_a_set_of_the_hub_is_named(source, wanted):
    """Set, configuration, revision and split are read from the source; the split is train if none is named."""
    assert parse(source) == wanted


@pytest.mark.parametrize("source", ["hub:", "hub:name", "hub:org/", "hub:org/name@", "hub:org/name:", "hub:a b/c"])
def test_what_is_no_set_is_refused(source):
    """What is not written so is refused with how to write it."""
    with pytest.raises(UsageError, match="write hub:org/name"):
        list(rows(source, Path()))


def test_records_are_streamed_rows(monkeypatch):
    """Records come as rows from 1: nulls are left out, times are text, media are left out, and all is asked as a stream."""
    message = {"role": "user", "content": "hi", "tool_calls": None}
    when = datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC)
    library = install(monkeypatch, [{"messages": [message], "x": None, "when": when, "picture": object()}, {"n": 1}])
    assert list(rows("hub:org/name/conf@v1:test", Path())) == [
        Row(
            {"messages": [{"role": "user", "content": "hi"}], "when": "2024-01-02T00:00:00+00:00"},
            "hub:org/name/conf@v1:test",
            1,
        ),
        Row({"n": 1}, "hub:org/name/conf@v1:test", 2),
    ]
    assert library.asked == [(("org/name", "conf"), {"revision": "v1", "split": "test", "streaming": True})]


def test_rows_that_cannot_be_used_are_named(monkeypatch):
    """A record that is too long or nests too deep is a bad row; the others stand."""
    deep: Any = "x"
    for _ in range(200):
        deep = [deep]
    install(monkeypatch, [{"a": "x" * (17 << 20)}, {"a": deep}, {"a": 1}])
    long, nested, good = rows("hub:org/name", Path())
    assert isinstance(long, BadRow)
    assert "longer" in long.reason
    assert isinstance(nested, BadRow)
    assert "nests deeper" in nested.reason
    assert good == Row({"a": 1}, "hub:org/name", 3)


FAILURES = {
    "gated": (DatasetNotFoundError("Dataset 'org/name' is a gated dataset on the Hub."), "accept its terms on https"),
    "absent": (DatasetNotFoundError("Dataset 'org/name' doesn't exist on the Hub"), "check name and revision"),
    "no network": (ConnectionError("Couldn't reach 'org/name' on the Hub"), "check the network"),
    "no split": (
        ValueError("Bad split: x. Available splits: ['train']"),
        "name one of its splits after the last colon",
    ),
    "no configuration": (ValueError("Config name is missing. Please pick one"), "write hub:org/name/CONFIG:train"),
    "a script": (RuntimeError("Dataset scripts are no longer supported"), "fetch the files and name their folder"),
}


@pytest.mark.parametrize(("error", "remedy"), FAILURES.values(), ids=FAILURES)
def test_a_failure_is_one_sentence(monkeypatch, error, remedy):
    """What `datasets` raises, at once or amid the rows, is one sentence with what it said and what to do."""
    install(monkeypatch, [{"a": 1}, error])
    got: list[Any] = []
    with pytest.raises(UsageError) as caught:
        got.extend(rows("hub:org/name", Path()))
    assert len(got) == 1
    said = str(caught.value)
    assert said.startswith("hub:org/name: ")
    assert remedy in said
    assert str(error)[:20] in said
    assert said.endswith("(1 rows were read before that)")


def test_without_datasets_the_extra_is_named(monkeypatch):
    """Where `datasets` is not installed, the error says what to install."""
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UsageError, match=r"pip install 'eyas\[hub\]'"):
        list(rows("hub:org/name", Path()))
