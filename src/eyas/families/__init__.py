"""Model families: what a prompt ends with, what the model samples, and the presets. One line here for each."""

from __future__ import annotations

from fnmatch import fnmatchcase

from eyas.errors import UsageError
from eyas.families.base import Channel, Family, Loaded, Part, Shift
from eyas.families.deepseek import DEEPSEEK_R1, DEEPSEEK_V3, DEEPSEEK_V4, DEEPSEEK_V31, DEEPSEEK_V32
from eyas.families.glm import GLM5, GLM45, GLM46
from eyas.families.gpt_oss import GPT_OSS
from eyas.families.kimi import KIMI_K2, KIMI_K2_THINKING, KIMI_K25, KIMI_K26
from eyas.families.qwen import QWEN3, QWEN3_INSTRUCT_2507, QWEN3_THINKING_2507, QWEN35
from eyas.families.said import Said

__all__ = ["FAMILIES", "Channel", "Family", "Loaded", "Part", "Said", "Shift", "by_name", "guess"]

_ALL: tuple[Family, ...] = (
    KIMI_K25,
    KIMI_K26,
    KIMI_K2_THINKING,
    KIMI_K2,
    DEEPSEEK_R1,
    DEEPSEEK_V31,
    DEEPSEEK_V32,
    DEEPSEEK_V3,
    DEEPSEEK_V4,
    QWEN3_THINKING_2507,
    QWEN3_INSTRUCT_2507,
    QWEN3,
    QWEN35,
    GLM45,
    GLM46,
    GLM5,
    GPT_OSS,
)
"""Where two families' globs fit a model, the earlier one has it."""

FAMILIES: dict[str, Family] = {family.name: family for family in _ALL}
"""Every family by its name."""


def by_name(name: str) -> Family:
    """The family of this name.

    Raises:
        UsageError: there is none.
    """
    try:
        return FAMILIES[name]
    except KeyError:
        raise UsageError(
            f"unknown family {name!r}: set [target] family to one of {', '.join(sorted(FAMILIES))}."
        ) from None


def guess(model: str) -> str | None:
    """The name of the family that a model id belongs to, or None; a variant after a colon (`:free`) says nothing."""
    plain = model.lower().partition(":")[0]
    hits = (name for name, family in FAMILIES.items() if any(fnmatchcase(plain, glob) for glob in family.models))
    return next(hits, None)
