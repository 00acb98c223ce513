"""The head of the page: which run, the first figures, and the yield table."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eyas.report.document import Report
from eyas.report.page.parts import bars, words
from eyas.report.page.parts.markup import Child, Html, tag
from eyas.report.page.parts.tables import Column, Section, folded, lines, missing, part, table, terms, worded

STEPS = {
    "prompts": "asked for",
    "answers": "answers, whole or cut",
    "label": "with a label that a strict export takes",
    "kept": "not dropped",
    "max_length": "within --max-length",
    "supervised": "supervised: mask 1",
}
"""Steps of the yield table in words; another one is shown by its name."""
_QUIET = ("kept", "max_length")
"""Steps that are left out where nothing is lost at them."""
_STATES = {
    "running": "The run goes on",
    "complete": "Complete: nothing is owed",
    "partial": "Ended with something owed or not known",
    "stopped": "Stopped before its end",
}


_FROM = {"api": "an API", "local": "servers of one's own", "both": "servers of one's own, and an API"}


def paid(report: Report) -> bool:
    """Whether dollars play a part: one's own engines cost none, and the page then speaks of none."""
    line, course = report.headline, report.course
    sums = (line.paid_usd, line.wasted_usd, line.unknown_usd, *(each.usd for each in report.endpoints))
    return any(sums) or any(map(any, (course.settled_usd, course.unknown_usd, course.reserved_usd)))


def command(report: Report, *options: str) -> str:
    """How to make this report again, with other options."""
    return shlex.join(["eyas", "report", *report.runs, *options])


def banner(report: Report, refresh: float | None) -> Html | None:
    """Says that the run goes on, and when the figures were taken."""
    if refresh is None and report.state != "running":
        return None
    taken = f"The figures were taken at {words.moment(report.made_at)} UTC."
    again = (
        f" The page loads itself anew every {refresh:g} seconds."
        if refresh
        else " Make the report again for later ones."
    )
    button = tag("button", "Stop reloading", attributes={"type": "button", "id": "pause", "hidden": ""})
    return tag(
        "div",
        tag("p", tag("strong", "The run goes on. "), taken, again),
        button if refresh else None,
        of="banner",
        attributes={"role": "status", "data-refresh": f"{refresh:g}" if refresh else None},
    )


def title(report: Report) -> Html:
    """Which run it is, when it went, how it stands."""
    state = _STATES.get(report.state, report.state)
    facts: list[tuple[str, Child]] = [
        ("run" if len(report.runs) == 1 else "runs", tag("span", ", ".join(report.runs), of="path")),
        ("began", f"{words.moment(report.began)} UTC"),
        ("answers from", _FROM.get(report.backend, report.backend)),
        ("family", report.family),
    ]
    return tag(
        "div",
        tag("p", "eyas report", of="kicker"),
        tag("h1", report.model),
        tag("p", state, of=f"state {report.state if report.state in _STATES else 'other'}"),
        terms(facts, of="facts"),
        of="title",
    )


def headline(report: Report) -> Section:
    """The first figures, the one that says how good the run was before the others."""
    figures = list(_figures(report))
    cards = [
        tag("div", tag("dt", name), tag("dd", tag("b", value), tag("span", more) if more else None))
        for name, value, more in figures
    ]
    return part("headline", "In short", "", tag("p", lead(report), of="lead"), tag("dl", *cards, of="cards"))


def lead(report: Report) -> str:
    """The run in one or two sentences."""
    line = report.headline
    if not line.answers:
        return f"No answers yet: {words.several(line.prompts, 'prompt')} {'waits' if line.prompts == 1 else 'wait'}."
    kept = f"{words.count(line.supervised_tokens)} supervised tokens from {words.several(line.answers, 'answer')}"
    if not paid(report):
        return f"{kept}, {words.count(line.output_tokens)} tokens in all."
    whole = f"{words.share(line.yield_share)} of the {words.money(line.paid_usd)} paid became training data: {kept}"
    cost = line.usd_per_m_supervised
    return f"{whole}, at {words.money(cost)} a million." if cost is not None else f"{whole}."


def _figures(report: Report) -> Iterator[tuple[str, str, str]]:
    """(name, figure, what it is of)."""
    line = report.headline
    if paid(report):
        yield "yield", words.share(line.yield_share), "of the dollars paid"
        yield "paid", words.money(line.paid_usd), _beside(line.wasted_usd, line.unknown_usd)
        yield "a million supervised", words.money(line.usd_per_m_supervised), ""
    yield "supervised tokens", words.short(line.supervised_tokens), f"of {words.short(line.output_tokens)} of output"
    yield "answers", words.count(line.answers), f"of {words.count(line.prompts)} wanted"
    yield "tokens a second", words.count(line.tokens_per_second), f"for {words.lasting(line.seconds)}"


