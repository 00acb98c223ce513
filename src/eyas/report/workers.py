"""The workers of a run over many machines, as figures and in words. Pure."""

from __future__ import annotations

from typing import Any

from eyas.ledger import usd
from eyas.report.columns import columns, plain
from eyas.standing import WorkerState
from eyas.state import Left, State

HEADS = ("node", "state", "answers", "output_tokens", "usd", "leased_usd", "conversations")
"""The keys of one worker's figures."""
_WORDS = {Left.NOT: "away or at work", Left.READ: "left", Left.WRITTEN_OFF: "written off"}


def figures(state: State) -> dict[str, Any]:
    """What each worker did, by its number, as `eyas status --json` has it; empty for a run of one machine."""
    return {
        str(number): {
            "node": worker.node,
            "state": _WORDS[worker.left],
            "answers": worker.answers,
            "output_tokens": worker.output_tokens,
            "usd": usd(worker.cost),
            "leased_usd": usd(leased(worker)),
            "conversations": len(worker.works),
        }
        for number, worker in state.workers.items()
    }


def leased(worker: WorkerState) -> int:
    """What it may still spend, nano-dollars."""
    return worker.lease.left if worker.left is Left.NOT else 0


def words(worker: WorkerState, *, away: bool) -> str:
    """What became of it; empty where it takes part. `away`: it is known that it does not."""
    return ("away" if away else "") if worker.left is Left.NOT else _WORDS[worker.left]


def table(status: dict[str, Any]) -> list[str]:
    """Lines about them, from the figures of status."""
    found: dict[str, Any] = status["workers"]
    if not found:
        return []
    head = ("worker", "node", "state", "answers", "tokens", "usd", "leased", "has")
    rows = [
        (
            number,
            plain(each["node"], 24) or "-",
            each["state"],
            f"{each['answers']:,}",
            f"{each['output_tokens']:,}",
            f"{each['usd']:.4f}",
            f"{each['leased_usd']:.4f}",
            f"{each['conversations']:,}",
        )
        for number, each in found.items()
    ]
    return columns([head, *rows], left=(0, 1, 2))
