"""Answers that were made elsewhere: what their rows say of themselves bounds what is made of them (pure)."""

from __future__ import annotations

from itertools import chain
from typing import Any, cast

import msgspec

from eyas.errors import UsageError
from eyas.families import Loaded
from eyas.tokens.prompt import forms
from eyas.types import Completion, Label, Record, Sequence

IMPORTED = "imported"
"""Where an imported answer keeps its file, line and format, the label that its row had, and ranges of ids not to train on."""

OTHER_PROMPT = (
    "the engine's prompt ids are not this prompt as the family renders it: another template, mode or system prompt"
)

_SURENESS = {label: place for place, label in enumerate(Label)}


def other_prompt(record: Record, family: Loaded, thinking: bool) -> str:
    """Why the prompt ids of an imported answer are not those of its prompt; empty where they are, or there are none."""
    given = record.completion.prompt_ids
    if given is None or IMPORTED not in record.completion.extra:
        return ""
    for _, messages in forms(record.prompt.messages):
        try:
            if tuple(family.prompt_ids(messages, record.prompt.tools, thinking)) == given:
                return ""
        except UsageError as error:
            return str(error)
    return OTHER_PROMPT


def bounded(sequence: Sequence, completion: Completion) -> Sequence:
    """A sequence no surer than the row it was imported from: its label, and mask 0 where that row had it."""
    known = cast("dict[str, Any]", completion.extra.get(IMPORTED) or {})
    if "label" not in known:
        return sequence
    label = max(sequence.label, Label(known["label"]), key=_SURENESS.__getitem__)
    unsure = known.get("unsure") or ()
    mask = bytearray(sequence.loss_mask)
    start = len(sequence.prompt_ids)
    for place in chain.from_iterable(range(start + first, start + end) for first, end in unsure):
        mask[place] = 0
    reason = sequence.reason or (
        "" if label is sequence.label else f"its row was labelled {label} when it was imported"
    )
    return msgspec.structs.replace(sequence, label=label, loss_mask=tuple(mask), reason=reason)
