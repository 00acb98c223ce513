"""A headless Chromium that opens a report from the disk, and what must hold for any report in it."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from eyas.report.document import Report
from eyas.report.page import html

NAMES = ("chromium", "chromium-browser", "google-chrome")
SWITCHES = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
MISSING = f"no Chromium ({', '.join(NAMES)}) is on the PATH: apt-get install chromium; the report is not looked at in a browser"
ELEMENTS = frozenset(
    [
        "HTML",
        "HEAD",
        "META",
        "TITLE",
        "LINK",
        "SCRIPT",
        "STYLE",
        "NOSCRIPT",
        "BODY",
        "A",
        "DIV",
        "HEADER",
        "NAV",
        "MAIN",
        "FOOTER",
        "SECTION",
        "ARTICLE",
        "FIGURE",
        "FIGCAPTION",
        "OUTPUT",
        "P",
        "H1",
        "H2",
        "H3",
        "H4",
        "UL",
        "OL",
        "LI",
        "DL",
        "DT",
        "DD",
        "TABLE",
        "CAPTION",
        "THEAD",
        "TBODY",
        "TFOOT",
        "TR",
        "TH",
        "TD",
        "DETAILS",
        "SUMMARY",
        "SPAN",
        "STRONG",
        "SMALL",
        "B",
        "I",
        "CODE",
        "PRE",
        "BUTTON",
        "LABEL",
        "SELECT",
        "OPTION",
        "CANVAS",
        "svg",
        "rect",
        "title",
    ]
)
"""All that our own markup and scripts make."""
INERT = """() => {
  const all = [...document.querySelectorAll("*")];
  const odd = all.filter((one) => [...one.attributes].some(({ name, value }) =>
    name.startsWith("on") || name === "src" || name === "srcdoc" || name === "action" ||
    (name === "href" && !value.startsWith("#") && value !== "data:,") || (name === "style" && !one.closest(".uplot, [hidden]"))));
  return {
    pwned: window.pwned ?? null,
    names: [...new Set(all.map((one) => one.tagName))],
    scripts: document.scripts.length,
    odd: odd.map((one) => one.outerHTML.slice(0, 200)),
  };
}"""
DRAWN = """() => Object.fromEntries([...document.querySelectorAll("[data-chart]")].map((box) => {
  const canvas = box.querySelector("canvas");
  if (!canvas || !canvas.width) return [box.dataset.chart, 0];
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let coloured = 0;
  for (let i = 0; i < data.length; i += 4) {
    const [red, green, blue] = data.subarray(i, i + 3);
    if (data[i + 3] > 20 && Math.max(red, green, blue) - Math.min(red, green, blue) > 25) coloured += 1;
  }
  return [box.dataset.chart, coloured];
}))"""
BARS = """() => [...document.querySelectorAll("main svg")].filter((svg) => svg.checkVisibility()).map((svg) =>
  [...svg.querySelectorAll("rect")].filter((rect) => { const box = rect.getBoundingClientRect(); return box.width > 0.2 && box.height > 0.2; }).length)"""
CONTRAST = """() => {
  const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    probe.clearRect(0, 0, 1, 1);
    probe.fillStyle = colour;
    probe.fillRect(0, 0, 1, 1);
    return [...probe.getImageData(0, 0, 1, 1).data];
  };
  const light = (colour) => {
    const [red, green, blue] = colour.slice(0, 3).map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const below = (one) => {
    for (let each = one; each; each = each.parentElement) {
      const colour = rgba(getComputedStyle(each).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255];
  };
  const poor = new Set();
  for (const one of document.querySelectorAll("body *")) {
    if (!one.checkVisibility() || one.closest("svg, canvas, script") || ![...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
    const [ink, ground] = [light(rgba(getComputedStyle(one).color)), light(below(one))];
    const ratio = (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
    if (ratio < 4.5) poor.add(`${one.tagName}.${one.className}: ${ratio.toFixed(2)}`);
  }
  return [...poor];
}"""


@contextmanager
def chromium() -> Generator[Any]:
    """The browser that is installed; skips, and says so, where there is none."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip(MISSING)
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(SWITCHES))
        try:
            yield browser
        finally:
            browser.close()


class Opened:
    """A report in a tab of its own, and all that it did: complaints, dialogs, requests."""

    def __init__(
        self, browser: Any, source: Report | Path, folder: Path, *, refresh: float | None = None, **options: Any
    ) -> None:
        path = source if isinstance(source, Path) else folder / "report.html"
        if not isinstance(source, Path):
            path.write_text(html(source, refresh=refresh), encoding="utf-8")
        self.url = path.resolve().as_uri()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("dialog", self._dialog)
        self.context.on(
            "page", lambda page: self.complaints.append(f"a window: {page.url}") if page != self.page else None
        )
        self.context.on("request", lambda request: self.requests.append(request.url))

    def _dialog(self, dialog: Any) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def go(self, place: str = "") -> Any:
        """Open it, at a place of the page; returns playwright's page."""
        self.page.goto(self.url + place, wait_until="load")
        return self.page

    def quiet(self) -> None:
        """Nothing was complained of, and nothing was asked for but the file itself."""
        assert self.complaints == [], self.complaints
        assert {url.partition("#")[0] for url in self.requests} <= {self.url}, self.requests


def check(opened: Opened, charts: set[str]) -> None:
    """What holds for any report: no complaint, no request, no element but ours, these charts drawn, bars seen, text readable."""
    page = opened.go()
    inert = page.evaluate(INERT)
    assert inert["pwned"] is None
    assert set(inert["names"]) <= ELEMENTS
    assert inert["scripts"] == 5
    assert inert["odd"] == []
    drawn = page.evaluate(DRAWN)
    assert set(drawn) == charts
    assert all(pixels > 60 for pixels in drawn.values()), drawn
    assert all(page.evaluate(BARS))
    for _ in ("light", "dark"):
        page.locator("#theme").click()
        assert page.evaluate(CONTRAST) == []
    opened.quiet()


@contextmanager
def opened(
    browser: Any, source: Report | Path, folder: Path, *, refresh: float | None = None, **options: Any
) -> Generator[Opened]:
    """A report, made of a Report or lying on the disk already, in a tab that is closed at the end."""
    tab = Opened(browser, source, folder, refresh=refresh, **options)
    try:
        yield tab
    finally:
        tab.context.close()
