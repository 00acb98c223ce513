"""The report of a real run, and of any other that is named, in a real browser."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import kit
from tests.pagebrowser import check, chromium, opened

pytestmark = pytest.mark.e2e

CHARTS = {"money", "speed", "flight", "errors", "tail", "coverage"}


def test_the_report_of_the_demo_stands_in_a_browser(tmp_path: Path) -> None:
    """What `eyas demo` writes at its end is silent, drawn and readable, and its samples open."""
    with chromium() as browser:
        ran = kit.eyas(tmp_path, "demo", "--out", ".", "--limit", "4")
        assert ran.returncode in (0, 4, 5), ran.stderr
        with opened(browser, tmp_path / "report.html", tmp_path) as tab:
            check(tab, CHARTS)
            assert tab.page.locator("#list li").count() > 0
            assert tab.page.locator(".tok").count() > 0


def test_a_report_that_is_named_stands_in_a_browser(tmp_path: Path) -> None:
    """The same checks for the report that EYAS_REPORT names, of the whole demo for example."""
    named = os.environ.get("EYAS_REPORT")
    if not named:
        pytest.skip("EYAS_REPORT names no report.html to look at")
    with chromium() as browser, opened(browser, Path(named), tmp_path) as tab:
        check(tab, CHARTS)
