"""The page as text: nothing of others becomes markup, the policy names exactly what is in it, and it stays small."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyas.report.page import assets, data, html
from eyas.report.page.parts import bars, words
from eyas.report.page.parts.markup import UNSEEN, Html, tag, text
from tests import pagekit
from tests.hostile import PAYLOADS, poisoned

ANY_TEXT = st.text(alphabet=st.characters())
"""Of any code points, unpaired surrogates among them."""
UPLOT = "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"


class Walk(HTMLParser):
    """Reads a page as a browser would: elements with attributes, and the texts of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inline: list[tuple[str, str]] = []
        self.words: list[str] = []
        self._inside = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = ""
        if tag in ("script", "style"):
            data_block = dict(attrs).get("type") == "application/json"
            self._inside = "json" if data_block else tag
            self.inline.append((self._inside, ""))

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.inline[-1] = (self._inside, self.inline[-1][1] + data)
        else:
            self.words.append(data)

    def texts(self, kind: str) -> list[str]:
        """Contents of the scripts, styles or data blocks."""
        return [content for name, content in self.inline if name == kind]


@pytest.fixture(scope="module")
def page() -> str:
    """The page of a run of 30 000 answers."""
    return html(pagekit.report())


def test_the_policy_names_each_script_and_style_by_its_hash_and_no_other(page: str) -> None:
    """What the policy allows is what stands in the page."""
    walk = Walk(page)
    policy = next(each["content"] for _, each in walk.elements if each.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    rules = {
        name: set(values.split()) for name, _, values in (rule.strip().partition(" ") for rule in policy.split(";"))
    }
    made = {kind: {hashed(content) for content in walk.texts(kind)} for kind in ("script", "style")}
    assert rules["script-src"] == made["script"]
    assert len(made["script"]) == 3
    assert rules["style-src"] == made["style"]
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == {"'none'"}
    assert rules["img-src"] == {"data:"}
    assert "unsafe" not in policy


def hashed(content: str) -> str:
    """As a policy has it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def test_nothing_in_the_page_loads_or_runs_by_an_attribute(page: str) -> None:
    """No handler, no style attribute, no address but places of the page itself and the empty icon."""
    for name, attributes in Walk(page).elements:
        for key, value in attributes.items():
            assert not key.startswith("on"), (name, key)
            assert key not in ("style", "src", "srcdoc", "srcset", "action", "formaction", "background", "poster"), (
                name,
                key,
            )
            if key == "href":
                assert value == "data:," or (value or "").startswith("#"), (name, value)


def test_our_own_scripts_make_no_elements_of_text() -> None:
    """Text enters the document by text nodes only."""
    ours = assets.joined(*assets.OURS, *assets.EARLY)
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "Function(",
        "DOMParser",
        "fetch(",
        "XMLHttp",
    ):
        assert word not in ours
    assert "innerHTML" not in assets.joined(*assets.LIBRARY)
    own = sum(len(assets.asset(name)) for name in (*assets.OURS, *assets.EARLY, *assets.STYLES))
    assert own < 60_000


def test_uplot_is_as_npm_has_it() -> None:
    """The vendored library is untouched, and its licence lies beside it and in the page."""
    assert hashlib.sha256(assets.asset("uPlot.iife.min.js").encode()).hexdigest() == UPLOT
    assert "MIT" in assets.asset("uPlot.LICENSE")
    assert "Permission is hereby granted" in html(pagekit.nothing())


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS.keys())
def test_no_text_of_others_becomes_an_element(payload: str) -> None:
    """With a payload in every text the page has the same elements as without, signs for unseen characters apart."""
    report = pagekit.report(samples=2, tokens=8, status=pagekit.LED)
    clean, dirty = Walk(html(report)), Walk(html(poisoned(report, payload)))
    kinds = [[name for name, each in walk.elements if each.get("class") != "sign"] for walk in (clean, dirty)]
    assert kinds[0] == kinds[1]
    assert len(clean.texts("json")) == len(dirty.texts("json")) == 2
    samples = json.loads(dirty.texts("json")[1])
    assert samples[0]["messages"][0]["content"] == payload + report.samples[0].messages[0]["content"]


@given(ANY_TEXT)
def test_text_is_shown_as_it_is_but_for_unseen_characters(value: str) -> None:
    """Whatever is written, a browser reads it back, each unseen character as a sign; nothing of it is markup."""
    walk = Walk(f"<p>{text(value)}</p>")
    assert {name for name, _ in walk.elements} <= {"p", "i"}
    shown = "".join(walk.words)
    assert not re.search(f"[{UNSEEN}]", shown)
    seen = re.sub(f"[{UNSEEN}]", "", value)
    assert re.sub("[\u2400-\u2421]|⟨U\\+[0-9A-F]+⟩", "", seen) == re.sub("[\u2400-\u2421]|⟨U\\+[0-9A-F]+⟩", "", shown)
    shown.encode("utf-8")


@given(
    st.recursive(
        ANY_TEXT | st.integers(-(2**53), 2**53) | st.none() | st.booleans(),
        lambda each: st.lists(each) | st.dictionaries(ANY_TEXT, each),
    )
)
def test_data_is_read_back_the_same_and_cannot_end_its_block(value: object) -> None:
    """JSON of any values keeps them, and holds no character that HTML or JavaScript would take for its own."""
    written = data.encoded(value)
    assert json.loads(written) == value
    assert not re.search("[<>&\u2028\u2029\ud800-\udfff]", written)


def test_numbers_that_are_none_are_null() -> None:
    """Not-a-number and the infinities would make JSON that no browser reads."""
    assert data.encoded([float("nan"), float("inf"), 1.5]) == "[null,null,1.5]"


def test_an_element_takes_no_handler_style_or_source() -> None:
    """Even our own code cannot make what the policy would refuse."""
    for key in ("onclick", "style", "src", "srcdoc", "x y"):
        with pytest.raises(ValueError, match="no attribute"):
            tag("p", attributes={key: "1"})
    assert tag("p", "<b>", Html("<b>x</b>")) == "<p>&lt;b&gt;<b>x</b></p>"


def test_a_page_of_30_000_answers_stays_under_2_mb() -> None:
    """Samples that do not fit are left out, the small ones stay, and the page says how many are missing."""
    report = pagekit.report(samples=120, tokens=3000)
    page = html(report)
    assert 1_000_000 < len(page.encode("utf-8")) < 2_000_000
    left = re.search(r"(\d+) long samples did not fit", page)
    assert left
    shown = json.loads(Walk(page).texts("json")[1])
    assert len(shown) + int(left[1]) == 120


def test_a_page_without_text_holds_none() -> None:
    """With --no-text no word of a prompt or an answer is in the page, and it says how to have them."""
    page = html(pagekit.report(samples=0))
    assert "Question" not in page
    assert "careful assistant" not in page
    assert "--no-text" in page
    assert 'id="list"' not in page


def test_servers_without_dollars_show_none() -> None:
    """Where nothing is paid, no column, chart or sentence speaks of dollars."""
    walk = Walk(html(pagekit.report(usd=0.0)))
    shown = " ".join(walk.words).replace("dollars are US dollars", "")
    assert "USD" not in shown
    assert "$" not in shown
    assert 'id="cost"' not in shown
    assert "Servers" in shown


def test_workers_are_shown_as_providers_are() -> None:
    """Of a run over many machines: where each ran, what became of it, what it did; without dollars none; of one machine nothing."""
    walk = Walk(html(pagekit.report(samples=0, status=pagekit.LED)))
    shown = " ".join(walk.words)
    for each in ("Workers", "10.0.0.2", "written off", "14,000", "6,100,000", "41.25", "1.75"):
        assert each in shown, each
    assert ("section", "workers") in [(name, found.get("id")) for name, found in walk.elements]
    free = " ".join(Walk(html(pagekit.report(samples=0, usd=0.0, status=pagekit.LED))).words)
    assert "10.0.0.2" in free
    assert "41.25" not in free
    assert "Workers" not in html(pagekit.report(samples=0))


def test_a_run_without_answers_says_what_is_missing_and_how_to_get_it() -> None:
    """No empty table and no empty chart; each part has a sentence with a command."""
    page = html(pagekit.nothing(), refresh=10)
    assert page.count('<p class="missing">') >= 7
    assert "<tbody></tbody>" not in page
    assert 'data-chart="' not in re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    assert "eyas report run" in page
    assert "The run goes on." in page


def test_a_page_that_reloads_does_so_without_scripts_too() -> None:
    """The refresh for browsers without scripts stands inside noscript; without refresh there is none."""
    live = html(pagekit.report(samples=0, state="running"), refresh=10)
    assert '<noscript><meta http-equiv="refresh" content="10"></noscript>' in live
    assert 'data-refresh="10"' in live
    assert "refresh" not in re.sub(r"<script.*?</script>", "", html(pagekit.report(samples=0)), flags=re.DOTALL)


@pytest.mark.parametrize(("given", "missing"), [("known", "--activity"), ("coverage", "no vocabulary can be measured")])
def test_what_was_not_given_is_said(given: str, missing: str) -> None:
    """Without the API's figures, or without coverage, the part says so and names the command."""
    report = pagekit.report(samples=0, coverage=None)
    days = [msgspec.structs.replace(day, api_usd=None, api_requests=None) for day in report.reconciliation.days]
    books = msgspec.structs.replace(report.reconciliation, days=days, source="")
    page = html(msgspec.structs.replace(report, reconciliation=books))
    assert missing in page
    assert "API \u2212 booked" not in page


@given(
    st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6)), max_size=6),
    st.lists(st.floats(0, 1e6), min_size=1, max_size=40),
)
def test_time_of_running_never_goes_back_and_leaves_pauses_out(
    sessions: list[tuple[float, float]], at: list[float]
) -> None:
    """Moments keep their order, none is later than all the time there was, and cuts stand between them."""
    along = data.running(sorted(at), sessions)
    assert along.x == sorted(along.x)
    assert along.cuts == sorted(along.cuts)
    assert along.x[0] >= 0
    assert along.x[-1] <= max(*at, 0, *(end for pair in sessions for end in pair)) + 0.01


