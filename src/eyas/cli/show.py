"""`eyas show`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import msgspec

from eyas import config as configs
from eyas.config import RunConfig
from eyas.engine.inputs import load_tokenizer
from eyas.export import learn_habits
from eyas.ledger import usd
from eyas.records import Run
from eyas.state import Attempt, stranded
from eyas.tokens import rebuild
from eyas.types import Record, Usage, Work


@click.command("show")
@click.argument("rundir", type=click.Path(path_type=Path))
@click.argument("work_id", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(rundir: Path, work_id: str, as_json: bool) -> None:
    """Show one work of RUNDIR: prompt, answer, pieces, ids, mask, attempts and cost.

    ID is DATASET/PROMPTID16/t0/s0 as in the rows, or the start of it.
    """
    config = configs.frozen(rundir)
    run = Run(rundir)
    try:
        work = run.find(work_id)
        figures = shown(run, work, config)
    finally:
        run.close()
    print(json.dumps(figures, indent=2, ensure_ascii=False) if as_json else text(figures))


def shown(run: Run, work: Work, config: RunConfig) -> dict[str, Any]:
    """Everything about one work, as JSON. The label is what export would give.

    `messages` of a later turn hold the answers that it was asked after; `turns` are the user's turns still to come.
    """
    prompt = run.question(work)
    known = run.state.works.get(work)
    waits = "skipped" if work in stranded(run.state) else "pending"
    figures: dict[str, Any] = {
        "schema": 1,
        "id": work.key,
        "state": known.verdict.value if known and known.verdict and not known.owed else waits,
        "detail": known.detail if known else "",
        "source": msgspec.to_builtins(prompt.source),
        "messages": list(prompt.messages),
        "tools": list(prompt.tools),
        "turns": list(prompt.turns),
        "attempts": [_attempt(attempt) for attempt in run.attempts(work)],
    }
    record = run.record(work)
    return figures if record is None else figures | _answer(record, run, config)


def _attempt(attempt: Attempt) -> dict[str, Any]:
    settled = attempt.settled
    return {
        "attempt": attempt.id,
        "number": attempt.number,
        "endpoint": attempt.tag,
        "provider": attempt.provider,
        "generation_id": attempt.generation_id,
        "verdict": settled.verdict.value if settled else "in flight",
        "kind": settled.kind.value if settled and settled.kind else None,
        "detail": settled.detail if settled else "",
        "reserved_usd": usd(attempt.reserved),
        "usd": None if attempt.cost is None else usd(attempt.cost),
        "written_off": attempt.written_off,
    }


def _answer(record: Record, run: Run, config: RunConfig) -> dict[str, Any]:
    family = load_tokenizer(config).loaded
    answer = record.completion
    sequence = rebuild(
        record, family, learn_habits(run.records, family, config.thinking), config.thinking(record.work.dataset)
    )
    ids = [*sequence.prompt_ids, *sequence.completion_ids]
    return {
        "reasoning": answer.reasoning,
        "content": answer.content,
        "tool_calls": msgspec.to_builtins(answer.tool_calls),
        "finish": answer.finish,
        "usage": _usage(answer.usage),
        "pieces": msgspec.to_builtins(answer.pieces),
        "first_token_seconds": answer.first_token,
        "seconds": answer.seconds,
        "label": sequence.label.value,
        "label_reason": sequence.reason,
        "input_ids": ids,
        "loss_mask": list(sequence.loss_mask),
        "tokens": [family.vocab.decode([number]) for number in ids],
    }


def _usage(usage: Usage | None) -> dict[str, Any] | None:
    if usage is None:
        return None
    figures = msgspec.to_builtins(usage)
    return {**{k: v for k, v in figures.items() if k != "cost"}, "usd": None if usage.cost is None else usd(usage.cost)}


def text(figures: dict[str, Any]) -> str:
    """The same for people; text of others cannot move the cursor or colour the screen."""
    why = f": {inert(figures['detail'])}" if figures["detail"] else ""
    lines = [f"{figures['id']}  {figures['state']}{why}"]
    for message in figures["messages"]:
        lines += ["", f"[{message['role']}]", inert(str(message.get("content") or ""))]
        called: list[dict[str, Any]] = [call.get("function") or {} for call in message.get("tool_calls") or ()]
        lines += [f"[tool call] {inert(str(each.get('name')))} {inert(str(each.get('arguments')))}" for each in called]
    for name in ("reasoning", "content"):
        if figures.get(name):
            lines += ["", f"[{name}]", inert(figures[name])]
    for call in figures.get("tool_calls", ()):
        lines += ["", f"[tool call {inert(call['id'])}] {inert(call['name'])} {inert(call['arguments'])}"]
    if "label" in figures:
        why = f" ({figures['label_reason']})" if figures["label_reason"] else ""
        counts = f"{sum(figures['loss_mask'])} supervised of {len(figures['input_ids'])} ids"
        lines += [
            "",
            f"finish {figures['finish']}, label {figures['label']}{why}, {counts}; every id and piece with --json",
        ]
    lines += ["", "attempts:"]
    for each in figures["attempts"]:
        cost = ", unknown cost" if each["usd"] is None else f", ${each['usd']:.6f}"
        if not (each["usd"] or each["reserved_usd"]):
            cost = ""  # a server of the user's own
        cost += " (written off)" if each["written_off"] else ""
        what = " ".join(part for part in (each["verdict"], each["kind"] or "", inert(each["detail"])) if part)
        lines.append(f"  {each['number']}. {each['endpoint']} {each['generation_id'] or '(no id)'}: {what}{cost}")
    return "\n".join(lines)


def inert(value: str) -> str:
    """Text without control characters; line breaks and tabs stay."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in value)
