"""One session of a run: settle what a kill left, note new prompts, run the engine, close the books."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

from eyas.config import RunConfig, freeze
from eyas.engine.admit import Admission, Pool, Quotas, Strict
from eyas.engine.attempt import Reader
from eyas.engine.compare import changed, prompts_of, still_owed
from eyas.engine.fetch import cut_short
from eyas.engine.inputs import (
    Inputs,
    Offer,
    Tokenizer,
    write_reports,
)
from eyas.engine.labels import Labels
from eyas.engine.leftover import Intake, take_back
from eyas.engine.metered import Metered
from eyas.engine.pace import Pace
from eyas.engine.pulse import Beat
from eyas.engine.quality import Quality, Standard
from eyas.engine.recover import recovers, repeats
from eyas.engine.remote import reader_of
from eyas.engine.resume import settle_left_open
from eyas.engine.retry import policy_of
from eyas.engine.run import Engine
from eyas.engine.scope import WHOLE, Scope, left_out, within
from eyas.engine.served import Served
from eyas.engine.settle import Books, Setting, World
from eyas.engine.target import Backend, deadlines_of
from eyas.engine.turns import Turns
from eyas.errors import PromptsRemoved, StorageError, UsageError
from eyas.events import PromptAdded, PromptRemoved, SessionClosed, SessionOpened
from eyas.journal import Journal, Keeper
from eyas.ledger import nano_dollars
from eyas.plan import Change, routes
from eyas.providers.choose import allowed
from eyas.records import Run
from eyas.state import State
from eyas.state.turns import begun
from eyas.state.workers import away
from eyas.transport import Transport
from eyas.types import Endpoint, Record, StopReason, Verdict


@dataclass(frozen=True, slots=True)
class Parts:
    """What a session is made of; all of it was read and checked before. `text` is RUN.toml's, kept in the run."""

    config: RunConfig
    backend: Backend
    tokenizer: Tokenizer
    inputs: Inputs
    offer: Offer
    text: str = ""


class Ended(NamedTuple):
    """How a session ended, and what it took over from a killed one (attempts left open)."""

    reason: StopReason
    detail: str
    state: State
    recovered: int


@dataclass(frozen=True, slots=True)
class Options:
    """What the caller adds: consent to prompts that vanished; listeners for what was read, the start, and ticks; the scope.

    `until`: when to start nothing more, on the run's clock; what is still owed then is for somebody else.
    """

    confirm_removed: bool = False
    on_inputs: Callable[[Inputs], None] | None = None
    on_start: Callable[[Engine], None] | None = None
    on_tick: Callable[[Engine], None] | None = None
    scope: Scope = WHOLE
    check: Callable[[Inputs, Offer], None] | None = None
    until: float | None = None
    on_fallback: Callable[[Ended], None] | None = None


async def run(parts: Parts, transport: Transport, options: Options, processes: int = 1) -> Ended:
    """Run one session in the run directory of the config; the caller holds its lock.

    Answers are read in so many `processes`, 1: in this one, by `transport`.

    Raises:
        UsageError: no endpoint may answer, or prompts vanished from the sources.
        StorageError: the journal cannot be written or read.
    """
    with session(parts, transport) as (books, known, journal):
        opened = await open_session(parts, books, known, options)
        async with reader_of(books, processes) as reader:
            return await _fly(books, opened, options, reader, parts.offer, journal)


@contextlib.contextmanager
def session(parts: Parts, transport: Transport) -> Generator[tuple[Books, Run, Journal]]:
    """The books of a session in the run directory of the config, the run as it is read, and its journal; kept whole at the end."""
    served = Served(routes(parts.config, *_asked(parts)))
    check_size(parts, served)
    with closing(Journal(parts.config.dir)) as journal, closing(Run(parts.config.dir)) as known:
        gc.freeze()  # what a large run has come to stays to the end: no look at all objects need take seconds for it
        keeper = Keeper(journal, known.state, known.index, known.kept)
        yield books_of(parts, served, World(transport, keeper), known.state), known, journal
        keeper.finish()


