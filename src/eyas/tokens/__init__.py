"""From answers to training tokens: how each provider counts and cuts, and what ids an answer has."""

from __future__ import annotations

from eyas.tokens.calibrate import Cut, End, Evidence, Habits, habit_key, learn
from eyas.tokens.rebuild import SPELLED, evidence, label, rebuild

__all__ = ["SPELLED", "Cut", "End", "Evidence", "Habits", "evidence", "habit_key", "label", "learn", "rebuild"]
