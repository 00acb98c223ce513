"""Whether an answer came from where it was asked for, in the mode that was asked for. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from eyas.plan import Route
from eyas.providers.choose import served_by
from eyas.types import Completion, Endpoint


@dataclass(frozen=True, slots=True)
class Served:
    """The routes of a run, and so the endpoints that may answer."""

    routes: tuple[Route, ...]

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """All endpoints that may answer."""
        return tuple(endpoint for route in self.routes for endpoint in route.endpoints)

    def objection(self, answer: Completion, thinking: bool) -> str:
        """Why an answer is not the one that was asked for; empty if it is.

        A provider that the API does not name cannot be judged, nor can the mode of an answer that was cut short.
        """
        if answer.provider and served_by(answer.provider, self.endpoints) is None:
            return f"served by {answer.provider}, which is not an allowed endpoint"
        if not thinking and answer.reasoning:
            return "answered with thinking, asked without"
        reasoned = answer.reasoning or (answer.usage is not None and answer.usage.reasoning_tokens)
        if thinking and answer.cut is None and not reasoned and answer.content:
            return "answered without thinking, asked with"
        return ""
