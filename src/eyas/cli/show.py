"""`eyas show`."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from eyas import config as configs
from eyas.cli.listed import listed
from eyas.cli.say import columns_of, say
from eyas.cli.shown import text, token_text
from eyas.cli.style import style_of
from eyas.config import RunConfig
from eyas.engine import where as language
from eyas.engine.facts import values
from eyas.engine.inputs import load_tokenizer
from eyas.errors import UsageError
from eyas.export import learn_habits
from eyas.families import Loaded
from eyas.ledger import usd
from eyas.records import Run
from eyas.state import Attempt, stranded
from eyas.survey.reading import texts
from eyas.tokens import rebuild
from eyas.types import Record, Usage, Work


def command(
    rundir: Path, work_id: str | None, where: str | None, limit: int | None, tokens: bool, as_json: bool
) -> None:
    """Show one work of a run, or list some."""
    config = configs.frozen(rundir)
    if work_id is None:
        _list(rundir, where, limit, one_only="--tokens" if tokens else "--json" if as_json else "")
        return
    if where is not None or limit is not None:
        raise UsageError(
            "--where and --limit choose works to list: leave them away beside an ID, or the ID beside them"
        )
    with closing(Run(rundir)) as run:
        work = run.find(work_id)
        loaded = None if run.record(work) is None else load_tokenizer(config).loaded
        figures = shown(run, work, config, loaded)
    if as_json:
        print(json.dumps(figures, indent=2, ensure_ascii=False))
        return
    width, style = columns_of(sys.stdout), style_of(sys.stdout)
    if not tokens:
        print(text(figures, width, style))
    elif loaded is None:
        raise UsageError(f"{work.key} has no answer, so there are no tokens to show: leave --tokens away to see why")
    else:
        spelled = texts(figures["input_ids"], loaded.vocab)
        print(token_text(spelled, figures["loss_mask"], width, style))
        said = "is faint" if style.on else "stands in ⟨⟩"
        say(f"{figures['id']}: what {said} is not supervised; every id is in --json")


def _list(rundir: Path, where: str | None, limit: int | None, one_only: str) -> None:
    if one_only:
        raise UsageError(f"{one_only} shows one work: give its ID; `eyas show {rundir}` lists some")
    field = None if where is None else language.asked(where)
    terms = () if where is None or field else language.parse(where)
    with closing(Run(rundir)) as run:
        if field:
            print(values(run.state, field))
            return
        lines, more = listed(run, terms, limit, columns_of(sys.stdout), style_of(sys.stdout))
    if lines:
        print("\n".join(lines))
    say(more + f"`eyas show {rundir} ID` shows one of them; the start of its id will do")


def shown(run: Run, work: Work, config: RunConfig, loaded: Loaded | None) -> dict[str, Any]:
    """Everything about one work, as JSON. The label is what export would give; `loaded` is needed where there is an answer.

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
    return figures if record is None or loaded is None else figures | _answer(record, run, config, loaded)


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


def _answer(record: Record, run: Run, config: RunConfig, family: Loaded) -> dict[str, Any]:
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
