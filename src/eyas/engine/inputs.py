"""Everything that a session reads before it starts: tokenizer, prompts, endpoint list. Nothing here spends a dollar."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from eyas import vocab
from eyas.backends.openrouter import OpenRouter
from eyas.config import RunConfig
from eyas.engine import replicas
from eyas.engine.target import Backend
from eyas.errors import ApiError, EyasError, UsageError
from eyas.families import FAMILIES, Family, by_name, guess
from eyas.families import Loaded as LoadedTokenizer
from eyas.families.template import TEMPLATE, TemplateFamily
from eyas.prompts import (
    BadRow,
    Contaminated,
    Counts,
    Loaded,
    LoadedSet,
    Rejected,
    interleave,
    kept,
    load,
    part,
    sources,
    write_lines,
    write_quarantine,
)
from eyas.prompts.select import Mixed
from eyas.providers import catalog
from eyas.providers.choose import Verdict, verdicts
from eyas.transport import Deadlines, Request, Transport, fetch
from eyas.types import Endpoint, Prompt

QUARANTINE = "quarantine.jsonl"
CONTAMINATED = "contaminated.jsonl"
_TOKENIZER = (".json", ".jinja", ".model", ".py", ".txt")
_DEADLINES = Deadlines(total=60.0)


class Tokenizer(NamedTuple):
    """A family, and the same with its tokenizer loaded; `made_of` is a digest of its files, empty where there are none."""

    family: Family
    loaded: LoadedTokenizer
    made_of: str = ""


class Offer(NamedTuple):
    """What the API offers: a verdict on every endpoint, and the terms of each."""

    verdicts: tuple[Verdict, ...]
    terms: Mapping[Endpoint, catalog.Terms]


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the sources of a run hold.

    Attributes:
        prompts: in the run's order, read from disk one at a time; go through them, do not keep them all.
        counts: tokens of each by the target's tokenizer, by (dataset, prompt id).
        quarantined: rows that cannot be asked, read from disk too.
        duplicates: rows that are a prompt which another row of the set is already.
        caveats: sentences about what cannot be promised of the model.
        sets: all of this set by set, with the rows left out; empty where a test or a bench made the prompts.
        made_of: what the reading hangs on (`prompts.sources`); empty where it is not known, or the reading is kept already.
    """

    prompts: Sequence[Prompt]
    counts: Mapping[tuple[str, str], int]
    quarantined: Sequence[BadRow]
    duplicates: int
    caveats: tuple[str, ...] = ()
    sets: Mapping[str, LoadedSet] = field(default_factory=dict[str, LoadedSet])
    made_of: str = ""

    @property
    def contaminated(self) -> Sequence[Contaminated]:
        """Prompts that `decontaminate` removed."""
        return Loaded(self.sets).contaminated


def load_tokenizer(config: RunConfig) -> Tokenizer:
    """The family of the target and its tokenizer.

    Raises:
        UsageError: the family is not known or lacks the mode that is asked for, or its tokenizer or chat template is missing, unreadable or does not fit.
    """
    target = config.target
    name = target.family or guess(target.model)
    if name is None:
        raise UsageError(
            f"[target] family: none is known for the model {target.model!r}: set it to one of {', '.join(FAMILIES)}, "
            'or to "template", which takes any model by the chat template of its tokenizer'
        )
    if target.chat_template and name != TEMPLATE:
        raise UsageError(f'[target] chat_template is for family = "template"; family {name} has its own: remove it')
    given = config.base / target.chat_template if target.chat_template else None
    family = TemplateFamily(given) if name == TEMPLATE else by_name(name)
    for each in config.datasets:
        family.body(config.thinking(each.name))  # says so where the family lacks that mode
    spec = target.tokenizer or family.tokenizer
    if not spec:
        raise UsageError("[target] tokenizer: missing: give the folder of the model's tokenizer, or its hub id")
    local = config.base / spec
    folder = vocab.resolve(str(local) if local.is_dir() else spec)
    return Tokenizer(family, family.load(folder), _digest(name, [*folder.iterdir(), *([given] if given else [])]))


