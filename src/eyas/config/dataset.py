"""[[datasets]]: one prompt set: where it comes from, which of its rows are asked, and how."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, field_validator, model_validator

from eyas.config.sections import Section, Turns

MapKey = Literal["messages", "role", "content", "prompt", "input", "system", "tools"]


class System(Section):
    """One system prompt of a pool: its text, or a file that holds it, and how often it is drawn."""

    text: str | None = None
    file: str | None = None
    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _one(self) -> System:
        if (self.text is None) == (self.file is None):
            raise ValueError("give text or file, one of the two")
        return self


class Dataset(Section):
    """[[datasets]]: one prompt set; what is set here goes before [target] and [budget]."""

    name: str
    source: str = Field(min_length=1)
    output_tokens: int | None = Field(default=None, gt=0)
    max_tokens: int | None = Field(default=None, ge=1)
    thinking: bool | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    system: str | tuple[System, ...] | None = None
    samples: int = Field(default=1, ge=1)
    turns: Turns | None = None
    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    expected_tokens: int | None = Field(default=None, gt=0)
    map: dict[MapKey, str] = Field(default_factory=dict[MapKey, str])
    filter: str | None = None
    near_duplicates: float | None = Field(default=None, gt=0, le=1)
    languages: tuple[str, ...] = ()
    min_prompt_tokens: int | None = Field(default=None, ge=1)
    max_prompt_tokens: int | None = Field(default=None, ge=1)
    decontaminate: tuple[str, ...] = ()

    @field_validator("filter")
    @classmethod
    def _function(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r".+\.py:[A-Za-z_]\w*", value):
            raise ValueError('name a file and a function in it, such as "keep.py:keep"')
        return value

    @field_validator("name")
    @classmethod
    def _plain(cls, value: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", value) or ".." in value:
            raise ValueError("use letters, digits, '.', '_' and '-' (64 at most, a letter or digit first)")
        return value
