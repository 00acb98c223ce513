"""Who answered in a run that asked servers of the user's own: answers, tokens, tokens a second, dollars where there are any."""

from __future__ import annotations

from itertools import chain
from typing import Any

from eyas.ledger import usd
from eyas.providers.throughput import Throughput, imported, own, spans, throughput
from eyas.report.columns import columns, plain
from eyas.state import State

MOST_NAMED = 4
"""Servers that a progress line names one by one."""


def free(state: State) -> bool:
    """Whether the run has no cap and has moved no dollar, so that none is to be spoken of."""
    money = state.money
    return money.cap is None and not money.committed


def providers(state: State) -> dict[str, Any]:
    """What each endpoint or server did, by its tag, as `eyas status --json` has it."""
    mine = own(state)
    seen = spans(state, mine)
    return {
        tag: {
            "name": provider.name,
            "answers": provider.answers,
            "output_tokens": provider.output_tokens,
            "usd": usd(provider.cost),
            "failures": {kind.value: count for kind, count in sorted(provider.failures.items())},
            "local": tag in mine,
            "tokens_per_second": _rounded(throughput(seen.get(tag, ()))),
        }
        for tag, provider in sorted(state.providers.items())
    }


def speed(state: State) -> dict[str, Any] | None:
    """Tokens a second of the user's own servers together while they were busy; None where that is not known."""
    found = throughput(chain.from_iterable(spans(state, own(state)).values()))
    if found is None:
        return None
    return {
        "tokens_per_second": _rounded(found),
        "in_flight": round(found.in_flight, 1),
        "busy_seconds": round(found.seconds, 1),
        "answers": found.answers,
    }


def _rounded(found: Throughput | None) -> float | None:
    return None if found is None else round(found.tps, 1)


def table(status: dict[str, Any]) -> list[str]:
    """Lines about who answered, from the figures of status; none in a run that asked an API alone."""
    among: dict[str, Any] = status["providers"]
    if not any(each["local"] for each in among.values()):
        return []
    paid = any(each["usd"] for each in among.values())
    head = ("who answered", "answers", "tokens", "tokens/s", "failures", *(("usd",) if paid else ()))
    rows = [
        (
            plain(tag, 40),
            f"{each['answers']:,}",
            f"{each['output_tokens']:,}",
            "-" if each["tokens_per_second"] is None else f"{each['tokens_per_second']:,.0f}",
            f"{sum(each['failures'].values()):,}",
            *(((f"{each['usd']:.4f}" if each["usd"] else "-"),) if paid else ()),
        )
        for tag, each in among.items()
    ]
    return [*columns([head, *rows]), *_together(status["throughput"])]


def _together(found: dict[str, Any] | None) -> list[str]:
    if found is None:
        return []
    flew, busy = found["in_flight"], found["busy_seconds"]
    rate = f"{found['tokens_per_second']:,.0f} tokens/s"
    return [
        f"speed: {rate} of your servers, with {flew:,.0f} in flight, over the {busy:,.0f} s in which they were busy"
    ]


def words(state: State) -> str:
    """The same for a progress line: answers by server, or of all servers and the API; empty where nobody else answers."""
    mine, brought = own(state), imported(state)
    if not mine:
        return ""
    if mine == state.providers.keys():
        if not 1 < len(mine) <= MOST_NAMED:
            return ""
        return ", ".join(f"{plain(tag, 40)} {state.providers[tag].answers:,}" for tag in sorted(mine))
    groups = (
        ("by servers of yours", mine),
        ("by the API", state.providers.keys() - mine - brought),
        ("imported", brought),
    )
    return ", ".join(f"{sum(state.providers[tag].answers for tag in tags):,} {name}" for name, tags in groups if tags)
