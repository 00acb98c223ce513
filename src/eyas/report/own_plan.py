"""The plan of a run at servers of the user's own: tokens and hours, no dollars; beside it what [fallback] would take. Text only."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from eyas.report.amounts import Figures, about, clipped, dollars, full, quantity, short, time_of, what
from eyas.report.columns import columns, plain
from eyas.report.remarks import guessed, lengths, of_lengths, of_prompts, wrapped

WIDE = 100
MORE = 1.25
"""Where so many times more may fly than flew while the tokens a second were measured, that is said."""


def concerns(figures: Figures) -> bool:
    """Whether these are figures of such a run."""
    return "source" in figures.get("local", ())


def advice(figures: Figures) -> str:
    """What is planned, how long it takes, and the other way where there is one."""
    where = _servers(figures["local"]["replicas"])
    minutes = figures["minutes"]
    time = (
        f"how long {where} will take is not known" if minutes is None else f"{time_of(minutes['expected'])} at {where}"
    )
    there = figures.get("fallback")
    lead = f"{what(figures)}: {time}, no dollars"
    if not there:
        return lead
    fits = "" if there["fits"] else ", more than may be spent"
    cost = f"{about(there['total']['usd'])}{fits}"
    return f"{lead}; or {time_of(there['minutes']['expected'])} at {there['backend']} for {cost}"


def _servers(count: int) -> str:
    return "your server" if count == 1 else f"your {count} servers"


def blocks(figures: Figures, width: int) -> list[list[str]]:
    """All that stands below the advice, block by block."""
    sentences = _remarks(figures)
    remarks = [line for sentence in sentences for line in wrapped(sentence, width)]
    return [
        _sets(figures, width),
        _both(figures, width),
        _quotas(figures),
        lengths(figures),
        _cuts(figures),
        _who(figures),
        remarks,
    ]


def _sets(figures: Figures, width: int) -> list[str]:
    number, most = (full, 24) if width >= WIDE else (short, 9)
    head = ("set", "rows", "prompts", "tok in", "answers", "tok out", "low", "high")
    rows = [_row(clipped(name, most), each, number) for name, each in figures["datasets"].items()]
    total = figures["total"] | {
        key: sum(each[key] for each in figures["datasets"].values())
        for key in ("output_tokens_low", "output_tokens_high")
    }
    return ["To be answered", *columns([head, *rows, _row("all", total, number)])]


def _row(name: str, each: Figures, number: Callable[[int], str]) -> tuple[str, ...]:
    keys = ("rows", "prompts", "prompt_tokens", "answers", "output_tokens", "output_tokens_low", "output_tokens_high")
    return (name, *(number(each[key]) for key in keys))


def _both(figures: Figures, width: int) -> list[str]:
    """Both ways side by side, and a mix of them."""
    there = figures.get("fallback")
    if not there:
        return []
    mine, mix = figures["minutes"], figures["mix"]
    name = there["backend"]
    head = ("way", "time", "$ low", "expected", "worst")
    rows = [("here", "not known" if mine is None else time_of(mine["expected"]), "-", "-", "-")]
    rows.append((name, time_of(there["minutes"]["expected"]), *dollars(there["total"]["usd"])))
    lines = ["Both ways", *columns([head, *rows], left=(0, 1))]
    if figures["sooner"]:
        sooner = "here" if figures["sooner"] == "local" else name
        cheaper = "" if figures["cheaper"] is None else "; cheaper: here"
        lines.append(f"Sooner: {sooner}{cheaper}.")
    if mix and mix["local_share"] >= 1:
        lines += wrapped(f"All of it is done here before {name} would take over.", width)
    elif mix:
        lines += wrapped(
            f"Here for {time_of(mix['local_minutes'])} ({mix['local_share']:.0%} of it), the rest by {name}: "
            f"{time_of(mix['minutes'])} in all, {about(mix['usd'])}.",
            width,
        )
    if not there["fits"]:
        lines += wrapped(f"All of it by {name} does not fit: ${there['money']['left']:,.2f} may be spent.", width)
    return lines


def _quotas(figures: Figures) -> list[str]:
    """How long each quota takes; nothing where all are alike, because the prompts end before them."""
    tps = figures["local"]["tps"]
    if tps is None:
        return []
    found: dict[tuple[str, str], list[int]] = {}
    for each in figures["scenarios"]:
        found.setdefault((short(each["tokens"]), time_of(each["tokens"] / tps / 60)), []).append(each["output_tokens"])
    if len(found) < 2:
        return []
    rows = [(quantity(quotas[0]) + (" or more" if len(quotas) > 1 else ""), *cells) for cells, quotas in found.items()]
    return ["How long each quota takes", *columns([("tokens a set", "tok out", "time"), *rows], left=(0, 2))]


def _cuts(figures: Figures) -> list[str]:
    rows = [
        (f"{each['max_tokens']:,}", f"{each['length_share']:.1%}", "<- now" if each["now"] else "")
        for each in figures["max_tokens"]
    ]
    return ["Answers that end unfinished", *columns([("max_tokens", "answers cut at it", ""), *rows], left=(2,))]


def _who(figures: Figures) -> list[str]:
    head = ("server", "context", "share")
    rows = [
        (clipped(each["tag"], 40), "?" if each["context"] is None else f"{each['context']:,}", f"{each['share']:.0%}")
        for each in figures["endpoints"]
    ]
    return ["Who answers", *columns([head, *rows])]


def _remarks(figures: Figures) -> Iterator[str]:
    yield from of_lengths(figures)
    yield from _pace(figures)
    yield from of_prompts(figures)
    for each in figures.get("excluded", ()):
        yield f"{each['tag']} is left out of this plan: {_sentence(each['reason'])}"
    if "too_long" in figures:
        of = figures["too_long"]
        yield f"Rows longer than {of['length']:,} tokens: {of['share']:.1%}, which a trainer that cuts there throws away in part."
    if figures.get("silent"):
        yield f"What [fallback] would cost is not known: {_sentence(figures['silent'])}"
    if figures.get("fallback") is not None:
        yield "`eyas plan` of a RUN.toml with [fallback] as its [target] says more of it: quotas, prices, walls."


def _sentence(text: str) -> str:
    said = plain(text, 300)
    return said if said.endswith((".", "?", "!", "…")) else f"{said}."


def _pace(figures: Figures) -> Iterator[str]:
    """Where the tokens a second are from."""
    local = figures["local"]
    together = "" if local["replicas"] == 1 else f", {local['replicas']} servers together"
    if local["source"] == "unknown":
        pilot = "" if guessed(figures) else " `eyas plan RUN.toml --pilot 50` measures it;"
        yield f"Tokens/s are not known.{pilot} --local-tps says it."
        return
    said = f"Speed: {local['tps']:,.0f} tokens/s{together}"
    if local["source"] == "given":
        yield f"{said}, as --local-tps says."
        return
    flew = local["in_flight"]
    yield f"{said}, measured on {local['answers']:,} answers of this run with {flew:,.0f} in flight."
    if figures["in_flight"] > MORE * flew:
        yield f"[limits] in_flight lets {figures['in_flight']:,} fly: the servers may do more with these, or not."