def _asked(parts: Parts) -> tuple[Sequence[Endpoint], Sequence[Endpoint]]:
    """Who may answer in this session, and who may not; servers that are away now may come back."""
    found = parts.offer.verdicts
    if not parts.backend.bills:
        return [verdict.endpoint for verdict in found], ()
    return allowed(found), [verdict.endpoint for verdict in found if not verdict.use]


def books_of(parts: Parts, served: Served, world: World, state: State) -> Books:
    """The books of a session that opens on that state, with nothing in its pool yet."""
    config = parts.config
    setting = Setting(
        config=config,
        backend=parts.backend,
        family=parts.tokenizer.family,
        tokens=parts.tokenizer.loaded,
        served=served,
        policy=policy_of(config),
        deadlines=deadlines_of(config),
    )
    quotas = Quotas.of(state, {each.name: config.max_tokens(each.name) for each in config.datasets}, config.shares)
    pace = Pace(config.limits.in_flight)
    for endpoint in served.endpoints:
        if endpoint.slots:
            pace.bound(endpoint.tag, endpoint.slots)
    return Books(world, setting, state, Pool(), quotas, pace)


def opening(books: Books) -> SessionOpened:
    """The event that opens a session: what it is asked for, and under which cap and quotas."""
    setting = books.setting
    return opened_by(setting.config, setting.family.name, setting.policy.waste_limit, books.world.wall())


def opened_by(config: RunConfig, family: str, waste_limit: int | None, at: float) -> SessionOpened:
    """The same of a config alone, for commands that ask nothing."""
    return SessionOpened(
        at=at,
        model=config.target.model,
        cap=None if config.budget.usd is None else nano_dollars(config.budget.usd),
        quotas={each.name: config.quota(each.name) for each in config.datasets},
        waste_limit=waste_limit,
        samples={each.name: each.samples for each in config.datasets if each.samples != 1},
        family=family,
        thinking={each.name: config.thinking(each.name) for each in config.datasets},
    )


class Opened(NamedTuple):
    """Answers that have no label yet, and those among them that a killed session had in flight."""

    unlabelled: list[Record]
    recovered: int


async def open_session(parts: Parts, books: Books, known: Run, options: Options) -> Opened:
    """Open the session in the journal: settle what a killed one left, note what changed in the sources."""
    config = parts.config
    check_same(config, books.setting.family.name, books.state)
    difference = changed(books.state, parts.inputs)
    if difference.removed and not options.confirm_removed:
        name, prompt_id = difference.removed[0]
        raise PromptsRemoved(
            f"{len(difference.removed)} prompts of this run are no longer in its sources ({name}/{prompt_id} for one): put "
            "them back, or run again with --confirm-removed; answers that they have stay in the run"
        )
    if parts.text:
        freeze(config, parts.text)
        gone = [(name, each) for name, known in books.state.datasets.items() for each in known.forgotten]
        write_reports(config.dir, parts.inputs, gone)
    books.emit(opening(books))
    unlabelled = known.records_without_label()
    await take_back(Intake.of(books))
    recovered = settle_left_open(books, known)
    await _note_prompts(parts, books, difference)
    counts, turns = parts.inputs.counts, Turns(books, known)
    elsewhere = away(books.state)
    mine = (each for each in still_owed(config, books.state, parts.inputs) if begun(each[0]) not in elsewhere)
    owing = within(options.scope, books.state, mine if elsewhere else still_owed(config, books.state, parts.inputs))
    # A conversation that was begun is finished first.
    asked = sorted(turns.candidates(owing, counts), key=lambda candidate: candidate.work.turn == 0)
    books.pool, books.outside = Pool.of(asked), left_out(options.scope, books.state, asked)
    books.follow = turns.next
    if recovers(config):
        books.pool.ask_again(repeats(books.state, books.world.clock()))
    _await_costs(books, turns, parts.inputs, options.scope)
    return Opened(unlabelled + recovered, len(recovered))


