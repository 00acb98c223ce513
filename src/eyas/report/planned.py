"""A plan in words and tables, from the figures of `eyas plan --json`: the advice first, then what it rests on. Text only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from eyas.report import own_plan
from eyas.report.amounts import Figures, about, clipped, dollars, full, minutes_of, quantity, short, what
from eyas.report.columns import columns
from eyas.report.remarks import lengths, remarks, wrapped

WIDE = 100
"""Columns of a terminal from which numbers are written in full."""


def advice(figures: Figures) -> str:
    """The plan in one sentence: what it costs and takes, or what to choose so that it fits."""
    expected, left = figures["total"]["usd"]["expected"], figures["money"]["left"]
    if not figures["total"]["answers"]:
        return "Nothing is left to ask: every quota is met, or every prompt has its answer"
    if own_plan.concerns(figures):
        return own_plan.advice(figures)
    named, chosen = what(figures), next((each for each in figures["scenarios"] if each["chosen"]), None)
    if figures["fits"]:
        tight = "" if figures["comfortable"] else f". Less than {figures['margin']:.0%} is to spare"
        cost = about(figures["total"]["usd"]) + ("" if left is None else f" of ${left:,.2f}")
        return f"{named}: {cost}, {_time(figures, figures['modes'])}{tight}"
    lead = f"{named}: about ${expected:,.2f}, and ${left:,.2f} may be spent: it does not fit"
    if chosen is not None:
        cost, quota = about(chosen["usd"]), quantity(chosen["output_tokens"])
        return f"{lead}. Choose {quota} tokens a set: {cost}, {_time(figures, figures['chosen_modes'])}"
    most = figures["largest_output_tokens"]
    return f"{lead}. " + (f"About {quantity(most)} tokens a set would fit" if most else "No quota fits")


def _time(figures: Figures, modes: Figures) -> str:
    mode = figures["advised_mode"]
    return f"{minutes_of(modes[mode]['expected'])} in {mode} mode"


def tables(figures: Figures, width: int) -> str:
    """The whole plan for people, for a terminal of that many columns (80 or more)."""
    if own_plan.concerns(figures):
        return _joined([wrapped(advice(figures), width), *own_plan.blocks(figures, width)])
    blocks = [wrapped(advice(figures), width), _sets(figures, width)]
    if not figures["total"]["answers"]:
        return _joined([*blocks, remarks(figures, width)])
    blocks += [
        _scenarios(figures, width),
        lengths(figures),
        _cuts(figures),
        _minutes(figures),
        _endpoints(figures),
        remarks(figures, width),
    ]
    return _joined(blocks)


def _joined(blocks: Iterable[list[str]]) -> str:
    return "\n".join("\n".join([*block, ""]) for block in blocks if block).rstrip("\n")


def _sets(figures: Figures, width: int) -> list[str]:
    number, most = (full, 24) if width >= WIDE else (short, 9)
    head = ("set", "rows", "prompts", "tok in", "answers", "tok out", "$ low", "expected", "worst")
    rows = [_row(clipped(name, most), each, number) for name, each in figures["datasets"].items()]
    spent = figures["money"]["spent"]
    title = "To be bought" + (f" (this run has spent ${spent:,.2f} already)" if spent else "")
    return [title, *columns([head, *rows, _row("all", figures["total"], number)])]


def _row(name: str, each: Figures, number: Callable[[int], str]) -> tuple[str, ...]:
    counts = (number(each[key]) for key in ("rows", "prompts", "prompt_tokens", "answers", "output_tokens"))
    return (name, *counts, *dollars(each["usd"]))


def _scenarios(figures: Figures, width: int) -> list[str]:
    head = ("tokens a set", "$ low", "expected", "worst", "")
    rows = [(_span(figures, alike), *dollars(alike[0]["usd"]), _fit(alike)) for alike in _alike(figures["scenarios"])]
    most = figures["largest_output_tokens"]
    last = "Every prompt may be answered." if most is None else f"The largest that fits: about {quantity(most)}."
    last += f" {figures['margin']:.0%} of the money stays free for what is not known."
    if any(each["fits"] and not each["sure"] for each in figures["scenarios"]):
        last += " On average: should answers be long, the money ends before the quota is met."
    return ["What fits", *columns([head, *rows], left=(0, 4)), *wrapped(last, width)]


def _alike(scenarios: Sequence[Figures]) -> list[list[Figures]]:
    """Quotas that cost the same, because the prompts end before them, together."""
    groups: list[list[Figures]] = []
    for each in scenarios:
        if groups and groups[-1][0]["usd"] == each["usd"]:
            groups[-1].append(each)
        else:
            groups.append([each])
    return groups


def _span(figures: Figures, alike: Sequence[Figures]) -> str:
    if len(alike) == 1:
        return quantity(alike[0]["output_tokens"])
    if len(alike) == len(figures["scenarios"]):
        return "all prompts"
    return f"{quantity(alike[0]['output_tokens'])} or more"


def _fit(alike: Sequence[Figures]) -> str:
    each = alike[0]
    left = each["left_usd"]
    if left is None:
        said = "no limit"
    elif each["fits"]:
        said = f"fits{'' if each['sure'] else ' on average'}, ${left:,.2f} left"
    else:
        said = f"does not fit: ${-left:,.2f} too much"
    return said + (" <- choose" if len(alike) == 1 and each["chosen"] else "")


def _cuts(figures: Figures) -> list[str]:
    head = ("max_tokens", "answers cut at it", "$ of them", "")
    rows = [
        (
            f"{each['max_tokens']:,}",
            f"{each['length_share']:.1%}",
            f"{each['length_usd']:,.2f}",
            "<- now" if each["now"] else "",
        )
        for each in figures["max_tokens"]
    ]
    return ["Answers that end unfinished", *columns([head, *rows], left=(3,))]


def _minutes(figures: Figures) -> list[str]:
    head = ("mode", "low", "expected", "high", "")
    note = {figures["mode"]: "<- now", figures["advised_mode"]: "<- advised"}
    if figures["mode"] == figures["advised_mode"]:
        note = {figures["mode"]: "<- now, and advised"}
    rows = [
        (mode, *(_brief(each[key]) for key in ("low", "expected", "high")), note.get(mode, ""))
        for mode, each in figures["modes"].items()
    ]
    title = "Minutes" if figures["fits"] else f"Minutes, until the money ends ({what(figures)})"
    return [title, *columns([head, *rows], left=(0, 4))]


def _brief(minutes: float) -> str:
    return "<1" if 0 < minutes < 0.5 else f"{minutes:,.0f}"


def _endpoints(figures: Figures) -> list[str]:
    head = ("endpoint", "in $/M", "out $/M", "share", "")
    rows = [
        (
            clipped(each["tag"], 16),
            f"{each['usd_per_m_prompt']:.3f}",
            f"{each['usd_per_m_completion']:.3f}",
            f"{each['share']:.0%}",
            "" if each["metered"] else "a stream ended early is billed in full",
        )
        for each in figures["endpoints"]
    ]
    return ["Who may answer, cheapest first", *columns([head, *rows], left=(0, 4))]
