"""An API's error, in whatever envelope it comes, as one Failure: the only place that reads codes and messages.

Source: https://openrouter.ai/docs/api-reference/errors-and-debugging and /limits; forms seen in public threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, cast

import msgspec

from eyas.types import Billed, Failure, FailureKind

RATE_LIMITS = (429, 503, 529)
REFUSALS = (400, 404, 412, 413, 422)
IN_FLIGHT = "openrouter_in_flight_budget"
KEY_LIMITS = ("openrouter_key_limit", "openrouter_guardrail_budget", "openrouter_workspace_budget")
DETAIL = 400
"""Characters of an error's text that are kept."""

Json = dict[str, Any]


def from_response(status: int, headers: Mapping[str, str], body: bytes) -> Failure:
    """The failure that a response with a status other than 200 stands for."""
    try:
        data = msgspec.json.decode(body.strip() or b"null")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _page(status, headers, body)
    error = _mapping(data).get("error")
    if error is None:
        return _page(status, headers, body)
    return from_error(error, status, headers)


def from_error(error: Any, status: int, headers: Mapping[str, str]) -> Failure:
    """The failure that an `error` object stands for; inside a 200 its own code decides."""
    fields = _mapping(error) if not isinstance(error, str) else {"message": error}
    metadata = _mapping(fields.get("metadata"))
    code = _code(fields, status)
    kind = _kind(code, fields, metadata)
    return Failure(
        kind=kind,
        billed=Billed.NO,
        detail=_detail(code, fields, metadata),
        retry_after=retry_after(headers, fields),
        status=code,
        provider=str(metadata.get("provider_name") or ""),
    )


def retry_after(headers: Mapping[str, str], fields: Json | None = None) -> float | None:
    """Seconds that the API asks to wait, from Retry-After (seconds or a date), a millisecond form, or the body."""
    if "retry-after-ms" in headers:
        return _seconds(headers["retry-after-ms"], 1000)
    value = headers.get("retry-after")
    if value is not None:
        seconds = _seconds(value, 1)
        return seconds if seconds is not None else _until(value)
    hint = _mapping((fields or {}).get("availability")).get("retry_after")
    return None if hint is None else _seconds(str(hint), 1)


def _page(status: int, headers: Mapping[str, str], body: bytes) -> Failure:
    """A body that is no error envelope: a gateway's page, or nothing at all."""
    text = body[:DETAIL].decode(errors="replace").strip()
    detail = f"HTTP {status} with a body that is not the API's: {text[:120]!r}"
    if status in RATE_LIMITS:
        return Failure(FailureKind.RATE_LIMIT, Billed.NO, detail, retry_after(headers), status)
    if status == 401:
        return Failure(FailureKind.KEY, Billed.NO, detail, None, status)
    if status >= 500:
        return Failure(FailureKind.LOST, Billed.UNKNOWN, detail, None, status)
    if status in REFUSALS:
        return Failure(FailureKind.REFUSED, Billed.NO, detail, None, status)
    return Failure(FailureKind.UPSTREAM, Billed.NO, detail, None, status)


def _code(fields: Json, status: int) -> int:
    for name in ("code", "http_status", "status"):
        try:
            code = int(str(fields.get(name)))
        except ValueError:
            continue
        if 400 <= code <= 599:
            return code
    return status if status != 200 else 500


def _kind(code: int, fields: Json, metadata: Json) -> FailureKind:
    source = str(metadata.get("limit_source") or fields.get("limit_source") or "")
    message = str(fields.get("message") or "").lower()
    if source == IN_FLIGHT:
        return FailureKind.IN_FLIGHT_BUDGET
    if source in KEY_LIMITS or (code in (402, 403) and "limit exceeded" in message and "prompt tokens" not in message):
        return FailureKind.KEY
    if code in RATE_LIMITS:
        return FailureKind.RATE_LIMIT
    if code == 401:
        return FailureKind.KEY
    if code == 402:
        return FailureKind.REFUSED if "prompt tokens limit" in message else FailureKind.CREDITS
    if code == 403:
        return _forbidden(message, metadata)
    if code == 404 and _no_endpoint(message, metadata):
        return FailureKind.NO_ENDPOINT
    return FailureKind.REFUSED if code in REFUSALS else FailureKind.UPSTREAM


def _forbidden(message: str, metadata: Json) -> FailureKind:
    """A 403 about the prompt concerns one work; any other one concerns the key."""
    about_prompt = any(name in metadata for name in ("reasons", "flagged_input", "patterns"))
    if about_prompt or any(word in message for word in ("moderation", "flagged", "content policy", "guardrail")):
        return FailureKind.REFUSED
    return FailureKind.KEY


def _no_endpoint(message: str, metadata: Json) -> bool:
    return "available_providers" in metadata or "no endpoints" in message or "no allowed providers" in message


def _detail(code: int, fields: Json, metadata: Json) -> str:
    text = str(fields.get("message") or fields.get("error_type") or "no message")
    raw = metadata.get("raw")
    if raw:
        text += f" ({raw if isinstance(raw, str) else msgspec.json.encode(raw).decode()})"
    if metadata.get("provider_name"):
        text = f"{metadata['provider_name']}: {text}"
    hint = metadata.get("remedy_hint")
    return f"{code} {text}{f' - {hint}' if hint else ''}"[:DETAIL]


def _seconds(value: str, per_second: float) -> float | None:
    try:
        seconds = float(value) / per_second
    except ValueError:
        return None
    return seconds if 0 <= seconds < 86_400 else None


def _until(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _mapping(value: Any) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}
