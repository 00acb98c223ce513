"""What `eyas doctor` asks of the user's own servers: whether each is there, and does what a run needs of it.

Each is asked one short question, as a run does before its first request; the answer is kept nowhere.
"""

from __future__ import annotations

from pydantic import SecretStr

from eyas.backends.local import Local
from eyas.config import RunConfig
from eyas.engine.findings import Finding, Standing
from eyas.engine.inputs import Tokenizer
from eyas.engine.replicas import look, prove
from eyas.engine.target import backend_of
from eyas.errors import EyasError
from eyas.providers.choose import Verdict
from eyas.transport import Transport
from eyas.types import Endpoint

_NAME = "server"


async def examine_servers(
    config: RunConfig, key: SecretStr, transport: Transport, tokenizer: Tokenizer | None
) -> list[Finding]:
    """A finding a replica of the target; `tokenizer` is None where it did not load, and none is tried then.

    A run goes on without those that are away, as long as one is there.
    """
    backend = backend_of(config, key)
    if not isinstance(backend, Local):
        return []
    found: list[Finding] = []
    verdicts = await look(backend, transport)
    for verdict in verdicts:
        if not verdict.use:
            found.append(_away(verdict, others=any(each.use for each in verdicts)))
            continue
        says = f"{verdict.endpoint.tag}: {backend.dialect.name} serves {backend.model}{_room(verdict.endpoint)}"
        if tokenizer is None:
            found.append(Finding(_NAME, Standing.WARN, f"{says}; not tried, for the tokenizer did not load"))
        else:
            thinking = config.thinking(config.datasets[0].name)
            found.append(await _tried(backend, says, tokenizer, thinking, transport, verdict.endpoint.tag))
    return found


def _away(verdict: Verdict, *, others: bool) -> Finding:
    says = f"{verdict.endpoint.tag}: {verdict.reason}"
    if others:
        return Finding(_NAME, Standing.WARN, f"{says}; a run would go on without it, and ask it once it answers")
    return Finding(_NAME, Standing.FAIL, says)


async def _tried(
    backend: Local, says: str, tokenizer: Tokenizer, thinking: bool, transport: Transport, tag: str
) -> Finding:
    try:
        await prove(backend, tokenizer.loaded, thinking, transport, [tag])
    except EyasError as error:
        return Finding(_NAME, Standing.FAIL, f"{tag}: {error}")
    ids = "ids come back, its tokenizer agrees" if backend.dialect.wants_ids else "a trial came back, as text"
    return Finding(_NAME, Standing.OK, f"{says}; {ids}")


def _room(endpoint: Endpoint) -> str:
    context = f", context {endpoint.context:,}" if endpoint.context else ""
    return context + (f", {endpoint.slots} slots" if endpoint.slots else "")
