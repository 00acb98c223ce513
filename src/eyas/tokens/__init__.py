"""From answers to training tokens: how each provider counts and cuts, and what ids an answer has."""

from __future__ import annotations

from eyas.tokens.calibrate import learn
from eyas.tokens.evidence import evidence
from eyas.tokens.habits import PLAIN, Cut, End, Evidence, Habits, Size, habit_key
from eyas.tokens.rebuild import SPELLED, label, rebuild

__all__ = [
    "PLAIN",
    "SPELLED",
    "Cut",
    "End",
    "Evidence",
    "Habits",
    "Size",
    "evidence",
    "habit_key",
    "label",
    "learn",
    "rebuild",
]