def _await_costs(books: Books, turns: Turns, inputs: Inputs, scope: Scope) -> None:
    """Have works of unknown outcome asked again, and cut answers fetched, as soon as their costs are known."""
    works = [attempt.work for attempt in books.state.unknown()]
    prompts = prompts_of(inputs, ((work.dataset, work.prompt_id) for work in works))
    routes, elsewhere = {route.tag: route for route in books.setting.served.routes}, away(books.state)
    for attempt in books.state.unknown():
        work, name = attempt.work, (attempt.work.dataset, attempt.work.prompt_id)
        if name not in prompts or not scope.holds(work.dataset) or begun(work) in elsewhere:
            continue
        unknown = books.state.work(work).verdict is Verdict.UNKNOWN
        cut = attempt.tag in routes and cut_short(books.state, attempt, routes[attempt.tag])
        candidate = turns.again(work, prompts[name], inputs.counts[name]) if unknown or cut else None
        if candidate is not None and unknown:
            books.held[work] = candidate
        elif candidate is not None:
            books.fetches.cut[attempt.id] = candidate


def check_same(config: RunConfig, family: str, state: State) -> None:
    """Refuse what would make the answers of a run mean something else than when they were bought (UsageError)."""
    for what, was, now in (("model", state.model, config.target.model), ("family", state.family, family)):
        if was not in ("", now):
            raise UsageError(
                f"{config.dir} holds answers of {what} {was}, RUN.toml asks {now}: give it another [run] dir"
            )
    for each in config.datasets:
        known = state.datasets.get(each.name)
        if known and known.ended and known.thinking not in (None, config.thinking(each.name)):
            mode = "on" if known.thinking else "off"
            raise UsageError(
                f"dataset {each.name} was asked with thinking {mode} in {config.dir}: name the dataset anew to ask it otherwise"
            )


def check_size(parts: Parts, served: Served) -> None:
    """Refuse a max_tokens that no endpoint takes, before anything is asked (UsageError)."""
    for each in parts.config.datasets:
        most = parts.config.max_tokens(each.name)
        if not any(route.serves(0, most, tools=False) for route in served.routes):
            largest = max(endpoint.max_output or endpoint.context or 0 for endpoint in served.endpoints)
            raise UsageError(
                f"dataset {each.name}: no allowed endpoint takes max_tokens = {most}; the largest takes {largest}: lower it"
            )


async def _note_prompts(parts: Parts, books: Books, difference: Change) -> None:
    """Note prompts that came and went; all that was written before is durable then too."""
    at = books.world.wall()
    for prompt in difference.added:
        tokens = parts.inputs.counts[prompt.dataset, prompt.id]
        turns = len(prompt.turns)
        books.emit(PromptAdded(at=at, dataset=prompt.dataset, prompt_id=prompt.id, tokens=tokens, turns=turns), prompt)
    for name, prompt_id in difference.removed:
        books.emit(PromptRemoved(at=at, dataset=name, prompt_id=prompt_id))
    await books.world.log.flush()


def admission_of(books: Books) -> Admission:
    """The policy that [budget] mode names."""
    config, routes = books.setting.config, books.setting.served.routes
    policy = Metered if config.budget.mode == "metered" else Strict
    return policy(books.state, books.pool, books.quotas, routes, books.pace, config.max_tokens)


async def _fly(books: Books, opened: Opened, options: Options, reader: Reader, offer: Offer, journal: Journal) -> Ended:
    setting, world = books.setting, books.world
    wish = setting.config.providers
    quality = Quality.of(books.state, Standard(wish.drop_above, wish.require_streamed))
    labels = Labels(
        setting.tokens, setting.config.thinking, books.emit, world.wall, books.now_known, quality, books.concern
    )
    for record in opened.unlabelled:
        labels.add(record)
    engine = Engine(books, admission_of(books), reader, labels.add, until=options.until)
    engine.take_list(offer.verdicts)
    beat = Beat(engine, setting.config.dir, journal, options.on_tick)
    engine.on_tick = beat.tick
    if options.on_start is not None:
        options.on_start(engine)
    labelling = asyncio.create_task(labels.work())
    try:
        reason = await engine.run()
    finally:
        labels.close()
        beat.end()
        with contextlib.suppress(StorageError):
            await labelling
    await books.emit(SessionClosed(at=world.wall(), reason=reason))
    return Ended(reason, books.stop_detail, books.state, opened.recovered)