def _digest(family: str, files: Iterable[Path]) -> str:
    """A digest of a family and the files that its tokenizer is made of; weights that may lie beside them are left out."""
    digest = hashlib.sha256(family.encode())
    for path in sorted(path for path in files if path.suffix in _TOKENIZER and path.is_file()):
        digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def read_inputs(config: RunConfig, tokenizer: Tokenizer) -> Inputs:
    """Read every source and count every prompt with the target's own tokenizer; a bad row stops nothing.

    Where the run directory keeps what an earlier session read of the very same sources, that is taken. Else the prompts are
    kept in a temporary file without a name, in the run directory if it is there already.

    Raises:
        UsageError: a source cannot be read, holds no prompt, or more than a fifth of its rows cannot be asked; all that
            cannot be asked of such a source is in quarantine.jsonl then, if the run directory is there.
        StorageError: the prompts cannot be kept while they are read.
    """

    def count(prompt: Prompt) -> int:
        return tokenizer.loaded.count_prompt(prompt.messages, prompt.tools, config.thinking(prompt.dataset))

    folder = config.dir if config.dir.is_dir() else None
    modes = [(each, config.thinking(each.name)) for each in config.datasets]
    made_of = sources.made_of(modes, config.base, config.run.seed, tokenizer.made_of) if tokenizer.made_of else ""
    made_of += f" {config.shard}" if made_of and config.shard else ""
    if folder is not None and made_of and (held := kept.load(folder, made_of)):
        sets, prompts = held
        found = Loaded(sets)
        return Inputs(
            prompts, Counts(sets.values()), found.quarantined, found.duplicates, tokenizer.loaded.caveats, sets
        )
    try:
        found = load(config.datasets, config.base, config.run.seed, count, folder)
    except Rejected as error:
        if folder is None:
            raise
        write_quarantine(folder / QUARANTINE, error.rows)
        raise UsageError(f"{error.says} All of them are in {folder / QUARANTINE}") from error
    if shard := config.shard:
        found = Loaded({name: part(one, shard.number, shard.of) for name, one in found.sets.items()})
    sets = found.sets.values()
    prompts = interleave(sets, config.run.seed)
    caveats = tokenizer.loaded.caveats
    return Inputs(prompts, Counts(sets), found.quarantined, found.duplicates, caveats, found.sets, made_of)


def write_reports(folder: Path, inputs: Inputs, forgotten: Iterable[tuple[str, str]] = ()) -> None:
    """Write what was left out into the run directory: quarantine.jsonl, and contaminated.jsonl where a set asks for it.

    What was read is kept there too, for the next session, without the `forgotten` prompts (dataset, id).

    Raises:
        StorageError: a file cannot be written.
    """
    write_quarantine(folder / QUARANTINE, inputs.quarantined)
    if inputs.contaminated or (folder / CONTAMINATED).exists():
        write_lines(folder / CONTAMINATED, inputs.contaminated)
    if inputs.made_of and isinstance(inputs.prompts, Mixed):
        kept.save(folder, inputs.sets, inputs.prompts, inputs.made_of, tuple(forgotten))


async def list_endpoints(config: RunConfig, backend: Backend, transport: Transport, *, privacy: bool = False) -> Offer:
    """Ask who may answer, and judge each endpoint; with `privacy`, ask also which of them keep no prompt.

    Raises:
        UsageError: the API does not know the model; KeyOrCreditsError: the key is refused; ApiError: no list came.
    """
    if not isinstance(backend, OpenRouter):
        return Offer(await replicas.look(backend, transport), {})
    data = await ask("the endpoint list", backend, transport, backend.endpoints())
    # Tags say the same as the provider list but for a few names, and who keeps prompts decides nothing.
    companies = catalog.companies(await _perhaps("the provider list", backend, transport, backend.providers()))
    forgetful = (
        catalog.no_retention(await _perhaps("what keeps no prompt", backend, transport, backend.no_retention()))
        if privacy
        else None
    )
    listing = catalog.endpoints(backend.model, data, companies, forgetful)
    today = datetime.now(UTC).date().isoformat()
    return Offer(verdicts(listing.endpoints, config.providers, today), listing.terms)


async def _perhaps(what: str, backend: OpenRouter, transport: Transport, request: Request) -> Any:
    """The `data` of a GET; None where it brings an error."""
    try:
        return await ask(what, backend, transport, request)
    except EyasError:
        return None


async def ask(what: str, backend: OpenRouter, transport: Transport, request: Request) -> Any:
    """The `data` of what a GET brings; `what` names it in errors.

    Raises:
        KeyOrCreditsError, UsageError, ApiError: as `OpenRouter.read_list` does, and ApiError where nothing answers.
    """
    try:
        answer = await fetch(transport, request, _DEADLINES)
    except ApiError:
        raise
    except EyasError as error:
        raise ApiError(
            f"{backend.base_url} cannot be reached ({error}): check [target] base_url and the network"
        ) from None
    return backend.read_list(what, answer)
