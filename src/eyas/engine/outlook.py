"""When the session that runs will be over, from what its engine knows of it."""

from __future__ import annotations

from eyas.engine.run import Engine
from eyas.report.end import End, Stream, end


def outlook(engine: Engine) -> End | None:
    """The predicted end of a session; None while too little is known, and where it was told to stop. Takes some milliseconds at 2000 in flight."""
    books = engine.books
    if books.stopping is not None:  # nothing more is asked: the end is that of what flies
        return None
    now = books.world.clock()
    flying = (Stream(f.candidate.work.dataset, books.tokens(f), now - f.began) for f in engine.flights.values())
    return end(books.state, books.quotas.lengths, books.quotas.times, flying, mode=books.setting.config.budget.mode)
