"""What the tests share: the tokenizer folder made from the model's file, and how many prompts a run has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests_real.gguf import model_file, write_tokenizer
from tests_real.table import Table

_TABLE = Table()


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model's tokenizer, in the hub's layout."""
    return write_tokenizer(model_file(), tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture(scope="session")
def prompts() -> int:
    """How many prompts each run has: REAL_PROMPTS, 200 unless it is set."""
    return int(os.environ.get("REAL_PROMPTS", "200"))


@pytest.fixture(scope="session")
def table() -> Table:
    """Takes the lines that the session prints at its end."""
    return _TABLE


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table."""
    if _TABLE.markdown:
        terminalreporter.write_line("")
        terminalreporter.write_line(_TABLE.markdown)
