"""The report of a real run, and of any other that is named, in a real browser."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import kit
from tests.pagebrowser import check, chromium, opened

pytestmark = pytest.mark.e2e

CHARTS = {"money", "speed", "flight", "errors", "tail", "coverage"}


def test_the_report_of_a_run_stands_in_a_browser(tmp_path: Path, kimi_folder: Path) -> None:
    """What `eyas report` writes of a run against the simulator is silent, drawn and readable, and its samples open."""
    with chromium() as browser:
        with kit.simulator(
            kimi_folder, "rough", tps=400, ttft=0.05, length_median=60, length_sigma=0.5, slots=0
        ) as sim:
            kit.write_run(tmp_path, sim, kimi_folder, 40, in_flight=20)
            ran = kit.eyas(tmp_path, "run", "RUN.toml", "--yes", "--progress", "none")
        assert ran.returncode in (0, 4, 5), ran.stderr
        made = kit.eyas(tmp_path, "report", "run", "--workers", "1")
        assert made.returncode == 0, made.stderr
        with opened(browser, tmp_path / "report.html", tmp_path) as tab:
            check(tab, CHARTS)
            assert tab.page.locator("#list li").count() > 0
            assert tab.page.locator(".tok").count() > 0


def test_a_report_that_is_named_stands_in_a_browser(tmp_path: Path) -> None:
    """The same checks for the report that EYAS_REPORT names, of the demo for example."""
    named = os.environ.get("EYAS_REPORT")
    if not named:
        pytest.skip("EYAS_REPORT names no report.html to look at")
    with chromium() as browser, opened(browser, Path(named), tmp_path) as tab:
        check(tab, CHARTS)
