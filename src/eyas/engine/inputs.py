"""Everything that a session reads before it starts: tokenizer, prompts, endpoint list. Nothing here spends a dollar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import SecretStr

from eyas import vocab
from eyas.backends.openrouter import OpenRouter
from eyas.config import RunConfig
from eyas.errors import ApiError, EyasError, UsageError
from eyas.families import FAMILIES, Family, Loaded, by_name, guess
from eyas.families.template import TEMPLATE, TemplateFamily
from eyas.prompts import BadRow, DatasetSource, interleave, load
from eyas.prompts.read import TEXT_PREFIX
from eyas.providers import catalog
from eyas.providers.choose import Verdict, verdicts
from eyas.transport import Deadlines, Request, Transport, fetch
from eyas.types import Prompt, Source

_DEADLINES = Deadlines(total=60.0)


class Tokenizer(NamedTuple):
    """A family, and the same with its tokenizer loaded."""

    family: Family
    loaded: Loaded


class Offer(NamedTuple):
    """What the API offers: a verdict on every endpoint, and those without a usable price."""

    verdicts: tuple[Verdict, ...]
    unpriced: tuple[catalog.Unpriced, ...]


@dataclass(frozen=True, slots=True)
class Inputs:
    """The prompts in the run's order with our own token counts, rows that are no prompts, and duplicates (a count).

    `caveats` are sentences about what cannot be promised of the model.
    """

    prompts: tuple[Prompt, ...]
    counts: dict[tuple[str, str], int]
    quarantined: tuple[BadRow, ...]
    duplicates: int
    caveats: tuple[str, ...] = ()


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
    return Tokenizer(family, family.load(vocab.resolve(str(local) if local.is_dir() else spec)))


def read_inputs(config: RunConfig, tokenizer: Tokenizer) -> Inputs:
    """Read every source and count every prompt with the target's own tokenizer; a bad row stops nothing.

    Raises:
        UsageError: a source cannot be read, or holds no prompt at all.
    """
    found = load(
        [
            DatasetSource(each.name, each.source, each.system if isinstance(each.system, str) else None)
            for each in config.datasets
        ],
        config.base,
    )
    prompts: list[Prompt] = []
    counts: dict[tuple[str, str], int] = {}
    bad = list(found.quarantined)
    for prompt in interleave(found.prompts, config.run.seed):
        try:
            tokens = tokenizer.loaded.count_prompt(prompt.messages, prompt.tools, config.thinking(prompt.dataset))
        except UsageError as error:
            source = prompt.source or Source("", 0)
            bad.append(
                BadRow(source.file, source.line, str(error), str(prompt.messages[-1].get("content"))[:TEXT_PREFIX])
            )
            continue
        prompts.append(prompt)
        counts[prompt.dataset, prompt.id] = tokens
    duplicates = sum(each.duplicates for each in found.sets.values())
    return Inputs(tuple(prompts), counts, tuple(bad), duplicates, tokenizer.loaded.caveats)


def backend_of(config: RunConfig, key: SecretStr) -> OpenRouter:
    """The backend that RUN.toml names.

    Raises:
        UsageError: this version has no such backend.
    """
    target = config.target
    if target.backend != "openrouter":
        raise UsageError(f"[target] backend = {target.backend!r} comes with a later version: this one knows openrouter")
    return OpenRouter(target.base_url, target.model, key, target.extra_headers, target.extra_body)


async def list_endpoints(config: RunConfig, backend: OpenRouter, transport: Transport) -> Offer:
    """Ask the API what it offers, and judge each endpoint.

    Raises:
        UsageError: the API does not know the model; KeyOrCreditsError: the key is refused; ApiError: no list came.
    """
    data = await ask("the endpoint list", backend, transport, backend.endpoints())
    try:
        slugs = catalog.slugs(await ask("the provider list", backend, transport, backend.providers()))
    except EyasError:
        slugs = {}  # tags say the same but for a few names
    listing = catalog.endpoints(config.target.model, data, slugs)
    return Offer(verdicts(listing.endpoints, config.providers), listing.unpriced)


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
