"""Servers of the user's: one or more replicas of an engine, nothing billed. Which engine, its dialect says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import msgspec
from pydantic import SecretStr

from eyas.backends import errors
from eyas.backends.base import Ask, Wire
from eyas.transport import Request
from eyas.types import Billed, Failure, FailureKind, Prompt

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Dialect:
    """How an engine is spoken to.

    Attributes:
        name: as people call it.
        wire: the form of its answers.
        path: where questions go, behind the root of a replica.
        body: what is asked, by the model's name there.
        takes_ids: whether prompts are sent as ids.
        about: the path that tells what is served there.
        streams: whether it is asked to stream where the user says nothing of it.
        wants_ids: whether an answer without token ids is none.
    """

    name: str
    wire: Wire
    path: str
    body: Callable[[str, Prompt, Ask], Json]
    takes_ids: bool
    about: str
    streams: bool = True
    wants_ids: bool = True


@dataclass(frozen=True, slots=True)
class Local:
    """All replicas. `roots` are their addresses by tag; the key, if there is one, goes to them only, and is never printed."""

    dialect: Dialect
    roots: Mapping[str, str]
    model: str
    key: SecretStr = field(default_factory=lambda: SecretStr(""))
    extra_headers: Mapping[str, str] = field(default_factory=dict[str, str])
    extra_body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    bills: bool = field(default=False, init=False)

    @property
    def wire(self) -> Wire:
        """The form of its answers."""
        return self.dialect.wire

    @property
    def takes_ids(self) -> bool:
        """Whether prompts are sent as ids."""
        return self.dialect.takes_ids

    @property
    def streams(self) -> bool:
        """Whether it is asked to stream where the user says nothing of it."""
        return self.dialect.streams

    @property
    def where(self) -> str:
        """The addresses, for messages."""
        return ", ".join(self.roots.values())

    def body(self, prompt: Prompt, ask: Ask) -> bytes:
        """The exact bytes of a request for `prompt`."""
        return msgspec.json.encode(merged(self.dialect.body(self.model, prompt, ask), self.extra_body))

    def chat(self, body: bytes, tag: str, *, cached: bool = False) -> Request:
        """The request that sends such a body to the replica `tag`."""
        del cached  # no engine keeps answers
        return Request("POST", self.roots[tag] + self.dialect.path, self._headers(), body)

    def about(self, tag: str) -> Request:
        """Ask a replica what it serves."""
        return self.get(tag, self.dialect.about)

    def get(self, tag: str, path: str) -> Request:
        """A GET at a replica."""
        return Request("GET", self.roots[tag] + path, self._headers())

    def post(self, tag: str, path: str, body: Json) -> Request:
        """A POST at a replica."""
        return Request("POST", self.roots[tag] + path, self._headers(), msgspec.json.encode(body))

    def failure(self, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """What a response with a status other than 200 stands for."""
        return failure(status, headers, body)

    def _headers(self) -> dict[str, str]:
        key = self.key.get_secret_value()
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        return headers | dict(self.extra_headers)


def failure(status: int, headers: Mapping[str, str], body: bytes) -> Failure:
    """What a response with a status other than 200 stands for: nothing is billed, whatever it is."""
    found = errors.from_response(status, headers, _enveloped(body))
    if found.kind in (FailureKind.CREDITS, FailureKind.NO_ENDPOINT, FailureKind.IN_FLIGHT_BUDGET):
        return msgspec.structs.replace(found, kind=FailureKind.REFUSED, billed=Billed.NO)
    return msgspec.structs.replace(found, billed=Billed.NO)


def tag_of(url: str) -> str:
    """How a replica is named in the books: HOST:PORT."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def root_of(url: str) -> str:
    """The address of a replica without the `/v1` that clients of OpenAI want."""
    return url.rstrip("/").removesuffix("/v1")


def merged(body: Json, more: Mapping[str, Any]) -> Json:
    """A body with the user's own fields; tables are joined, so that one more sampling parameter keeps the others."""
    joined = dict(body)
    for name, value in more.items():
        own = joined.get(name)
        joined[name] = {**own, **value} if isinstance(own, dict) and isinstance(value, dict) else value
    return joined


class _Bare(msgspec.Struct):
    """An error without its envelope, as older vLLM and FastAPI write it."""

    error: object = None
    message: object = None
    detail: object = None
    code: object = None


def _enveloped(body: bytes) -> bytes:
    """An error with its envelope; anything else as it is."""
    try:
        bare = msgspec.json.decode(body, type=_Bare)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body
    said = bare.message or bare.detail
    if bare.error is not None or said is None:
        return body
    return msgspec.json.encode({"error": {"message": str(said), "code": bare.code}})
