"""A rehearsal in words and tables, from the figures of `eyas rehearse --json`: what was assumed, what came of it. Text only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from eyas.report.fit import fit
from eyas.report.planned import quantity
from eyas.report.progress import columns

Figures = Mapping[str, Any]

ENDS = {
    "complete": "nothing was owed any more",
    "cap": "the cap was reached",
    "owed": "works were left that no endpoint could serve",
    "alarm": "a bill was above its reservation",
}


def tables(figures: Figures, width: int) -> str:
    """The whole rehearsal for people, for a terminal of that many columns (80 or more)."""
    blocks = [
        [*fit(_asked(figures), width).split("\n")],
        _result(figures, width),
        _variants(figures),
        _notes(figures, width),
    ]
    return "\n".join("\n".join([*block, ""]) for block in blocks if block).rstrip("\n")


def _asked(figures: Figures) -> str:
    of = figures["settings"]
    run = figures["run"] or f"the run of scenario {figures['scenario']}"
    cap = "no cap" if of["usd"] is None else f"${of['usd']:,.2f}"
    spent = f" (${of['spent_usd']:,.2f} of it spent already)" if of["spent_usd"] else ""
    return (
        f"{run}: {len(figures['datasets'])} set{'s' * (len(figures['datasets']) != 1)}, {of['in_flight']:,} in flight, "
        f"max_tokens {of['max_tokens']:,}, {of['mode']} mode, {of['routing']} routing, {cap}{spent}"
    )


def _result(figures: Figures, width: int) -> list[str]:
    rows = [
        ("", *(("low", "median", "high") if figures["seeds"] > 1 else ("", "", ""))),
        ("minutes", *_cells(figures["minutes"], "{:,.1f}")),
        ("dollars", *_cells(figures["usd"], "{:,.2f}")),
        ("output tokens", *(quantity(round(each)) for each in figures["output_tokens"].values())),
        ("tokens a second", *_cells(figures["tokens_per_second"], "{:,.0f}")),
        ("minutes of the last 1%", *_cells(figures["tail_minutes"], "{:,.1f}")),
        ("in flight until then", *_cells(figures["in_flight"], "{:,.0f}")),
        ("requests refused (429)", *_cells(figures["refused_share"], "{:.1%}")),
        ("most reserved at a time, $", *_cells(figures["exposure_usd"], "{:,.2f}")),
        ("dollars kept as answers", *_cells(figures["yield"], "{:.1%}")),
        ("answers cut at max_tokens", *_cells(figures["cut_share"], "{:.1%}")),
    ]
    if figures["seeds"] == 1:
        rows = [(row[0], row[2]) for row in rows[1:]]
    seeds = figures["seeds"]
    over = f"over {seeds} seeds: tenth percentile, median, ninetieth" if seeds > 1 else "one seed"
    return [f"Rehearsed ({over})", *columns(rows), *fit(_end(figures), width).split("\n")]


def _cells(band: Figures, form: str) -> tuple[str, ...]:
    return tuple(form.format(value) for value in band.values())


def _end(figures: Figures) -> str:
    said = [f"{ENDS.get(reason, reason)}{_times(figures, number)}" for reason, number in figures["ends"].items()]
    shares = ", ".join(f"{tag} {share:.0%}" for tag, share in list(figures["providers"].items())[:4])
    each = "It" if figures["seeds"] == 1 else "Each"
    return f"{each} ended because {'; '.join(said)}. Who answered: {shares or 'nobody'}."


def _times(figures: Figures, number: int) -> str:
    return "" if number == figures["seeds"] else f" ({number} of {figures['seeds']})"


def _variants(figures: Figures) -> list[str]:
    if not figures["variants"]:
        return []
    head = ("setting", "minutes", "dollars", "tok out", "$/M tok", "429", "cut", "")
    now = (
        "as it is",
        f"{figures['minutes']['p50']:,.1f}",
        f"{figures['usd']['p50']:,.2f}",
        quantity(round(figures["output_tokens"]["p50"])),
        _per_million(figures["usd"]["p50"], figures["output_tokens"]["p50"]),
        f"{figures['refused_share']['p50']:.1%}",
        f"{figures['cut_share']['p50']:.1%}",
        "",
    )
    rows = [
        (
            each["setting"],
            f"{each['minutes']:,.1f}",
            f"{each['usd']:,.2f}",
            quantity(each["output_tokens"]),
            _per_million(each["usd"], each["output_tokens"]),
            f"{each['refused_share']:.1%}",
            f"{each['cut_share']:.1%}",
            "<- better" if each["better"] else "",
        )
        for each in figures["variants"]
    ]
    return ["What another setting would give", *columns([head, now, *rows], left=(0, 7)), *_advice(figures)]


def _per_million(usd: float, tokens: float) -> str:
    return f"{usd / tokens * 1e6:.2f}" if tokens else "-"


def _advice(figures: Figures) -> Iterable[str]:
    chosen = next((each for each in figures["variants"] if each["setting"] == figures["advice"]), None)
    if chosen is not None:
        yield (
            f"Set {chosen['setting']}: about {chosen['minutes']:,.0f} minutes and ${chosen['usd']:,.2f} instead of "
            f"{figures['minutes']['p50']:,.0f} and ${figures['usd']['p50']:,.2f}."
        )


def _notes(figures: Figures, width: int) -> list[str]:
    return [line for note in _assumed(figures) for line in fit(note, width).split("\n")]


def _assumed(figures: Figures) -> Iterable[str]:
    of, scenario = figures["assumed"], figures["scenario"]
    if of["endpoints"] == "list":
        speeds = f"speeds measured for {of['measured']}" if of["measured"] else "no speed measured without a key"
        yield f"Endpoints and prices: the API's list ({speeds}). Slots, faults and the rest: scenario {scenario}."
    else:
        yield f"Endpoints, prices, speeds, slots and faults: scenario {scenario}."
    sources = {
        "answers": "the run's own answers",
        "expected_tokens": "expected_tokens of RUN.toml",
        "scenario": f"scenario {scenario}",
    }
    found = list(dict.fromkeys(of["lengths"].values()))
    yield f"Lengths of answers: {', '.join(sources[each] for each in found)}."
    if figures["seeds"] == 1:
        yield "One seed: the last long answer alone may make some minutes; --seeds 5 tells how far they vary."
    else:
        yield "Seeds draw lengths, speeds and faults anew; that an assumption is wrong they do not tell."
    if figures["variants"] and figures["compared_in_flight"] < figures["settings"]["in_flight"]:
        yield "Settings are compared on a smaller run: the same slots, quotas and dollars in proportion."
