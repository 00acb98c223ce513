"""How faithful a served weight format is to a model's native one: a table for each native format, never a count of bits.

INT4 (group 32) and NVFP4 are both 4.5 bits a weight, but on different grids; re-encoding INT4-native weights as NVFP4
moves about 80 % of them, with 10 % relative RMS error. What the formats are: native.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import NamedTuple

from eyas.providers.native import AUTHORS, KNOWN, MIXED, NATIVE, Knowledge, Native
from eyas.providers.rules import Rule
from eyas.types import Endpoint


class Fidelity(StrEnum):
    """How a served format relates to the native one; the first three are faithful.

    SAME: the format itself. WIDER: it holds every native weight. NEAR: all but values that no trained weight takes.
    OTHER: weights are re-quantized. UNKNOWN: nobody says.
    """

    SAME = "same"
    WIDER = "wider"
    NEAR = "near"
    OTHER = "other"
    UNKNOWN = "unknown"

    @property
    def faithful(self) -> bool:
        """Whether answers are those of the native weights."""
        return self in (Fidelity.SAME, Fidelity.WIDER, Fidelity.NEAR)


class Accept(NamedTuple):
    """Labels by fidelity to one native format; every other known label is OTHER."""

    same: frozenset[str]
    wider: frozenset[str]
    near: frozenset[str] = frozenset()


class Judgement(NamedTuple):
    """The fidelity of an endpoint, the rule that found it, and why, in words."""

    fidelity: Fidelity
    rule: Rule
    reason: str


_FLOATS = frozenset({"bf16", "fp16", "fp32"})
_EIGHT = frozenset({"int8", "fp8", "mxfp8"})
LABELS = frozenset({"int4", "int8", "fp4", "mxfp4", "nvfp4", "fp6", "fp8", "mxfp8", "fp16", "bf16", "fp32"})
"""Labels of OpenRouter's open enum; one that is not here says nothing."""

# Refused although it may be lossless: mxfp8 for fp8, nvfp4 for mxfp4. Both depend on how the provider converted: a row of
# KNOWN lets one in. "fp4" says less than "mxfp4", but is what servers of MXFP4 weights declare.
ACCEPT = {
    "int4": Accept(frozenset({"int4"}), _EIGHT | _FLOATS),
    "fp8": Accept(frozenset({"fp8"}), _FLOATS),
    "mxfp4": Accept(frozenset({"mxfp4", "fp4"}), _EIGHT | _FLOATS),
    MIXED: Accept(frozenset({"mxfp4", "fp4"}), frozenset({"fp8", "mxfp8"}) | _FLOATS),
    "bf16": Accept(frozenset({"bf16"}), frozenset({"fp32"}), frozenset({"fp16"})),
}
"""What may stand in for each native format. int8 and fp8 hold 4-bit codes within the rounding of their scales (measured:
0.6 and 2.2 to 2.6 % RMS, against 10 % of a foreign 4-bit grid)."""


def native_row(model: str) -> Native | None:
    """What is known of a model's own weights; None where nothing is. The first row that fits counts."""
    name = model.lower().partition(":")[0]
    return next((row for row in NATIVE if any(fnmatchcase(name, glob) for glob in row.models)), None)


def native_format(model: str) -> str | None:
    """The model's native weight format; None where it is not known here."""
    row = native_row(model)
    return row.format if row else None


def fidelity(native: str, served: str | None) -> Fidelity:
    """How `served` relates to weights that are `native`, a key of ACCEPT."""
    label = (served or "unknown").lower()
    accept = ACCEPT[native]
    if label in accept.same or label == native:
        return Fidelity.SAME
    if label in accept.wider:
        return Fidelity.WIDER
    if label in accept.near:
        return Fidelity.NEAR
    return Fidelity.OTHER if label in LABELS else Fidelity.UNKNOWN


def judge(endpoint: Endpoint, today: str = "", known: Sequence[Knowledge] = KNOWN) -> Judgement:
    """The fidelity of an endpoint.

    Dated knowledge goes before its label. The author's own endpoint serves the native weights unless its label says
    otherwise. `today` is a date as YYYY-MM-DD: knowledge that has expired by then does not count; without it all counts.
    """
    native = native_format(endpoint.model)
    row = next((row for row in known if _tells(row, endpoint, today)), None)
    if row is not None and native is not None:
        served = fidelity(native, row.actual)
        what = f"known to serve {row.actual}, whatever its label says ({row.date}: {row.source})"
        means = f"which re-quantizes the native {native} weights" if served is Fidelity.OTHER else f"native is {native}"
        return Judgement(served, Rule.KNOWLEDGE, f"{what}, {means}")
    label = endpoint.quantization or "no label"
    found = Fidelity.UNKNOWN if native is None else fidelity(native, endpoint.quantization)
    if found is Fidelity.UNKNOWN and endpoint.slug.lower() in _author(endpoint.model):
        return Judgement(Fidelity.SAME, Rule.AUTHOR, f"{label}, but it is the author's own endpoint")
    if native is None:
        return Judgement(found, Rule.UNKNOWN, f"the native format of {endpoint.model} is not known to eyas")
    words = {
        Fidelity.SAME: f"{label} is the native format",
        Fidelity.WIDER: f"{label} holds every native {native} weight",
        Fidelity.NEAR: f"{label} holds native {native} weights but for extremes that none of them takes",
        Fidelity.OTHER: f"{label} re-quantizes the native {native} weights",
        Fidelity.UNKNOWN: f"says nothing usable of its precision ({label}); native is {native}",
    }
    return Judgement(found, Rule.UNKNOWN if found is Fidelity.UNKNOWN else Rule.LABEL, words[found])


def _tells(row: Knowledge, endpoint: Endpoint, today: str) -> bool:
    expired = bool(row.expires and today and today > row.expires)
    name = endpoint.model.lower().partition(":")[0]
    return not expired and endpoint.slug.lower() == row.slug and fnmatchcase(name, row.models)


def _author(model: str) -> tuple[str, ...]:
    author = model.lower().partition("/")[0]
    return author, *AUTHORS.get(author, ())