def test_a_pause_is_cut_out() -> None:
    """An hour in which no process ran takes no room; what came after follows at once."""
    along = data.running([0, 50, 100, 3700, 3750], [(0, 100), (3700, 3800)])
    assert along == data.Running([0, 50, 100, 100, 150], [100])
    assert data.running([10, 20], []) == data.Running([0, 10], [])


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (words.share(0.99999), "99.9\u202f%"),
        (words.share(0.00001), "<\u202f0.1\u202f%"),
        (words.share(1.0), "100.0\u202f%"),
        (words.share(None), words.NONE),
        (words.dollars(0.0005244), "0.000524"),
        (words.dollars(86.4), "86.40"),
        (words.dollars(0.0), "0.00"),
        (words.money(-1.5), "-$1.50"),
        (words.money(0.000524), "$0.0005"),
        (words.money(0.00001), "<\u202f$0.0001"),
        (words.money(0), "$0.00"),
        (words.short(11_196_000), "11.2\u202fM"),
        (words.short(999), "999"),
        (words.lasting(45), "45 s"),
        (words.lasting(1980), "33 min"),
        (words.moment(0), words.NONE),
        (words.moment(float("inf")), words.NONE),
        (words.moment(1_764_600_000), "2025-12-01 14:40:00"),
        (words.column([0.0004, 86.4, None]), ["0.0004", "86.4000", words.NONE]),
        (words.column([0.000001, 86.4]), ["<\u202f0.0001", "86.4000"]),
        (words.column([0.000524, 0.0]), ["0.000524", "0"]),
        (words.seconds([7.3, 17.66, None]), ["7.3", "17.7", words.NONE]),
    ],
)
def test_figures_are_said_without_a_lie(said: object, meant: object) -> None:
    """Rounding makes nothing whole that is not, nor nothing of what is there."""
    assert said == meant


def test_colours_are_given_out_in_order_and_never_run_out() -> None:
    """Each kind has one; those after the last share it."""
    given = bars.colours([f"kind {n}" for n in range(12)])
    assert given["kind 0"] == "c1"
    assert given["kind 7"] == given["kind 11"] == "c8"
    assert bars.colours(["stop", "x"], {"stop": "ok1"}) == {"stop": "ok1", "x": "c1"}
