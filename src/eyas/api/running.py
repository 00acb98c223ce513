"""`eyas.run` and `eyas.run_async`: one session of a run, as the command `eyas run` does it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from eyas.api.configure import Source, given
from eyas.api.ending import Result
from eyas.api.keys import Key
from eyas.api.loop import refuse_in_a_loop
from eyas.api.session import Listener, Session, Wish
from eyas.machine import run_loop


async def run_async(
    config: Source,
    *,
    key: Key | None = None,
    on_progress: Listener | None = None,
    limit: int | None = None,
    datasets: Sequence[str] = (),
    confirm_removed: bool = False,
    fallback: bool = False,
    shard: str | None = None,
) -> Result:
    """Answer the prompts of a run, up to its cap and quotas; called again, it goes on where it was.

    Nothing is asked on a terminal: the cap, `[budget] usd`, is what is agreed to. Prompts are read, and the tokenizer is
    loaded, without giving way to the loop. Cancelled, it ends what flies, keeping its text, closes the books, and raises
    CancelledError; cancelled twice, it lets go as if it were killed, and the next run takes over what it left.

    Args:
        config: a config, a dict of RUN.toml's shape, or the path of a RUN.toml or of a plan.json that still holds.
        key: OpenRouter's key; without it the environment variable OPENROUTER_API_KEY counts. It is kept nowhere.
        on_progress: hears of the session twice a second, and once at its end. If it returns False, nothing more is
            started and what flies may land; the same if it raises, and its error is raised at the end.
        limit: ask the first so many conversations of each dataset only.
        datasets: names of the datasets to ask; none: all.
        confirm_removed: go on although the sources lost prompts of this run.
        fallback: leave the target alone and ask `[fallback]` for what is still owed.
        shard: "1/4" does the first part of four, in a run directory of its own.

    Raises:
        UsageError, KeyOrCreditsError, ApiError, LockedError: before anything was spent.
        StorageError: the journal could not be written; what was durable before is there.
    """
    wish = Wish(limit, tuple(datasets), confirm_removed, fallback, shard)
    return await Session(given(config), wish, on_progress).run(key)


def run(
    config: Source,
    *,
    key: Key | None = None,
    on_progress: Listener | None = None,
    limit: int | None = None,
    datasets: Sequence[str] = (),
    confirm_removed: bool = False,
    fallback: bool = False,
    shard: str | None = None,
) -> Result:
    """Answer the prompts of a run, as `run_async` does, whose arguments and errors these are; for code without a loop.

    ^C starts nothing more and lets what flies land; the second one ends that too and keeps its text. KeyboardInterrupt is
    raised when all of it is durable, and the same call goes on.

    Raises:
        UsageError: also where an event loop is running already: `await run_async(...)` there.
    """
    refuse_in_a_loop("run")
    wish = Wish(limit, tuple(datasets), confirm_removed, fallback, shard)
    session = Session(given(config), wish, on_progress, signals=True)
    try:
        ended = run_loop(session.run(key))
    except asyncio.CancelledError:
        if session.interrupted:
            raise KeyboardInterrupt from None
        raise
    if session.interrupted:
        raise KeyboardInterrupt
    return ended
