"""Errors of the API in every envelope that was seen: what kind, whether billed, how long to wait."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyas.backends.errors import DETAIL, from_error, from_response, retry_after
from eyas.types import Billed, Failure, FailureKind

K = FailureKind


def envelope(code: Any, message: str = "", **metadata: Any) -> bytes:
    """The usual envelope."""
    return json.dumps({"error": {"code": code, "message": message, "metadata": metadata or None}}).encode()


ROWS: list[tuple[int, FailureKind, str, dict[str, Any]]] = [
    (400, K.REFUSED, "max_tokens exceeded", {"error_type": "max_tokens_exceeded"}),
    (400, K.REFUSED, "Provider returned error", {"raw": {"code": 400}, "provider_name": "Chutes"}),
    (401, K.KEY, "Missing Authentication header", {}),
    (402, K.CREDITS, "Insufficient credits. Add more", {}),
    (402, K.CREDITS, "This request requires more credits, or fewer max_tokens. You requested up to 9 tokens", {}),
    (402, K.REFUSED, "Prompt tokens limit exceeded: 9000 > 8000", {}),
    (
        402,
        K.IN_FLIGHT_BUDGET,
        "busy",
        {"reason": "in_flight_budget_exhausted", "limit_source": "openrouter_in_flight_budget"},
    ),
    (402, K.CREDITS, "too heavy", {"reason": "weight_exceeds_budget", "limit_source": "openrouter_credits"}),
    (402, K.CREDITS, "no balance", {"limit_source": "openrouter_credits"}),
    (402, K.KEY, "key limit", {"limit_source": "openrouter_key_limit"}),
    (403, K.KEY, "key limit", {"limit_source": "openrouter_key_limit"}),
    (403, K.KEY, "spent", {"limit_source": "openrouter_guardrail_budget", "scope": "key"}),
    (403, K.KEY, "spent", {"limit_source": "openrouter_workspace_budget"}),
    (403, K.KEY, "Key limit exceeded (total limit). Manage it using https://openrouter.ai/settings/keys", {}),
    (403, K.KEY, "Workspace monthly budget of $50 exceeded", {}),
    (403, K.REFUSED, "Your chosen model requires moderation and your input was flagged", {"reasons": ["x"]}),
    (403, K.REFUSED, "refused", {"flagged_input": "...", "model_slug": "m"}),
    (403, K.REFUSED, "guardrail", {"patterns": ["x"]}),
    (404, K.NO_ENDPOINT, "No allowed providers are available for the selected model.", {}),
    (404, K.NO_ENDPOINT, "gone", {"available_providers": ["a"], "requested_providers": ["b"]}),
    (404, K.NO_ENDPOINT, "No endpoints found that support tool use", {}),
    (404, K.NO_ENDPOINT, "No endpoints found matching your data policy", {}),
    (404, K.REFUSED, "Not Found", {}),
    (408, K.UPSTREAM, "Request timed out", {}),
    (412, K.REFUSED, "precondition_failed", {}),
    (413, K.REFUSED, "payload_too_large", {}),
    (422, K.REFUSED, "unprocessable", {}),
    (429, K.RATE_LIMIT, "X is temporarily rate-limited upstream. Please retry shortly", {}),
    (429, K.RATE_LIMIT, "free tier", {"headers": {"X-RateLimit-Remaining": "0"}}),
    (499, K.UPSTREAM, "client closed", {}),
    (500, K.UPSTREAM, "Internal Server Error", {}),
    (502, K.UPSTREAM, "Provider returned error", {"error_type": "provider_unavailable"}),
    (503, K.RATE_LIMIT, "provider_overloaded", {}),
    (504, K.UPSTREAM, "timeout", {}),
    (524, K.UPSTREAM, "edge timeout", {}),
    (529, K.RATE_LIMIT, "overloaded", {}),
]


@pytest.mark.parametrize(("code", "kind", "message", "metadata"), ROWS)
def test_every_documented_error_is_of_its_kind_and_free(
    code: int, kind: FailureKind, message: str, metadata: dict[str, Any]
) -> None:
    """An envelope is never billed; under its own status and inside a 200 it means the same."""
    for status in (code, 200):
        failure = from_response(status, {}, b"\n         \n" + envelope(code, message, **metadata))
        assert (failure.kind, failure.billed, failure.status) == (kind, Billed.NO, code)
        assert failure.provider == metadata.get("provider_name", "")
        assert message in failure.detail


@pytest.mark.parametrize(
    ("status", "kind", "billed"),
    [
        (401, K.KEY, Billed.NO),
        (403, K.UPSTREAM, Billed.NO),
        (404, K.REFUSED, Billed.NO),
        (413, K.REFUSED, Billed.NO),
        (429, K.RATE_LIMIT, Billed.NO),
        (500, K.LOST, Billed.UNKNOWN),
        (502, K.LOST, Billed.UNKNOWN),
        (503, K.RATE_LIMIT, Billed.NO),
        (504, K.LOST, Billed.UNKNOWN),
        (524, K.LOST, Billed.UNKNOWN),
        (529, K.RATE_LIMIT, Billed.NO),
    ],
)
@pytest.mark.parametrize("body", [b"<html>524: A timeout occurred</html>", b"", b"null", b'{"ok": 1}', b"\xff\xfe"])
def test_a_page_instead_of_an_envelope_may_have_cost(
    status: int, kind: FailureKind, billed: Billed, body: bytes
) -> None:
    """A gateway's page of 5xx leaves the outcome unknown; 429, 503 and 529 are refusals whatever their body."""
    failure = from_response(status, {"retry-after": "4"}, body)
    assert (failure.kind, failure.billed, failure.status) == (kind, billed, status)
    assert failure.retry_after == (4 if kind is K.RATE_LIMIT else None)


