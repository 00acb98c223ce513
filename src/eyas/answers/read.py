"""Which form a row has, by the keys that no other form has, and its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from eyas.answers.answer import Answer, BadAnswer, Form
from eyas.answers.engines import sglang, vllm
from eyas.answers.fields import asked_in, fields_of, list_of
from eyas.answers.talks import COLUMNS, talk
from eyas.answers.trained import trained
from eyas.prompts import Row
from eyas.prompts.columns import listed

_READERS: Mapping[Form, Callable[[Row], Iterator[Answer]]] = {
    Form.SGLANG: sglang,
    Form.VLLM: vllm,
    Form.ROWS: trained,
    Form.TEXT: talk,
}


def answers_of(row: Row, form: Form | None = None) -> list[Answer]:
    """The answers that a row holds, one or more.

    Args:
        row: as it was read.
        form: how to read it; None: as its keys say.

    Raises:
        BadAnswer: it holds none that can be read.
    """
    guessed = form_of(row.data)
    form = form or guessed
    if form is None or (form is not guessed and not _could_be(form, row.data)):
        raise BadAnswer(
            f"no {'' if form is None else f'{form} '}answer is seen in it (there is {listed(row.data)}): give it output_ids, "
            "token_ids, input_ids with loss_mask, or a conversation that ends in the assistant's turn"
        )
    return list(_READERS[form](row))


def question_of(row: Row) -> str:
    """What a row asked last, as far as that can be read; to recognise a row by that holds no answer."""
    places = (row.data, fields_of(row.data.get("body")), fields_of(row.data.get("request")))
    try:
        prompt, text, _ = asked_in(row, *places)
    except BadAnswer:
        return ""
    return str(prompt.messages[-1].get("content") or "") if prompt else text


def form_of(data: Mapping[str, Any]) -> Form | None:
    """The form of a row; None where it holds no answer. Ids go before text: a row may have both."""
    return next((form for form in _READERS if _could_be(form, data)), None)


def _could_be(form: Form, data: Mapping[str, Any]) -> bool:
    there = {name for name, value in data.items() if value is not None}  # Parquet fills missing columns with null
    match form:
        case Form.SGLANG:
            return "output_ids" in there
        case Form.VLLM:
            outputs = list_of(data.get("outputs"))
            held = bool(outputs and fields_of(outputs[0]))
            return held or not there.isdisjoint(("token_ids", "choices", "custom_id"))
        case Form.ROWS:
            return {"input_ids", "loss_mask"} <= there
        case Form.TEXT:
            return any(data.get(name) for name in COLUMNS)
