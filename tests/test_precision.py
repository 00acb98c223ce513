"""How faithful a served format is: a table for each native format, dated knowledge, and the author's own endpoints."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyas.families import FAMILIES
from eyas.providers.native import KNOWN, MIXED, NATIVE, Knowledge
from eyas.providers.precision import ACCEPT, LABELS, Fidelity, fidelity, judge, native_format
from eyas.providers.rules import Rule
from eyas.types import Endpoint, Prices

S, W, N, X = Fidelity.SAME, Fidelity.WIDER, Fidelity.NEAR, Fidelity.OTHER
FORMATS = ("int4", "int8", "fp4", "mxfp4", "nvfp4", "fp6", "fp8", "mxfp8", "fp16", "bf16", "fp32")
TABLE = {
    "int4": (S, W, X, X, X, X, W, W, W, W, W),
    "fp8": (X, X, X, X, X, X, S, X, W, W, W),
    "mxfp4": (X, W, S, S, X, X, W, W, W, W, W),
    MIXED: (X, X, S, S, X, X, W, W, W, W, W),
    "bf16": (X, X, X, X, X, X, X, X, N, S, W),
}


def served(model: str, label: str | None, slug: str = "acme") -> Endpoint:
    """An endpoint that declares a format."""
    return Endpoint(model, slug.title(), slug, slug, Prices(1, 1), quantization=label)


@pytest.mark.parametrize("native", TABLE)
def test_each_native_format_has_its_own_table(native: str) -> None:
    """NVFP4 and MXFP4 are as many bits as INT4 and still not it: no count of bits decides."""
    assert tuple(fidelity(native, label) for label in FORMATS) == TABLE[native]
    assert tuple(fidelity(native, label.upper()) for label in FORMATS) == TABLE[native]
    assert set(FORMATS) == LABELS
    assert TABLE.keys() == ACCEPT.keys()


@given(st.sampled_from(sorted(ACCEPT)), st.none() | st.text(max_size=8))
def test_what_is_no_known_label_says_nothing(native: str, label: str | None) -> None:
    """The list of labels is open: a new one is neither the native format nor another, it is not known."""
    known = (label or "").lower() in LABELS | {native}
    assert (fidelity(native, label) is Fidelity.UNKNOWN) is not known


NATIVES = {
    "int4": ["moonshotai/kimi-k2-thinking", "moonshotai/kimi-k2.5", "moonshotai/Kimi-K2.5:nitro", "moonshotai/kimi-k2.5-0127",
             "moonshotai/kimi-k2.6", "moonshotai/kimi-k2.7-code"],
    "fp8": ["moonshotai/kimi-k2", "moonshotai/kimi-k2:free", "moonshotai/kimi-k2-0905", "moonshotai/kimi-k2-0711",
            "deepseek/deepseek-chat", "deepseek/deepseek-chat-v3-0324", "deepseek/deepseek-chat-v3.1", "deepseek/deepseek-r1",
            "deepseek/deepseek-r1-0528", "deepseek/deepseek-v3.2", "deepseek/deepseek-v3.1-terminus", "minimax/minimax-m2",
            "minimax/minimax-m2.7"],
    "mxfp4": ["moonshotai/kimi-k3", "openai/gpt-oss-120b", "openai/gpt-oss-20b:free"],
    MIXED: ["deepseek/deepseek-v4-flash", "deepseek/deepseek-v4-pro"],
    "bf16": ["deepseek/deepseek-r1-distill-llama-70b", "qwen/qwen3-32b", "qwen/qwen3-235b-a22b-2507", "qwen/qwen3-coder",
             "qwen/qwen3-next-80b-a3b-instruct", "qwen/qwen3.5-397b-a17b", "z-ai/glm-4.5", "z-ai/glm-4.5-air", "z-ai/glm-4.6",
             "z-ai/glm-4.7", "z-ai/glm-5", "meta-llama/llama-3.3-70b-instruct", "meta-llama/llama-4-maverick"],
}  # fmt: skip


@pytest.mark.parametrize("native", NATIVES)
def test_models_have_the_format_they_were_released_in(native: str) -> None:
    """By the id that OpenRouter gives them, whatever the case, the variant or the date in it."""
    assert {model: native_format(model) for model in NATIVES[native]} == dict.fromkeys(NATIVES[native], native)


def test_what_was_never_released_has_no_native_format() -> None:
    """Models without published weights, and models that eyas does not know, are judged by nothing but the author."""
    for model in (
        "acme/model",
        "qwen/qwen3-max",
        "qwen/qwen3.5-plus-02-15",
        "moonshotai/kimi-k9",
        "deepseek/deepseek-v9",
    ):
        assert native_format(model) is None
    assert judge(served("acme/model", "fp8", "other"))[:2] == (Fidelity.UNKNOWN, Rule.UNKNOWN)
    assert judge(served("acme/model", None))[:2] == (Fidelity.SAME, Rule.AUTHOR)
    assert judge(served("qwen/qwen3-max", None, "alibaba"))[:2] == (Fidelity.SAME, Rule.AUTHOR)


def test_every_row_can_be_checked() -> None:
    """A native format has a table and a source; knowledge has a format, a date, a source and perhaps a last day."""
    for row in NATIVE:
        assert row.format in ACCEPT
        assert row.source
        assert all(glob == glob.lower() and "/" in glob for glob in row.models)
    for row in KNOWN:
        assert row.actual in LABELS
        assert row.source
        assert re.fullmatch(r"20\d\d(-\d\d)?", row.date)
        assert re.fullmatch(r"(20\d\d-\d\d-\d\d)?", row.expires)


def test_the_author_is_believed_unless_its_label_says_otherwise() -> None:
    """No label: native. A label: by the table, as for anyone."""
    model = "moonshotai/kimi-k2.5"
    assert judge(served(model, None, "moonshotai"))[:2] == (Fidelity.SAME, Rule.AUTHOR)
    assert judge(served(model, "unknown", "moonshotai"))[:2] == (Fidelity.SAME, Rule.AUTHOR)
    assert judge(served(model, "fp4", "moonshotai"))[:2] == (Fidelity.OTHER, Rule.LABEL)
    assert judge(served(model, None))[:2] == (Fidelity.UNKNOWN, Rule.UNKNOWN)


def test_knowledge_goes_before_labels_until_it_expires() -> None:
    """A dated row lets in or shuts out whatever the label says; from the day after its last one the label decides again."""
    lossless = Knowledge("acme", "moonshotai/kimi-k3*", "mxfp4", "2026-09", "its blog: a lossless cast", "2026-12-31")
    endpoint = served("moonshotai/kimi-k3:free", "nvfp4")
    assert judge(endpoint).fidelity is Fidelity.OTHER
    assert judge(endpoint, "2026-12-31", [lossless])[:2] == (Fidelity.SAME, Rule.KNOWLEDGE)
    assert judge(endpoint, "", [lossless]).rule is Rule.KNOWLEDGE
    assert judge(endpoint, "2027-01-01", [lossless])[:2] == (Fidelity.OTHER, Rule.LABEL)
    assert judge(served("moonshotai/kimi-k3", "nvfp4", "other"), "", [lossless]).rule is Rule.LABEL
    for slug, label in (("fireworks", None), ("fireworks", "int4"), ("baseten", "int4"), ("synthetic", "int4")):
        assert judge(served("moonshotai/kimi-k2.5", label, slug))[:2] == (Fidelity.OTHER, Rule.KNOWLEDGE)
        assert judge(served("moonshotai/kimi-k2.6", label, slug)).rule is not Rule.KNOWLEDGE


def test_every_family_has_a_native_format() -> None:
    """What eyas can rebuild it can also judge, by at least one id of the family."""
    ids = {"kimi": "moonshotai", "deepseek": "deepseek", "qwen": "qwen", "glm": "z-ai", "gpt": "openai"}
    without = []
    for name in FAMILIES:
        author = next((ids[start] for start in ids if name.startswith(start)), None)
        models = [f"{author}/{name}", f"{author}/{name}-32b", f"{author}/{name}-120b"]
        if author is not None and not any(native_format(model) for model in models):
            without.append(name)
    assert not without
