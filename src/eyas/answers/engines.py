"""Rows of engines: ids as SGLang and vLLM return them, from their servers, their batch runs and their offline engines (pure).

SGLang gives `{"text", "output_ids", "meta_info"}`, and `prompt_token_ids` if it was asked to:
https://docs.sglang.ai/basic_usage/native_api.html, https://docs.sglang.ai/basic_usage/offline_engine_api.html
vLLM's offline `RequestOutput` has `prompt`, `prompt_token_ids` and `outputs` with `text`, `token_ids`, `finish_reason`:
https://github.com/vllm-project/vllm/blob/main/vllm/outputs.py. Its servers give `token_ids` in a choice, and
`prompt_token_ids` beside the choices of a chat or in the choice of a completion, if asked by `return_token_ids`:
https://docs.vllm.ai/en/latest/serving/openai_compatible_server/. A batch run puts that body into `response.body`:
https://docs.vllm.ai/en/latest/examples/offline_inference/openai_batch/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from eyas.answers.answer import Answer, BadAnswer, Form, Ids
from eyas.answers.fields import Fields, asked_in, fields_of, finish_of, ids_of, list_of, text_of, usage_of
from eyas.prompts import Row
from eyas.types import Prompt, ToolCall

_REASONING = ("reasoning_content", "reasoning")


def sglang(row: Row) -> Iterator[Answer]:
    """The answer of a row with `output_ids`.

    Raises:
        BadAnswer: it has none, or what was asked cannot be read.
    """
    data = row.data
    meta, request = fields_of(data.get("meta_info")), fields_of(data.get("request"))
    prompt, question, ids = asked_in(row, data, request)
    given = ids_of(_first(data, request, "prompt_token_ids", "input_ids"), "input_ids") or ids
    sampled = ids_of(data.get("output_ids"), "output_ids")
    if sampled is None:
        raise BadAnswer("output_ids is missing: have SGLang return ids (do not skip them), or import the row as text")
    asked = text_of(request.get("text"))
    yield Answer(
        row.file,
        row.line,
        Form.SGLANG,
        prompt=prompt,
        prompt_text=question or asked,
        prompt_ids=given,
        ids=sampled,
        text=text_of(data.get("text")),
        finish=finish_of(meta.get("finish_reason") or data.get("finish_reason")),
        usage=usage_of(meta),
        model=text_of(data.get("model")),
    )


def vllm(row: Row) -> Iterator[Answer]:
    """The answers of a row: one for each of its outputs or choices.

    Raises:
        BadAnswer: the request failed, nothing was answered, or what was asked cannot be read.
    """
    data = row.data
    response = fields_of(data.get("response"))
    body = fields_of(response.get("body")) or (response if "choices" in response else data)
    failed = data.get("error") or body.get("error")
    choices = list_of(body.get("choices"))
    if failed or ("custom_id" in data and not choices):
        raise BadAnswer(f"the request has no answer ({str(failed or response)[:120]}): ask it again")
    request = fields_of(data.get("body")) or fields_of(data.get("request"))
    prompt, question, ids = asked_in(row, request, fields_of(request.get("body")), data)
    given = ids_of(_first(body, data, "prompt_token_ids"), "prompt_token_ids") or ids
    several = choices or list_of(data.get("outputs")) or [data]
    for one in map(fields_of, several):
        own = ids_of(one.get("prompt_token_ids"), "prompt_token_ids") or given
        usage = usage_of(fields_of(body.get("usage"))) if len(several) == 1 else None
        yield _choice(row, one, (prompt, question, own), Answer(row.file, row.line, Form.VLLM, usage=usage))


def _choice(row: Row, one: Fields, asked: tuple[Prompt | None, str, Ids | None], base: Answer) -> Answer:
    message = fields_of(one.get("message"))
    ids = ids_of(one.get("token_ids"), "token_ids")
    text = text_of(one.get("text"))
    if ids is None and not (message or text):
        raise BadAnswer("it holds neither token_ids nor a text: ask with return_token_ids, or remove the row")
    prompt, question, prompt_ids = asked
    return Answer(
        base.file,
        base.line,
        base.form if ids is not None else Form.TEXT,
        prompt=prompt,
        prompt_text=question,
        prompt_ids=prompt_ids,
        ids=ids,
        text=text if ids is not None else "",
        reasoning=next((found for name in _REASONING if (found := text_of(message.get(name)))), ""),
        content=text_of(message.get("content")) if message else "" if ids is not None else text,
        tool_calls=tuple(map(_call, list_of(message.get("tool_calls")))) if ids is None else (),
        finish=finish_of(one.get("finish_reason")),
        usage=base.usage,
        model=text_of(fields_of(fields_of(row.data.get("response")).get("body")).get("model") or row.data.get("model")),
    )


def _call(value: Any) -> ToolCall:
    call = fields_of(value)
    function = fields_of(call.get("function"))
    name, arguments = function.get("name"), function.get("arguments")
    if not isinstance(name, str) or not isinstance(arguments, str):
        raise BadAnswer(
            "a tool call has no name or no arguments as text: write {'function': {'name': …, 'arguments': …}}"
        )
    return ToolCall(text_of(call.get("id")), name, arguments)


def _first(one: Fields, other: Fields, *names: str) -> Any:
    return next((place[name] for name in names for place in (one, other) if place.get(name) is not None), None)