def _beside(wasted: float, unknown: float) -> str:
    said = [f"{words.money(usd)} {name}" for usd, name in ((wasted, "wasted"), (unknown, "not yet known")) if usd]
    return ", ".join(said) or "nothing wasted"


def yields(report: Report) -> Section:
    """The yield table: from what was asked for down to supervised tokens, with the reason of each loss."""
    total: Mapping[str, Any] = report.yields.get("total") or {}
    steps: Sequence[Mapping[str, Any]] = total.get("steps") or []
    with_money = paid(report)
    how = "Each step keeps what the step before it kept, less the losses named between them. " + (
        "The last line is what the money bought." if with_money else "The last line is what a trainer learns from."
    )
    if not steps:
        sentence = "There is no yield table yet: nothing has been answered. Later:"
        return part("yield", "Yield", "", missing(sentence, command(report)))
    whole = steps[0]["usd"] if with_money else steps[min(1, len(steps) - 1)]["tokens"]
    columns = [worded("step"), Column("rows"), Column("tokens")]
    columns += [Column("paid", "USD")] if with_money else []
    columns += [Column("share", "of paid" if with_money else "of tokens"), worded("")]
    rows = list(_steps(total, whole, with_money=with_money))
    return part("yield", "Yield", how, table("What was paid for, and what is left", columns, rows), _by_dataset(report))


def _steps(total: Mapping[str, Any], whole: float, *, with_money: bool) -> Iterator[list[Child]]:
    losses: Sequence[Mapping[str, Any]] = total.get("losses") or []
    digits = words.fine(each["usd"] for each in (*total["steps"], *losses))
    scale = (whole, digits if with_money else None)
    for step in total["steps"]:
        lost = [loss for loss in losses if loss["step"] == step["step"]]
        if step["step"] in _QUIET and not lost:
            continue
        for loss in lost:
            requests = f" ({words.several(loss['requests'], 'request')})" if loss.get("requests") else ""
            reason = tag("span", f"{words.MINUS} ", loss["reason"], requests, of="loss")
            yield _row(reason, loss, scale)
        name = tag("strong", STEPS.get(step["step"], step["step"]))
        yield _row(name, step, scale, bar=step["step"] != "prompts" or with_money)


def _row(name: Html, what: Mapping[str, Any], scale: tuple[float, int | None], *, bar: bool = False) -> list[Child]:
    """`scale`: what all shares are of, and the digits of a dollar; None for a table without dollars."""
    (whole, digits), with_money = scale, scale[1] is not None
    amount = what["usd"] if with_money else what["tokens"]
    first = what["step"] == "prompts"
    tokens = words.NONE if first else words.count(what["tokens"])
    share = words.share(amount / whole) if whole and (with_money or not first) else words.NONE
    money: list[Child] = [words.dollars(what["usd"], digits)] if with_money else []
    return [name, words.count(what["rows"]), tokens, *money, share, bars.lone(amount, whole) if bar else None]


def _by_dataset(report: Report) -> Html | None:
    tables: Mapping[str, Any] = report.yields.get("datasets") or {}
    if not tables:
        return None
    with_money = paid(report)
    columns = [worded("dataset"), Column("wanted"), Column("answers"), Column("tokens"), Column("supervised", "tokens")]
    columns += [Column("paid", "USD")] if with_money else []
    columns += [Column("yield", "of paid" if with_money else "of tokens"), worded("")]
    rows: list[list[Child]] = []
    digits = words.fine(each["steps"][0]["usd"] for each in tables.values())
    for name, each in sorted(tables.items()):
        steps = {step["step"]: step for step in each["steps"]}
        first, answers, last = steps["prompts"], steps["answers"], steps["supervised"]
        part_, whole = (last["usd"], first["usd"]) if with_money else (last["tokens"], answers["tokens"])
        rows.append(
            [
                name,
                words.count(first["rows"]),
                words.count(answers["rows"]),
                words.count(answers["tokens"]),
                words.count(last["tokens"]),
                *([words.dollars(first["usd"], digits)] if with_money else []),
                words.share(part_ / whole if whole else None),
                bars.lone(part_, whole),
            ]
        )
    return tag("div", tag("h3", "By dataset"), table("Yield by dataset", columns, rows))


def notes(report: Report) -> Section | None:
    """What could not be told, and what the run itself warned of."""
    given: Sequence[object] = report.status.get("alarms") or ()
    alarms = [str(alarm) for alarm in given]
    if not report.notes and not alarms:
        return None
    said = [lines(report.notes)] if report.notes else []
    warned = [folded(f"{words.several(len(alarms), 'warning')} of the run", lines(alarms))] if alarms else []
    return part("notes", "Notes", "", *said, *warned)
