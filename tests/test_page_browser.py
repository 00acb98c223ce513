"""The page in a real browser: silent, drawn in both themes, filtered, steered by keys, and deaf to hostile text."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from eyas.report.document import Report
from eyas.report.page.parts.markup import plain
from tests import pagekit
from tests.hostile import PAYLOADS, poisoned
from tests.pagebrowser import BARS, DRAWN, ELEMENTS, INERT, check, chromium, opened

CHARTS = {"money", "speed", "flight", "errors", "tail", "coverage"}
WITHOUT_DOLLARS = CHARTS - {"money"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One browser for all."""
    with chromium() as running:
        yield running


@pytest.mark.parametrize(
    ("report", "charts"),
    [
        (pagekit.report(), CHARTS),
        (pagekit.report(usd=0.0), WITHOUT_DOLLARS),
        (pagekit.report(samples=0), CHARTS),
        (pagekit.nothing(), set()),
    ],
    ids=["paid", "servers of one's own", "no text", "no answers"],
)
def test_a_report_is_silent_drawn_and_readable(browser: Any, tmp_path: Path, report: Report, charts: set[str]) -> None:
    """No complaint and no request; every chart and bar is drawn; text has the contrast of WCAG AA in both themes."""
    with opened(browser, report, tmp_path) as tab:
        check(tab, charts)


@pytest.mark.parametrize("name", ["dataset", "provider", "label", "finish"])
def test_each_filter_leaves_only_what_it_says(browser: Any, tmp_path: Path, name: str) -> None:
    """A choice lists the samples that have it, counts them, opens one of them, and Show all brings the others back."""
    report = pagekit.report(samples=40, tokens=30)
    value = getattr(report.samples[9], name)
    wanted = [sample.id for sample in report.samples if getattr(sample, name) == value]
    with opened(browser, report, tmp_path) as tab:
        page = tab.go()
        page.select_option(f"#filter-{name}", value)
        assert page.locator("#list li").count() == len(wanted)
        assert page.locator("#found").inner_text() == f"{len(wanted)} of 40 samples"
        assert page.locator("#sample h3").inner_text() in wanted
        page.locator("#filter-clear").click()
        assert page.locator("#list li").count() == 40
        tab.quiet()


def test_filters_together_offer_only_what_is_there(browser: Any, tmp_path: Path) -> None:
    """The other menus count what is left; a choice that nothing has says so and can be undone."""
    with opened(browser, pagekit.report(samples=12, tokens=30), tmp_path) as tab:
        page = tab.go()
        page.select_option("#filter-dataset", "B3")
        counts = page.locator("#filter-label option").all_inner_texts()
        assert sum(int(text.partition("(")[2].rstrip(")")) for text in counts if "(" in text) == 2
        page.select_option("#filter-label", "mismatch")
        page.select_option("#filter-finish", "length")
        assert page.locator("#list li").count() == 0
        assert "No sample has all of these" in page.locator("#sample").inner_text()
        tab.quiet()


def test_a_sample_shows_its_tokens_channels_and_mask(browser: Any, tmp_path: Path) -> None:
    """Each token is a span of its own; masked ones differ by class, and number, channel and mask are said when pointed at."""
    report = pagekit.report(samples=1, tokens=60)
    sample = report.samples[0]
    with opened(browser, report, tmp_path) as tab:
        page = tab.go()
        assert page.locator(".tok").count() == len(sample.tokens)
        assert page.locator(".tok.m0").count() == sample.mask[1]
        heads = page.locator(".answer h4").all_inner_texts()
        assert [head.partition(",")[0] for head in heads] == ["Reasoning", "Answer"]
        first_masked = sample.mask[0]
        page.locator(f'[data-token="{first_masked}"]').hover()
        said = page.locator(".readout.token").inner_text()
        assert f"Token {first_masked + 1} of {len(sample.tokens) + sample.left_out}, content, mask 0" in said
        looks = page.evaluate(
            "() => ['.tok.m0', '.tok.m1'].map((kind) => getComputedStyle(document.querySelector(kind)).textDecorationLine)"
        )
        assert looks == ["underline", "none"]
        page.locator('[data-view="text"]').click()
        assert page.locator(".tok").count() == 0
        assert "€<|im_end|>" in page.locator(".answer").inner_text()
        assert "700 more tokens" in page.locator("#sample").inner_text()
        tab.quiet()