def test_other_envelopes_are_read_too() -> None:
    """String and integer codes, `http_status` without a code, a bare string, an error without anything."""
    assert from_error({"code": "429"}, 200, {}).kind is K.RATE_LIMIT
    assert from_error({"code": "server_error"}, 200, {}).status == 500
    assert from_error({"error_type": "capacity_exhausted", "http_status": 429}, 200, {}).kind is K.RATE_LIMIT
    assert from_error({"code": "server_error"}, 429, {}).kind is K.RATE_LIMIT
    assert from_error("Upstream idle timeout exceeded", 200, {}).detail == "500 Upstream idle timeout exceeded"
    assert from_error({}, 200, {}) == Failure(K.UPSTREAM, Billed.NO, "500 no message", status=500)
    raw = from_error({"code": 502, "message": "bad", "metadata": {"raw": {"a": 1}, "remedy_hint": "wait"}}, 200, {})
    assert raw.detail == '502 bad ({"a":1}) - wait'
    assert len(from_error({"message": "x" * 9999}, 500, {}).detail) == DETAIL


@pytest.mark.parametrize(
    ("headers", "fields", "seconds"),
    [
        ({"retry-after": "7"}, None, 7),
        ({"retry-after": "0.5"}, None, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, None, 1.5),
        ({"retry-after": "-1"}, None, None),
        ({"retry-after": "soon"}, None, None),
        ({"retry-after": "nan"}, None, None),
        ({"retry-after": "999999999"}, None, None),
        ({}, {"availability": {"retry_after": 12}}, 12),
        ({}, {"availability": {"retry_after": None}}, None),
        ({}, {"availability": "no"}, None),
        ({"retry-after": "3"}, {"availability": {"retry_after": 12}}, 3),
        ({}, {}, None),
    ],
)
def test_how_long_to_wait(headers: dict[str, str], fields: dict[str, Any] | None, seconds: float | None) -> None:
    """Seconds, milliseconds, or a hint in the body; nonsense is no hint."""
    assert retry_after(headers, fields) == seconds


def test_a_date_to_wait_for() -> None:
    """Retry-After as a date, with any zone or none, is the seconds until then; a past one is now."""
    then = datetime.now(UTC) + timedelta(seconds=60)
    for date in (
        format_datetime(then, usegmt=True),
        format_datetime(then.replace(tzinfo=None)),
        then.strftime("%a, %d %b %Y %H:%M:%S"),
    ):
        seconds = retry_after({"retry-after": date})
        assert seconds is not None
        assert 50 < seconds <= 60
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["error", "code", "message", "metadata", "raw", "availability"]), inner)
    ),
)


@given(st.integers(100, 599), st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms"]), st.text()), JSON)
def test_any_answer_whatever_is_one_failure(status: int, headers: dict[str, str], data: Any) -> None:
    """Nothing that a server can say makes the reader raise; what is not a page of 5xx is free."""
    failure = from_response(status, headers, json.dumps(data).encode())
    assert (failure.billed is Billed.UNKNOWN) == (failure.kind is K.LOST)
    assert failure.retry_after is None or failure.retry_after >= 0
    assert len(failure.detail) <= DETAIL
