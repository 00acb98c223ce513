"""Rows made for trainers, `input_ids` with `loss_mask`: those of speculators and of eyas itself (pure).

speculators' regenerator writes prompt (mask 0) and answer (mask 1), `conversations` for people, and `metadata` with
`finish_reason` and `usage`: https://github.com/vllm-project/speculators/blob/main/scripts/response_regeneration/script.py
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from eyas.answers.answer import Answer, BadAnswer, Form
from eyas.answers.fields import asked_in, fields_of, finish_of, ids_of, list_of, text_of, usage_of
from eyas.prompts import Row
from eyas.types import Label, Prompt


def trained(row: Row) -> Iterator[Answer]:
    """The answer of a row: what the last span of its mask covers, its history before it.

    A row of eyas is one answer whatever its mask: zeros in it mark ids that are not sure. Where it begins is known for certain
    only by its prompt, see `Answer.begun_at`.

    Raises:
        BadAnswer: ids and mask do not belong together, or nothing in the row was sampled.
    """
    data, meta = row.data, fields_of(row.data.get("metadata"))
    ids = ids_of(data.get("input_ids"), "input_ids") or ()
    mask = _mask(data.get("loss_mask"), len(ids))
    label = label_of(meta.get("label"))
    start, end = _span(mask, whole=label is not None)
    usage = usage_of(fields_of(meta.get("usage"))) if label is None else None
    yield Answer(
        row.file,
        row.line,
        Form.ROWS,
        prompt=None if label is not None else _asked(row),
        prompt_ids=ids[:start],
        ids=ids[start:end],
        row_text=text_of(data.get("text")) if label is not None else "",
        finish=finish_of(meta.get("finish") or meta.get("finish_reason") or data.get("finish_reason")),
        usage=usage,
        model=text_of(meta.get("model")),
        name=text_of(data.get("id")) if label is not None else "",
        label=label,
        unsure=_unsure(mask[start:end]),
    )


def label_of(value: object) -> Label | None:
    """The label that eyas gave a row; None of any other row."""
    return Label(value) if isinstance(value, str) and value in list(Label) else None


def _mask(value: object, length: int) -> bytes:
    items = list_of(value)
    if len(items) == 1 and isinstance(items[0], list):
        items = list_of(items[0])
    if len(items) != length or any(item not in (0, 1) for item in items):
        raise BadAnswer(
            f"loss_mask is no list of {length} zeros and ones, one for each of input_ids: mend it or remove the row"
        )
    return bytes(map(int, items))


def _span(mask: bytes, *, whole: bool) -> tuple[int, int]:
    """Where the answer begins and ends: from the first 1 to the end of the row if it is `whole`, else the last span of 1."""
    end = mask.rfind(1) + 1
    if not end:
        raise BadAnswer("its loss_mask is 0 throughout, so nothing in it was sampled: remove the row")
    return (mask.find(1), len(mask)) if whole else (mask.rfind(0, 0, end) + 1, end)


def _unsure(mask: bytes) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    place = 0
    for bit, run in groupby(mask):
        length = len(list(run))
        if not bit:
            found.append((place, place + length))
        place += length
    return tuple(found)


def _asked(row: Row) -> Prompt | None:
    """What the conversation beside the ids asks, where there is one that can be read."""
    talk = list_of(row.data.get("conversations") or row.data.get("messages"))
    if len(talk) < 2:
        return None
    try:
        return asked_in(row, {"messages": talk[:-1], "tools": row.data.get("tools")})[0]
    except BadAnswer:
        return None  # for people only: the ids say it all