def test_all_can_be_done_by_keys(browser: Any, tmp_path: Path) -> None:
    """Skip link, charts, list, Enter, tokens: each by the keyboard, each says where it stands."""
    with opened(browser, pagekit.report(samples=20, tokens=30), tmp_path) as tab:
        page = tab.go()
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"

        page.locator("#chart-money").focus()
        before = page.locator("#readout-money").inner_text()
        page.keyboard.press("ArrowRight")
        first = page.locator("#readout-money").inner_text()
        page.keyboard.press("End")
        last = page.locator("#readout-money").inner_text()
        assert len({before, first, last}) == 3
        assert "UTC" in last
        assert "$82.10 settled" in last

        page.locator("#list").focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        assert page.get_attribute("#list", "aria-activedescendant") == "option-2"
        assert page.locator("#sample h3").inner_text() == "B3-00000"
        page.keyboard.press("Enter")
        assert page.locator("#sample h3").inner_text() == "B5-00002"
        assert page.evaluate("document.activeElement.id") == "sample"
        page.locator(".answer").focus()
        page.keyboard.press("ArrowRight")
        assert "Token 2 of" in page.locator(".readout.token").inner_text()
        page.keyboard.press("End")
        assert "<|im_end|>" in page.locator(".readout.token").inner_text()
        tab.quiet()


def test_whatever_takes_the_focus_shows_it_and_has_a_name(browser: Any, tmp_path: Path) -> None:
    """Every stop of the Tab key has an outline or a mark of its own, and a name for screen readers."""
    with opened(browser, pagekit.report(samples=3, tokens=10), tmp_path) as tab:
        page = tab.go()
        named = page.evaluate(
            """() => [...document.querySelectorAll("a, button, select, summary, [tabindex='0']")].filter((one) =>
              !(one.getAttribute("aria-label") || one.innerText || one.labels?.[0]?.innerText)).map((one) => one.outerHTML.slice(0, 120))"""
        )
        assert named == []
        heads = page.evaluate(
            "() => [...document.querySelectorAll('h1, h2, h3, h4')].map((head) => Number(head.tagName[1]))"
        )
        assert all(after <= before + 1 for before, after in pairwise(heads))
        bare = page.evaluate("() => [...document.querySelectorAll('th:not([scope]), table:not(:has(caption))')].length")
        assert bare == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_is_the_systems_until_it_is_chosen_and_then_kept(browser: Any, tmp_path: Path, scheme: str) -> None:
    """The page follows the system; the switch goes over light and dark back to it; a choice outlives a reload, charts follow."""
    ground = "() => getComputedStyle(document.body).backgroundColor"
    with opened(browser, pagekit.report(samples=0), tmp_path, color_scheme=scheme) as tab:
        page = tab.go()
        system = page.evaluate(ground)
        page.locator("#theme").click()
        light = page.evaluate(ground)
        page.locator("#theme").click()
        dark = page.evaluate(ground)
        assert light != dark
        assert system == {"light": light, "dark": dark}[scheme]
        page.reload()
        page.wait_for_function("document.documentElement.dataset.theme === 'dark'")
        assert page.evaluate(ground) == dark
        assert all(page.evaluate(DRAWN).values())
        page.locator("#theme").click()
        assert page.evaluate(ground) == system
        tab.quiet()


def test_a_page_that_reloads_comes_back_where_it_was(browser: Any, tmp_path: Path) -> None:
    """Filters, open sample, view and scroll survive the reload; the reader can stop it, and it stays stopped."""
    report = pagekit.report(samples=24, tokens=30, state="running")
    with opened(browser, report, tmp_path, refresh=10) as tab:
        tab.page.clock.install()
        page = tab.go()
        assert "The run goes on." in page.locator(".banner").inner_text()
        page.select_option("#filter-dataset", "B4")
        page.locator("#list li").nth(2).click()
        page.locator('[data-view="text"]').click()
        kept = page.locator("#sample h3").inner_text()
        page.evaluate("document.activeElement.blur(); scrollTo({ top: 900, behavior: 'instant' })")
        page.evaluate("window.old = true")
        with page.expect_event("load"):
            page.clock.fast_forward(10_000)
        assert page.evaluate("window.old ?? null") is None
        assert page.locator("#sample h3").inner_text() == kept
        assert page.input_value("#filter-dataset") == "B4"
        assert page.get_attribute('[data-view="text"]', "aria-pressed") == "true"
        assert page.evaluate("Math.round(scrollY)") == 900
        page.locator("#pause").click()
        assert page.locator("#pause").inner_text() == "Go on reloading"
        page.evaluate("window.old = true")
        page.clock.fast_forward(60_000)
        assert page.evaluate("window.old ?? null") is True
        page.reload()
        assert page.locator("#pause").inner_text() == "Go on reloading"
        tab.quiet()


