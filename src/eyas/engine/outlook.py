"""When the session that runs will be over, from what its engine knows of it."""

from __future__ import annotations

from collections.abc import Iterable

from eyas.engine.run import Engine
from eyas.engine.settle import Books
from eyas.report.end import End, Stream, end


def outlook(engine: Engine) -> End | None:
    """The predicted end of a session, as `foreseen` is."""
    books = engine.books
    now = books.world.clock()
    flights = engine.flights.values()
    return foreseen(books, (Stream(f.candidate.work.dataset, books.tokens(f), now - f.began) for f in flights))


def foreseen(books: Books, flying: Iterable[Stream]) -> End | None:
    """The predicted end; None while too little is known, and where it was told to stop. Takes some milliseconds at 2000 in flight."""
    if books.stopping is not None:  # nothing more is asked: the end is that of what flies
        return None
    return end(books.state, books.quotas.lengths, books.quotas.times, flying, mode=books.setting.config.budget.mode)
