"""The content of a message, which is a text or a list of parts (pure)."""

from __future__ import annotations

from typing import Any, cast


def plain_text(content: Any) -> str:
    """The text of a message's content."""
    if isinstance(content, list):
        return "".join(str(part["text"]) for part in cast("list[dict[str, Any]]", content))
    return content or ""


def is_text(content: Any) -> bool:
    """Whether a content is text alone; a renderer would fetch the images that it names."""
    if not isinstance(content, list):
        return content is None or isinstance(content, str)
    return all(isinstance(part, dict) and "text" in part for part in cast("list[Any]", content))