@pytest.mark.parametrize("width", [360, 768, 1280, 1920])
def test_no_width_needs_sideways_scrolling(browser: Any, tmp_path: Path, width: int) -> None:
    """From a small telephone to a wide screen only tables scroll by themselves; charts and bars are as wide as there is room."""
    report = poisoned(pagekit.report(samples=2, tokens=20), PAYLOADS["long word"][:200])
    with opened(browser, report, tmp_path, viewport={"width": width, "height": 800}) as tab:
        page = tab.go()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert all(page.evaluate(DRAWN).values())
        assert all(page.evaluate(BARS))
        tab.quiet()


def test_without_scripts_the_figures_are_there(browser: Any, tmp_path: Path) -> None:
    """Headline, yield table and all other tables are plain HTML; what needs a script says so."""
    with opened(browser, pagekit.report(), tmp_path, java_script_enabled=False) as tab:
        page = tab.go()
        assert page.locator("#headline .cards").is_visible()
        assert page.locator("#yield table").first.is_visible()
        assert "Scripts are switched off" in page.locator("#main").inner_text()
        assert not page.locator("#filter-dataset").is_visible()
        assert not page.locator("#chart-money").is_visible()
        tab.quiet()


def test_motion_is_left_out_where_it_is_not_wanted(browser: Any, tmp_path: Path) -> None:
    """prefers-reduced-motion turns smooth scrolling off."""
    with opened(browser, pagekit.nothing(), tmp_path, reduced_motion="reduce") as tab:
        assert tab.go().evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS.keys())
def test_hostile_text_stays_text(browser: Any, tmp_path: Path, payload: str) -> None:
    """With it in every text the page runs nothing, asks for nothing, makes no element but its own, and still works."""
    report = poisoned(pagekit.report(samples=3, tokens=12), payload)
    with opened(browser, report, tmp_path) as tab:
        page = tab.go()
        page.locator("#list li").nth(1).click()
        page.select_option("#filter-provider", index=1)
        page.locator("#list").press("Enter")
        page.locator('[data-view="text"]').click()
        page.locator('[data-view="tokens"]').click()
        page.locator(".tok").first.dispatch_event("mouseover")
        assert "Token 1 of" in page.locator(".readout.token").inner_text()
        page.locator("#chart-coverage").press("ArrowRight")
        inert = page.evaluate(INERT)
        assert inert["pwned"] is None
        assert set(inert["names"]) <= ELEMENTS
        assert inert["scripts"] == 5
        assert inert["odd"] == []
        assert page.locator("#sample .text").first.inner_text() != ""
        tab.quiet()


def test_a_hostile_address_chooses_nothing(browser: Any, tmp_path: Path) -> None:
    """What stands behind the # of the address is compared with what is there, and never shown."""
    change = """(text) => { location.hash = `#samples?dataset=${text}&id=${text}&view=${text}&label=${encodeURIComponent(text.toWellFormed())}`; }"""
    with opened(browser, pagekit.report(samples=2, tokens=5), tmp_path) as tab:
        page = tab.go()
        for payload in PAYLOADS.values():
            page.evaluate(change, payload)
            page.wait_for_function("document.querySelectorAll('#list li').length === 2")
            assert page.evaluate(INERT)["pwned"] is None
            assert page.locator("#sample h3").inner_text() == "B3-00000"
        tab.quiet()


def test_the_script_shows_unseen_characters_as_the_markup_does(browser: Any, tmp_path: Path) -> None:
    """Over all code points, text.js and markup.py make the same signs."""
    with opened(browser, pagekit.nothing(), tmp_path) as tab:
        page = tab.go()
        changed = page.evaluate(
            """(last) => { const signs = {}; for (let code = 0; code <= last; code += 1) { const one = String.fromCodePoint(code);
              const shown = eyas.plain(one); if (shown !== one) signs[code] = shown; } return signs; }""",
            sys.maxunicode,
        )
        expected = {str(code): shown for code in range(sys.maxunicode + 1) if (shown := plain(chr(code))) != chr(code)}
        assert changed == expected
        assert re.fullmatch("⟨U\\+202E⟩", changed[str(0x202E)])
