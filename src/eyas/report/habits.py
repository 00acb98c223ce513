"""How each provider counts and cuts, in words: from the habits as the journal keeps them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_CUTS = {
    "token": "a token a piece",
    "burst": "pieces of whole tokens",
    "anywhere": "pieces cut anywhere",
    "unknown": "pieces not known",
}


def sentences(habits: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """One line a provider, plain ways left out."""
    return [f"{name}: {'; '.join(_said(habit))}" for name, habit in sorted(habits.items())]


def cuts(habits: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """How each provider cuts its stream, in words."""
    return {name: _CUTS[habit["cut"]] for name, habit in habits.items()}


def _said(habit: Mapping[str, Any]) -> list[str]:
    stripped, open_ends = _ends(habit["stripped"]), _ends(habit["open"])
    counting, proof = habit["counting"], ", which prove ids" if habit["proves"] else ""
    said = {
        f"{habit['explained']} of {habit['answers']} answers explained": True,
        f"a hidden system prompt of {habit['hidden']:+d} tokens": habit["hidden"],
        "not trusted": not habit["trusted"],
        str(counting["name"]): counting["prompt"] or counting["answer"],
        "stop token not counted": not habit["stop_counted"],
        "adds a space to the reasoning": habit["artefact_space"],
        f"{_CUTS[habit['cut']]}{proof}": True,
        f"strips the {stripped}": stripped,
        f"may strip the {open_ends}": open_ends,
        "rewrites tool arguments": habit["keeps_arguments"] is False,
        f"history with {habit['prompt_form']}": habit["prompt_form"],
    }
    return [text for text, true in said.items() if true]


def _ends(ends: list[str]) -> str:
    return ", ".join(sorted(end.replace("_", " ") for end in ends))
