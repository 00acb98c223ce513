"""Prompts + endpoints + State -> Plan: what is owed, over which routes, what it costs, what fits, how long it takes. Pure."""

from __future__ import annotations

from eyas.plan.route import GATEWAY, Route, ordered, routes, sampling
from eyas.plan.works import Change, change, forgotten, owed

__all__ = ["GATEWAY", "Change", "Route", "change", "forgotten", "ordered", "owed", "routes", "sampling"]
