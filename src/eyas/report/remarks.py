"""What a plan rests on and what limits it, in sentences, from the figures of `eyas plan --json`."""

from __future__ import annotations

from collections.abc import Iterator

from eyas.report.amounts import Figures, clipped
from eyas.report.columns import columns
from eyas.report.fit import fit

KEYS = "https://openrouter.ai/settings/keys"


def remarks(figures: Figures, width: int) -> list[str]:
    """The sentences, each wrapped to the width."""
    if not figures["total"]["answers"]:
        return [line for sentence in of_prompts(figures) for line in wrapped(sentence, width)]
    found = [
        *of_lengths(figures),
        *_speed(figures),
        *of_prompts(figures),
        *_flight(figures),
        *_walls(figures),
        *_extra(figures),
    ]
    return [line for sentence in found for line in wrapped(sentence, width)]


def lengths(figures: Figures) -> list[str]:
    """Tokens an answer, set by set; nothing where all are alike, which a remark says."""
    lengths = {name: each["length"] for name, each in figures["datasets"].items()}
    if len({tuple(each.values()) for each in lengths.values()}) == 1:
        return []
    head = ("set", "low", "mean", "high", "")
    rows = [
        (clipped(name, 16), *(f"{each[key]:,}" for key in ("low", "mean", "high")), reason(each))
        for name, each in lengths.items()
    ]
    return ["Tokens an answer, on average", *columns([head, *rows], left=(0, 4))]


def wrapped(sentence: str, width: int) -> list[str]:
    """A sentence in lines of at most that width, its further lines indented."""
    return fit(sentence, width).split("\n")


def of_lengths(figures: Figures) -> Iterator[str]:
    """Where the lengths come from; they themselves stand here where all datasets are alike, else in a table."""
    alike = {tuple(each["length"].values()) for each in figures["datasets"].values()}
    if len(alike) == 1:
        of = next(iter(figures["datasets"].values()))["length"]
        mean = f"{of['mean']:,} tokens an answer on average ({of['low']:,} to {of['high']:,}); {reason(of)}"
        yield f"Lengths: {mean}."
    if guessed(figures):
        does = "asks for" if "source" in figures.get("local", ()) else "buys"
        yield f"`eyas plan RUN.toml --pilot 50` {does} 50 answers a set, which belong to the run, and plans by them."


def guessed(figures: Figures) -> bool:
    """Whether the length of some dataset's answers is nothing but a guess."""
    return any(each["length"]["source"] == "prior" for each in figures["datasets"].values())


def reason(length: Figures) -> str:
    """Where an estimate of lengths comes from, in words."""
    return {
        "answers": f"from {length['answers']:,} answers of this run",
        "expected_tokens": "RUN.toml says so (expected_tokens)",
        "prior": "a guess, for no answer is known",
    }[length["source"]]


def _speed(figures: Figures) -> Iterator[str]:
    speed = figures["speed"]
    why = f"from {speed['answers']:,} answers of this run" if speed["answers"] else "a guess"
    yield (
        f"Speed: {speed['expected']:,.0f} tokens/s a stream ({speed['slow']:,.0f} to {speed['fast']:,.0f}); {why}. "
        "Refused requests and outages come on top of the minutes."
    )


def of_prompts(figures: Figures) -> Iterator[str]:
    """Rows that are not asked, and prompts that may be too few."""
    for name, each in figures["datasets"].items():
        out = [
            (each["duplicates"], "duplicates"),
            (each["quarantined"], "that cannot be asked"),
            (each["left_out"], "left out as RUN.toml says"),
        ]
        said = ", ".join(f"{count:,} {what}" for count, what in out if count)
        if said:
            yield f"{name}: of {each['rows']:,} rows {said}."
        if each["unserved"]:
            yield f"{name}: {each['unserved']:,} works are too long for every endpoint at this max_tokens, and are not asked."

    short = [
        f"{name} {(each['output_tokens'] + each['kept_tokens']) / each['quota']:.0%}"
        for name, each in figures["datasets"].items()
        if each["short"]
    ]
    if short:
        yield f"Prompts may be too few for the quota; of it they bring on average: {', '.join(short)}. Add prompts, or `samples`."


def _flight(figures: Figures) -> Iterator[str]:
    start, end = figures["max_in_flight_at_start"], figures["max_in_flight_at_cap"]
    carries = (
        ""
        if start is None
        else f"; the money carries {start:,} at the start and {end:,} when {figures['margin']:.0%} is left"
    )
    yield f"In flight: {figures['in_flight']:,} requests reserve ${figures['exposure_usd']:,.2f}{carries}."
    balance = figures["money"]["balance"]
    much = " This is more than the balance: expect such waits." if balance and figures["exposure_usd"] > balance else ""
    yield (
        "OpenRouter itself lets what flies hold only a part of the balance, which it does not publish; above it requests "
        f"wait (402) and are asked again, at no cost.{much}"
    )


def _walls(figures: Figures) -> Iterator[str]:
    money = figures["money"]
    cap, key, balance = money["cap"], money["key"], money["balance"]
    own = None if cap is None else max(0.0, cap - money["spent"])
    if money["key_limit"] == "unknown":
        yield "The key's own limit is not known: set OPENROUTER_API_KEY (or --key-file) and plan again to see it."
    elif money["key_limit"] == "none":
        wall = "" if cap is None else f" of ${cap:,.2f}"
        yield f"The key has no limit of its own: give it one{wall} at {KEYS}, as a second wall behind the cap."
    elif own is not None and key < own:
        yield (
            f"The key may spend ${key:,.2f} more, this run ${own:,.2f}: {_stops(figures, key)} at the key's limit, with exit "
            f"6. Raise that at {KEYS}, or lower [budget] usd."
        )
    else:
        yield f"Second wall: the key may spend ${key:,.2f} more."
    if balance is not None and own is not None and balance < own:
        yield (
            f"The account holds ${balance:,.2f}, this run may spend ${own:,.2f}: {_stops(figures, balance)} there, with exit "
            "6. Add credits, or lower [budget] usd."
        )
    elif balance is not None:
        yield f"The account holds ${balance:,.2f}."


def _stops(figures: Figures, wall: float) -> str:
    return (
        f"should it cost more than ${wall:,.2f}, it stops"
        if figures["total"]["usd"]["expected"] <= wall
        else "it would stop"
    )


def _extra(figures: Figures) -> Iterator[str]:
    if "too_long" in figures:
        of = figures["too_long"]
        yield (
            f"Rows longer than {of['length']:,} tokens: {of['share']:.1%}; a trainer that cuts there throws away "
            f"${of['usd']:,.2f} of answers."
        )
    if "local" in figures:
        of = figures["local"]
        yield f"On a machine of yours at {of['tps']:,.0f} tokens/s: {of['hours']:,.1f} hours, $0 to an API."
