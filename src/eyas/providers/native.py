"""What is known of weight formats: those that models were released in, and what single providers really serve. Data only.

"From memory" means that no page was read for the row.
"""

from __future__ import annotations

from typing import NamedTuple

MIXED = "fp8+mxfp4"
"""Dense layers in FP8, routed experts in MXFP4."""


class Native(NamedTuple):
    """The weight format that a model was released in.

    Attributes:
        models: globs of model ids, lower case, without a variant such as `:free`.
        format: a key of ACCEPT in precision.py.
        source: where that is known from.
    """

    models: tuple[str, ...]
    format: str
    source: str


class Knowledge(NamedTuple):
    """What one provider is known to serve, whatever it says of itself.

    Attributes:
        slug: the provider.
        models: a glob of model ids, lower case.
        actual: the format that it serves.
        date: when that was known, YYYY-MM or YYYY.
        source: who says so.
        expires: the last day on which the row counts, YYYY-MM-DD; empty: until it is removed.
    """

    slug: str
    models: str
    actual: str
    date: str
    source: str
    expires: str = ""


NATIVE = (
    Native(
        ("moonshotai/kimi-k2-thinking*", "moonshotai/kimi-k2.5*", "moonshotai/kimi-k2.6*", "moonshotai/kimi-k2.7*"),
        "int4",
        "W4A16 by quantization-aware training, compressed-tensors, group 32; tag moonshotai/int4",
    ),
    Native(("moonshotai/kimi-k3*",), "mxfp4", "tag moonshotai/mxfp4"),
    Native(
        ("moonshotai/kimi-k2", "moonshotai/kimi-k2-0*", "moonshotai/kimi-k2-instruct*"),
        "fp8",
        "block-wise FP8 weights as released",
    ),
    Native(("deepseek/deepseek-r1-distill*",), "bf16", "Qwen and Llama weights as released"),
    Native(
        ("deepseek/deepseek-v4*",),
        MIXED,
        "cards of 1:1 conversions of V4-Flash: FP8 in blocks of 128, experts in MXFP4; the others taken to be alike",
    ),
    Native(
        ("deepseek/deepseek-v3*", "deepseek/deepseek-r1*", "deepseek/deepseek-chat*", "deepseek/deepseek-prover-v2*"),
        "fp8",
        "trained and released in FP8, blocks of 128 x 128 (DeepSeek-V3 report, arXiv 2412.19437)",
    ),
    Native(("openai/gpt-oss-*",), "mxfp4", "MXFP4 experts as released"),
    Native(
        ("minimax/minimax-m2*",),
        "fp8",
        "FP8 in blocks of 128 x 128 as released; cards of conversions of M2.5 and M2.7 say so",
    ),
    Native(
        ("qwen/qwen3-*b", "qwen/qwen3-*b-*", "qwen/qwen3-coder", "qwen/qwen3-coder-next", "qwen/qwen3-next-*"),
        "bf16",
        "main release, FP8 beside it; from memory",
    ),
    Native(("qwen/qwen3.5-*b", "qwen/qwen3.5-*b-*"), "bf16", "main release, FP8 beside it; from memory"),
    Native(
        ("z-ai/glm-4.5*", "z-ai/glm-4.6*", "z-ai/glm-4.7*", "z-ai/glm-5*"),
        "bf16",
        "main release, FP8 beside it; from memory",
    ),
    Native(
        ("meta-llama/llama-3*", "meta-llama/llama-4*"),
        "bf16",
        "main release, FP8 of the largest beside it; from memory",
    ),
)
"""The first row that fits a model counts. Models whose weights were never published, such as qwen3-max, have none."""

KNOWN = (
    Knowledge(
        "fireworks", "moonshotai/kimi-k2.5*", "nvfp4", "2026-02", "found by this project; no public page says so"
    ),
    Knowledge("baseten", "moonshotai/kimi-k2.5*", "nvfp4", "2026-02", "baseten.co blog, own INT4 to NVFP4 conversion"),
    Knowledge("synthetic", "moonshotai/kimi-k2.5*", "nvfp4", "2026", "organic.eris.host, NVFP4 and INT4 by load"),
)
"""Goes before what an endpoint says of itself."""

AUTHORS = {"qwen": ("alibaba",), "mistralai": ("mistral",), "z-ai": ("zai",)}
"""Slugs of the author's own endpoints where they are not the author's name in the model id."""
