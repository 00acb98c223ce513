"""A run begun without asking anything: its directory, its prompts, its quotas. What is imported first needs no more."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from eyas.config import RunConfig, freeze
from eyas.engine.compare import changed
from eyas.engine.inputs import Inputs, Tokenizer, write_reports
from eyas.engine.retry import policy_of
from eyas.engine.session import check_same, opened_by
from eyas.events import PromptAdded, SessionClosed
from eyas.journal import Journal
from eyas.records import Run
from eyas.types import StopReason


async def begin(config: RunConfig, text: str, tokens: Tokenizer, inputs: Inputs, wall: Callable[[], float]) -> int:
    """Note the prompts of the sources that the run does not know, with caps and quotas; the caller holds its lock.

    Prompts that the sources have no more stay: the next `eyas run` asks what to do about them.

    Args:
        config: RUN.toml.
        text: the same as it stands in its file; kept in the run directory.
        tokens: the family, loaded.
        inputs: what the sources hold.
        wall: seconds since 1970.

    Returns:
        how many prompts joined.

    Raises:
        UsageError: the run holds answers of another model, family or mode.
        StorageError: the run directory cannot be written.
    """
    with closing(Journal(config.dir)) as journal, closing(Run(config.dir)) as run:
        check_same(config, tokens.family.name, run.state)
        added = changed(run.state, inputs).added
        freeze(config, text)
        gone = [(name, each) for name, known in run.state.datasets.items() for each in known.forgotten]
        write_reports(config.dir, inputs, gone)
        if not added and run.state.sessions:
            return 0
        at = wall()
        journal.write(opened_by(config, tokens.family.name, policy_of(config).waste_limit, at))
        for each in added:
            count = inputs.counts[each.dataset, each.id]
            event = PromptAdded(at=at, dataset=each.dataset, prompt_id=each.id, tokens=count, turns=len(each.turns))
            journal.write(event, each)
        await journal.write(SessionClosed(at=at, reason=StopReason.OWED))
        return len(added)
