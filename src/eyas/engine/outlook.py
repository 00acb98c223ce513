"""When the session that runs will be over, from what its engine knows of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eyas.engine.run import Engine
from eyas.engine.settle import Books
from eyas.report.end import End, Stream, end


def outlook(engine: Engine) -> End | None:
    """The predicted end of a session, as `foreseen` is."""
    return foreseen(engine.books, _streams(engine))


def _streams(engine: Engine) -> Iterator[Stream]:
    now = engine.books.world.clock()
    for flight in engine.flights.values():
        yield Stream(flight.candidate.work.dataset, engine.books.tokens(flight), now - flight.began)


def foreseen(books: Books, flying: Iterable[Stream]) -> End | None:
    """The predicted end; None while too little is known, and where it was told to stop. Takes some milliseconds at 2000 in flight."""
    if books.stopping is not None:  # nothing more is asked: the end is that of what flies
        return None
    quotas, mode = books.quotas, books.setting.config.budget.mode
    return end(books.state, quotas.lengths, quotas.times, flying, books.outside, mode)
