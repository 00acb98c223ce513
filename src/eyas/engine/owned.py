"""What an answer of a server of the user's is to the books: nothing is billed, and its ids say what it is. Pure."""

from __future__ import annotations

import msgspec

from eyas.engine.attempt import Flight
from eyas.engine.settle import Setting
from eyas.tokens.engine import read_ids
from eyas.types import Billed, Failure, FailureKind, Outcome


def owned(setting: Setting, flight: Flight, outcome: Outcome) -> Outcome:
    """The outcome as it is booked; that of an API which bills stays as it came.

    An answer that was cut is asked again rather than kept: nothing was paid for it. It has no generation to look up.
    """
    if setting.backend.bills:
        return outcome
    tag = flight.route.tag
    if isinstance(outcome, Failure):
        return msgspec.structs.replace(outcome, billed=Billed.NO, generation_id="", provider=tag)
    if outcome.cut is not None:
        return Failure(FailureKind.LOST, Billed.NO, outcome.cut.detail, provider=tag)
    thinking = setting.config.thinking(flight.candidate.work.dataset)
    whole = msgspec.structs.replace(outcome, generation_id="", provider=tag)
    return read_ids(whole, setting.tokens, thinking) if setting.backend.takes_ids else whole
