"""Who answered: what it cost, how fast it was, what failed, and how sure the ids are, by endpoint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from eyas.report.document import Endpoint, Report, Spread
from eyas.report.page.parts import bars, words
from eyas.report.page.parts.labels import COLOURS, key, ordered, strict_share
from eyas.report.page.parts.markup import Child, Html, tag
from eyas.report.page.parts.tables import Column, Section, legend, missing, part, table, worded
from eyas.report.page.parts.top import command, paid


def providers(report: Report) -> Section:
    """Four tables, the busiest endpoint first."""
    asked = sorted(report.endpoints, key=lambda each: (-each.answers, each.name, each.tag))
    head = "Providers" if paid(report) else "Servers"
    if not asked:
        return part("providers", head, "", missing("Nobody has answered yet. Later:", command(report)))
    parts = (_cost(asked, with_money=paid(report)), _pace(asked), _failures(asked), _labels(asked))
    return part("providers", head, "By endpoint, the busiest first.", *parts)


def _who(endpoint: Endpoint) -> Html:
    """Its name, and its tag where that says more."""
    more = tag("small", endpoint.tag, of="path") if endpoint.tag and endpoint.tag != endpoint.name else None
    return tag("span", endpoint.name or endpoint.tag, more, of="who")


def _block(title: str, how: str, *children: Child) -> Html:
    return tag("div", tag("h3", title), tag("p", how, of="how"), *children)


def _cost(asked: Sequence[Endpoint], *, with_money: bool) -> Html:
    columns = [worded("endpoint"), Column("answers"), Column("output", "tokens"), Column("supervised", "tokens")]
    if not with_money:
        most = max(each.supervised_tokens for each in asked)
        rows = [[*_amounts(each), bars.lone(each.supervised_tokens, most)] for each in asked]
        how = "The bar is what a strict export would train on."
        return _block("Tokens", how, table("Answers and tokens by endpoint", [*columns, worded("")], rows))
    columns += [
        Column("paid", "USD"),
        Column("a million output", "USD"),
        Column("a million supervised", "USD"),
        worded(""),
    ]
    most = max((each.usd_per_m_supervised or 0 for each in asked), default=0)
    paid_, output, supervised = (
        words.column(getattr(each, name) for each in asked)
        for name in ("usd", "usd_per_m_output", "usd_per_m_supervised")
    )
    rows = [
        [*_amounts(each), paid_[i], output[i], supervised[i], bars.lone(each.usd_per_m_supervised, most)]
        for i, each in enumerate(asked)
    ]
    how = "The bar is the price of a million supervised tokens: what counts, prompts and losses included."
    return _block("Cost", how, table("Answers, tokens and dollars by endpoint", columns, rows))


def _amounts(each: Endpoint) -> list[Child]:
    return [_who(each), words.count(each.answers), words.count(each.output_tokens), words.count(each.supervised_tokens)]


def _pace(asked: Sequence[Endpoint]) -> Html:
    first, whole = _spreads([each.first_token_seconds for each in asked]), _spreads([each.seconds for each in asked])
    columns = [worded("endpoint"), Column("first token", "s, p50"), Column("first token", "s, p95"), worded("")]
    columns += [Column("whole", "s, p50"), Column("whole", "s, p95"), worded(""), Column("a stream", "tokens/s, p50")]
    rows = [[_who(each), *first[i], *whole[i], words.count(each.tokens_per_second.p50)] for i, each in enumerate(asked)]
    how = "Half of the answers are faster than p50, one in twenty is slower than p95. The marks reach from one to the other."
    return _block("Latency", how, table("Seconds to the first token and to the end, by endpoint", columns, rows))


def _spreads(spreads: Sequence[Spread]) -> list[list[Child]]:
    """For each its percentiles, and a mark from one to the other."""
    most = max((each.p95 or each.p50 or 0 for each in spreads), default=0)
    said = words.seconds(value for each in spreads for value in (each.p50, each.p95))
    return [[said[2 * i], said[2 * i + 1], bars.reach(each.p50, each.p95, most)] for i, each in enumerate(spreads)]


def _failures(asked: Sequence[Endpoint]) -> Html:
    kinds = Counter[str]()
    for each in asked:
        kinds.update(each.failures)
    if not kinds:
        return _block("Failures", "No request failed.")
    names = [name for name, _ in kinds.most_common()]
    colours = bars.colours(names)
    most = max(sum(each.failures.values()) for each in asked)
    rows: list[list[Child]] = []
    for each in asked:
        failed = sum(each.failures.values())
        said = ", ".join(f"{name} {each.failures[name]:,}" for name in names if each.failures.get(name))
        bar = bars.stacked([(name, each.failures.get(name, 0), colours[name]) for name in names], most)
        rows.append(
            [
                _who(each),
                words.count(failed),
                words.share(failed / (failed + each.answers or 1)),
                bar,
                said or words.NONE,
            ]
        )
    columns = [
        worded("endpoint"),
        Column("failed", "requests"),
        Column("share", "of all"),
        worded(""),
        worded("by kind"),
    ]
    how = "Requests that brought no whole answer. Each was asked again, or its part was kept."
    return _block(
        "Failures", how, legend(_keys(names, colours)), table("Failed requests by endpoint and kind", columns, rows)
    )


def _keys(names: Sequence[str], colours: dict[str, str]) -> list[tuple[str, str]]:
    """The legend; kinds that share the last colour share their line."""
    by: dict[str, list[str]] = {}
    for name in names:
        by.setdefault(colours[name], []).append(name)
    return [(kind, ", ".join(each)) for kind, each in by.items()]


def _labels(asked: Sequence[Endpoint]) -> Html:
    counts = Counter[str]()
    for each in asked:
        counts.update(each.labels)
    if not counts:
        return _block("Labels", "No answer has a label yet.")
    names = ordered(counts)
    rows: list[list[Child]] = [
        [
            _who(each),
            words.count(sum(each.labels.values())),
            words.share(strict_share(each.labels)),
            bars.stacked(
                [(name, each.labels.get(name, 0), COLOURS.get(name, "bad3")) for name in names],
                sum(each.labels.values()),
            ),
            ", ".join(f"{name} {each.labels[name]:,}" for name in names if each.labels.get(name)) or words.NONE,
        ]
        for each in asked
    ]
    columns = [
        worded("endpoint"),
        Column("labelled", "answers"),
        Column("strict", "of them"),
        worded(""),
        worded("by label"),
    ]
    how = "How the token ids are known, from the surest to the unusable. A strict export takes the blue ones."
    return _block("Labels", how, key(names), table("Labels by endpoint", columns, rows))
