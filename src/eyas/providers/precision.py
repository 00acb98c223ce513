"""Native weight formats of models, and what may stand in for them.

Bits are the wrong order: INT4 (group 32) and NVFP4 are both 4.5 bits a weight, but on different grids; re-encoding
INT4-native weights as NVFP4 moves about 80 % of them, with 10 % relative RMS error. So there is a table for each native
format, and dated knowledge of single providers goes before what an endpoint says of itself.
"""

from __future__ import annotations

from enum import StrEnum
from fnmatch import fnmatchcase
from typing import NamedTuple

from eyas.types import Endpoint


class Fidelity(StrEnum):
    """How a served format relates to the native one. SAME and WIDER are faithful; NARROWER and UNKNOWN are not."""

    SAME = "same"
    WIDER = "wider"
    NARROWER = "narrower"
    UNKNOWN = "unknown"


class Native(NamedTuple):
    """A model's own weight format, with where that is known from."""

    models: str
    format: str
    source: str


class Knowledge(NamedTuple):
    """What one provider is known to serve, whatever it says of itself."""

    slug: str
    models: str
    actual: str
    date: str
    source: str


NATIVE = (
    Native("moonshotai/kimi-k2.5*", "int4", "compressed-tensors W4A16 QAT, group 32; tag moonshotai/int4"),
    Native("moonshotai/kimi-k2-thinking*", "int4", "compressed-tensors W4A16 QAT, group 32"),
    Native("moonshotai/kimi-k2.6*", "int4", "compressed-tensors W4A16 QAT, group 32; tag moonshotai/int4"),
    Native("moonshotai/kimi-k2*", "fp8", "block-wise FP8 weights as released"),
    Native("deepseek/deepseek-r1-distill*", "bf16", "Qwen and Llama weights as released"),
    Native(
        "deepseek/deepseek-*", "fp8", "trained and released in block-wise FP8 (DeepSeek-V3 report, arXiv 2412.19437)"
    ),
    Native("openai/gpt-oss-*", "mxfp4", "MXFP4 experts as released"),
    Native("qwen/qwen3*", "bf16", "main release; from memory, its repositories were not seen"),
    Native("z-ai/glm-*", "bf16", "main release; from memory, its repositories were not seen"),
)
"""The first row that fits a model counts."""


class Accept(NamedTuple):
    """Labels that are the native format itself, and labels that hold each of its weights."""

    same: frozenset[str]
    wider: frozenset[str]


ACCEPT = {
    "int4": Accept(frozenset({"int4"}), frozenset({"int8", "fp8", "mxfp8", "bf16", "fp16", "fp32"})),
    "fp8": Accept(frozenset({"fp8"}), frozenset({"bf16", "fp16", "fp32"})),
    "mxfp4": Accept(frozenset({"mxfp4", "fp4"}), frozenset({"fp8", "mxfp8", "bf16", "fp16", "fp32"})),
    "bf16": Accept(frozenset({"bf16"}), frozenset({"fp32"})),
}

KNOWN = (
    Knowledge("fireworks", "moonshotai/kimi-k2.5*", "nvfp4", "2026-02", "Fireworks serves Kimi K2.5 in NVFP4"),
    Knowledge("baseten", "moonshotai/kimi-k2.5*", "nvfp4", "2026-02", "baseten.co blog: own INT4 to NVFP4 conversion"),
)


def native_format(model: str) -> str | None:
    """The model's native weight format; None where it is not known here."""
    return next((row.format for row in NATIVE if fnmatchcase(model.lower(), row.models)), None)


def fidelity(native: str, served: str | None) -> Fidelity:
    """How `served` relates to weights that are `native`."""
    label = (served or "unknown").lower()
    same, wider = ACCEPT[native]
    if label in same:
        return Fidelity.SAME
    if label in wider:
        return Fidelity.WIDER
    return Fidelity.UNKNOWN if label == "unknown" else Fidelity.NARROWER


def judge(endpoint: Endpoint) -> tuple[Fidelity, str]:
    """The fidelity of an endpoint and why, in words.

    The author's own endpoint serves the native weights unless its label says otherwise.
    """
    native = native_format(endpoint.model)
    if native is None:
        return Fidelity.UNKNOWN, f"the native format of {endpoint.model} is not known to eyas"
    for row in KNOWN:
        if endpoint.slug == row.slug and fnmatchcase(endpoint.model.lower(), row.models):
            return fidelity(native, row.actual), f"known to serve {row.actual} ({row.date}: {row.source})"
    found = fidelity(native, endpoint.quantization)
    label = endpoint.quantization or "no label"
    if found is Fidelity.UNKNOWN and endpoint.slug == endpoint.model.split("/", 1)[0]:
        return Fidelity.SAME, f"{label}, but it is the author's own endpoint"
    words = {
        Fidelity.SAME: f"{label} is the native format",
        Fidelity.WIDER: f"{label} holds every native {native} weight",
        Fidelity.NARROWER: f"{label} re-quantizes the native {native} weights",
        Fidelity.UNKNOWN: f"says nothing usable of its precision ({label}); native is {native}",
    }
    return found, words[found]
