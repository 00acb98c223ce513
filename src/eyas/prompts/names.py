"""What the name of a column says about what cannot be the prompt."""

from __future__ import annotations

import re

_ANSWERS = frozenset(
    (
        *(
            "output",
            "response",
            "answer",
            "completion",
            "chosen",
            "rejected",
            "solution",
            "target",
            "reference",
            "label",
        ),
        *(
            "generation",
            "reply",
            "rationale",
            "explanation",
            "reasoning",
            "thinking",
            "thought",
            "cot",
            "gold",
            "truth",
        ),
        *("expected", "assistant", "result"),
    )
)
_ASKS = frozenset(("prompt", "question", "instruction", "query", "problem", "input", "task"))
_LABELS = frozenset(
    (
        *(
            "id",
            "ids",
            "uid",
            "uuid",
            "hash",
            "index",
            "source",
            "category",
            "url",
            "date",
            "time",
            "split",
            "language",
            "lang",
        ),
        *("licence", "license", "model", "dataset", "system"),
    )
)
_NEUTRAL = frozenset(("text", "content", "message", "messages", "value", "string"))
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def is_answer(name: str) -> bool:
    """Whether a column's name says that it holds an answer: response, chosen, answer_b, gpt4Output and the like."""
    words = [word for word in _words(name) if len(word) > 1 and word not in _NEUTRAL]
    if not words or _singular(words[-1]) in _ASKS:
        return False
    return _singular(words[0]) in _ANSWERS or _singular(words[-1]) in _ANSWERS


def is_label(name: str) -> bool:
    """Whether a column's name says that it only describes the row: an id, a source, a date and the like."""
    return bool(_LABELS & set(_words(name)))


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def _singular(word: str) -> str:
    return word.removesuffix("s")
