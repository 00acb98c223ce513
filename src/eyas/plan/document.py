"""The plan document: a plan's figures with what they rest on, so that `eyas run plan.json` can tell whether they still hold.

No clock and no chance goes in: the same RUN.toml, prompts and prices give the same bytes. What a run has done since does
not make its plan stale; what it would ask, of whom, and at which price, does.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from eyas.config import RunConfig
from eyas.errors import UsageError
from eyas.ledger import usd
from eyas.plan.facts import SetFacts
from eyas.types import Endpoint

KIND = "eyas plan"
MOST_SAID = 6
"""Differences of one kind among endpoints that are said one by one."""


class SetBasis(msgspec.Struct, frozen=True):
    """One dataset's prompts: how many, their tokens, and a digest of ids and counts."""

    prompts: int
    tokens: int
    digest: str


class EndpointBasis(msgspec.Struct, frozen=True):
    """One endpoint that may answer: who, and its prices in nano-dollars (a million tokens; a request)."""

    tag: str
    provider: str
    quantization: str | None
    context: int | None
    prompt: int
    completion: int
    request: int

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What makes it the same endpoint: a tag alone is not unique."""
        return self.tag, self.provider, self.quantization or "", self.context or 0


class Basis(msgspec.Struct, frozen=True):
    """What a plan rests on: the keys of RUN.toml that are not at their default, the prompts, the endpoints that may answer."""

    config: dict[str, Any]
    sets: dict[str, SetBasis]
    endpoints: tuple[EndpointBasis, ...]

    @property
    def digest(self) -> str:
        """sha256 of all of it."""
        return hashlib.sha256(msgspec.json.encode(self, order="sorted")).hexdigest()


class Planned(msgspec.Struct, frozen=True):
    """A plan document as it is read back; `run_toml` is relative to the folder of the document."""

    kind: str
    run_toml: str
    basis: Basis
    digest: str


def basis(config: RunConfig, sets: Mapping[str, SetFacts], endpoints: Sequence[Endpoint]) -> Basis:
    """What a plan of this config rests on; servers of one's own come and go, and cost nothing: they are not in it."""
    priced = map(_endpoint, endpoints) if config.target.bills else ()
    return Basis(
        flat(config),
        {name: SetBasis(of.prompts, of.prompt_tokens, of.digest) for name, of in sets.items()},
        tuple(sorted(priced, key=lambda each: each.key)),
    )


def flat(config: RunConfig) -> dict[str, Any]:
    """The keys that are not at their default by dotted name, datasets by theirs: `budget.usd`, `datasets.B3.source`."""
    data = config.model_dump(mode="json", exclude_defaults=True, exclude={"base"})
    data["datasets"] = {each["name"]: each for each in data["datasets"]}
    # A header may be a secret; that it changed can be told without keeping it.
    return {n: _hidden(v) if ".extra_headers." in n else v for n, v in sorted(_leaves("", data))}


def _hidden(value: Any) -> str:
    return f"sha256:{hashlib.sha256(str(value).encode()).hexdigest()[:12]}"


def _leaves(name: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        fields = cast("dict[str, Any]", value)
        return [leaf for key, each in fields.items() for leaf in _leaves(f"{name}.{key}" if name else key, each)]
    return [(name, value)]


def _endpoint(each: Endpoint) -> EndpointBasis:
    return EndpointBasis(
        tag=each.tag,
        provider=each.provider,
        quantization=each.quantization,
        context=each.context,
        prompt=each.prices.prompt,
        completion=each.prices.completion,
        request=each.prices.request,
    )


def document(figures: Mapping[str, Any], on: Basis, run_toml: Path, folder: Path) -> str:
    """The text of plan.json, to be kept in `folder`."""
    path = os.path.relpath(run_toml.resolve(), folder.resolve())
    head = {"kind": KIND, "run_toml": path, "digest": on.digest, "basis": msgspec.to_builtins(on)}
    return json.dumps({**figures, **head}, indent=2, sort_keys=True) + "\n"


def read(path: Path) -> Planned:
    """A plan document.

    Raises:
        UsageError: it cannot be read, or is none, or was changed by hand.
    """
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Planned)
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): check the path") from None
    except msgspec.DecodeError as error:
        raise UsageError(f"{path} is no plan ({error}): make one with `eyas plan RUN.toml --out {path}`") from None
    if found.kind != KIND or found.digest != found.basis.digest:
        raise UsageError(f"{path} was changed by hand: make it anew with `eyas plan RUN.toml --out {path}`")
    return found


def differences(planned: Basis, now: Basis) -> list[str]:
    """What is not as it was planned, in sentences; none for a plan that still holds."""
    return [
        *_keys(planned.config, now.config),
        *_sets(planned.sets, now.sets),
        *_endpoints({e.key: e for e in planned.endpoints}, {e.key: e for e in now.endpoints}),
    ]


def _keys(planned: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return [
        f"RUN.toml: {name} was {_value(planned, name)}, is {_value(now, name)}"
        for name in sorted({*planned, *now})
        if planned.get(name) != now.get(name)
    ]


def _value(config: Mapping[str, Any], name: str) -> str:
    return json.dumps(config[name], ensure_ascii=False) if name in config else "not set"


def _sets(planned: Mapping[str, SetBasis], now: Mapping[str, SetBasis]) -> list[str]:
    found: list[str] = []
    for name in sorted(planned.keys() & now.keys()):
        was, has = planned[name], now[name]
        if was.digest == has.digest:
            continue
        more = has.prompts - was.prompts
        what = f"{abs(more):,} {'more' if more > 0 else 'fewer'}" if more else "some are others"
        found.append(
            f"{name}: had {was.prompts:,} prompts ({was.tokens:,} tokens), has {has.prompts:,} ({has.tokens:,}): {what}"
        )
    return found  # sets that came or went stand among the keys of RUN.toml


def _endpoints(planned: Mapping[Any, EndpointBasis], now: Mapping[Any, EndpointBasis]) -> list[str]:
    gone = [
        f"{planned[key].tag}: may no longer answer (`eyas providers` says why)" for key in planned.keys() - now.keys()
    ]
    new = [f"{now[key].tag}: may answer now, at {_price(now[key].completion)}" for key in now.keys() - planned.keys()]
    moved = [
        f"{now[key].tag}: {what} was {_price(was)}, is {_price(has)}"
        for key in planned.keys() & now.keys()
        for what, was, has in (
            ("input", planned[key].prompt, now[key].prompt),
            ("output", planned[key].completion, now[key].completion),
        )
        if was != has
    ]
    fees = [
        f"{now[key].tag}: a request was ${usd(planned[key].request)}, is ${usd(now[key].request)}"
        for key in planned.keys() & now.keys()
        if planned[key].request != now[key].request
    ]
    return [line for found in (gone, new, moved, fees) for line in _few(sorted(found))]


def _few(lines: list[str]) -> list[str]:
    more = len(lines) - MOST_SAID
    return lines if more <= 1 else [*lines[:MOST_SAID], f"and {more} more endpoints like this"]


def _price(nano: int) -> str:
    return f"${usd(nano):.3f} a million tokens"
