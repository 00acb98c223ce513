"""What else RUN.toml could say: runs that differ from it in one setting each. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

from eyas.config import RunConfig
from eyas.config.sections import MOST_IN_FLIGHT


class Variant(NamedTuple):
    """One setting, as RUN.toml would have it, and the config that has it."""

    setting: str
    config: RunConfig


def variants(config: RunConfig) -> list[Variant]:
    """Half and twice as many in flight, half and twice the max_tokens, the other mode, the other routing."""
    flying, most = config.limits.in_flight, config.target.max_tokens
    found = [
        _with(config, "limits", "in_flight", number)
        for number in (flying // 2, min(2 * flying, MOST_IN_FLIGHT))
        if number not in (0, flying)
    ]
    found += [_longest(config, factor) for factor in (0.5, 2.0) if most * factor >= 1]
    mode = "strict" if config.budget.mode == "metered" else "metered"
    routing = "pinned" if config.providers.routing == "gateway" else "gateway"
    return [*found, _with(config, "budget", "mode", mode), _with(config, "providers", "routing", routing)]


def _with(config: RunConfig, section: str, key: str, value: Any) -> Variant:
    changed = getattr(config, section).model_copy(update={key: value})
    shown = f'"{value}"' if isinstance(value, str) else f"{value:_}"
    return Variant(f"{key} = {shown}", config.model_copy(update={section: changed}))


def _longest(config: RunConfig, factor: float) -> Variant:
    """Every max_tokens by that factor, those of single datasets too."""
    setting, changed = _with(config, "target", "max_tokens", round(config.target.max_tokens * factor))
    datasets = tuple(
        each.model_copy(update={"max_tokens": max(1, round(each.max_tokens * factor))}) if each.max_tokens else each
        for each in config.datasets
    )
    return Variant(setting, changed.model_copy(update={"datasets": datasets}))
