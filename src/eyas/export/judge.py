"""Whether an answer becomes a row, cut or whole, and what is counted of it (pure)."""

from __future__ import annotations

import msgspec

from eyas.export.options import LABELS, Options
from eyas.exporters.tally import TRAINER_LENGTHS, Fact
from eyas.tokens import SPELLED
from eyas.types import Finish, Record, Sequence


def judge(record: Record, sequence: Sequence, options: Options) -> tuple[Sequence, Fact]:
    """The sequence within --max-length, and the fact of the answer."""
    whole, notes = sequence, list[str]()
    step, reason = _lost(record, whole, options)
    if options.max_length is not None and len(whole.loss_mask) > options.max_length:
        sequence = cut(whole, options.max_length)
        notes.append(f"answers were cut to {options.max_length} ids")
        if not reason:
            reason = _untrainable(bytes(sequence.loss_mask), options.min_loss_tokens)
            step = "max_length" if reason else ""
    if whole.reason == SPELLED:
        notes.append(f"answers: {SPELLED}")
    mask = bytes(sequence.loss_mask)
    fact = Fact(
        dataset=record.work.dataset,
        provider=record.completion.provider,
        label=whole.label,
        source=record.prompt.source.file if record.prompt.source else "",
        cost=record.cost,
        limited=record.completion.finish is Finish.LENGTH,
        tokens=len(whole.completion_ids),
        kept=len(sequence.completion_ids),
        length=len(mask),
        supervised=mask.count(1),
        beyond=tuple(mask[limit:].count(1) for limit in TRAINER_LENGTHS.values()),
        step=step,
        reason=reason,
        notes=tuple(notes),
    )
    return sequence, fact


def exclusion(record: Record, sequence: Sequence, options: Options) -> str:
    """Why an answer is not exported, or an empty string."""
    return judge(record, sequence, options)[1].reason


def cut(sequence: Sequence, length: int) -> Sequence:
    """The first ids of a sequence."""
    return msgspec.structs.replace(
        sequence,
        prompt_ids=sequence.prompt_ids[:length],
        completion_ids=sequence.completion_ids[: max(0, length - len(sequence.prompt_ids))],
        loss_mask=sequence.loss_mask[:length],
    )


def _lost(record: Record, sequence: Sequence, options: Options) -> tuple[str, str]:
    """The step at which an answer is lost before it is cut, and why; two empty strings if it is not."""
    if sequence.label not in LABELS[options.labels]:
        return "label", f"label {sequence.label}"
    if options.on_length == "drop" and record.completion.finish is Finish.LENGTH:
        return "kept", "ended at max_tokens"
    reason = _untrainable(bytes(sequence.loss_mask), options.min_loss_tokens)
    return ("kept" if reason else ""), reason


def _untrainable(mask: bytes, fewest: int) -> str:
    """Why no trainer can use a row, or an empty string; they fail on rows in which no two neighbours count."""
    if b"\1" not in mask:
        return "no supervised token"
    if b"\1\1" not in mask:
        return "no two adjacent supervised tokens"
    return f"fewer than {fewest} supervised tokens" if mask.count(1) < fewest else ""
