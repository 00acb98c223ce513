"""What one command runs: a session at the target, and one at the fallback for what that leaves."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from pydantic import SecretStr

from eyas.backends.local import Local
from eyas.config import RunConfig
from eyas.engine.inputs import Inputs, Offer, Tokenizer, list_endpoints, load_tokenizer, read_inputs
from eyas.engine.remote import how_many
from eyas.engine.replicas import prove
from eyas.engine.session import Ended, Options, Parts, run
from eyas.engine.target import Backend, backend_of
from eyas.errors import ApiError
from eyas.lock import lock
from eyas.transport import HttpTransport, Transport
from eyas.types import StopReason


@dataclass(frozen=True, slots=True)
class _Known:
    """What all sessions of a command share; `text` is RUN.toml's."""

    tokenizer: Tokenizer
    inputs: Inputs
    text: str


async def run_config(
    config: RunConfig, text: str, key: SecretStr, options: Options, fallback_key: SecretStr | None = None
) -> Ended:
    """Read everything that a RUN.toml names, take its run directory, and run in it; `text` is the file's.

    Where the target's servers leave works owed, or its minutes are over, and RUN.toml has a [fallback] whose key is given,
    those are asked there, under the same quotas and in the same journal.

    Raises:
        UsageError, ApiError, KeyOrCreditsError, LockedError: before anything was spent.
        StorageError: the journal cannot be written or read.
    """
    options.scope.check(config)
    tokenizer = load_tokenizer(config)
    inputs = read_inputs(config, tokenizer)
    if options.on_inputs is not None:
        options.on_inputs(inputs)
    known = _Known(tokenizer, inputs, text)
    after = config.fallback.after_minutes if config.fallback and fallback_key is not None else None
    first = options if after is None else replace(options, until=time.monotonic() + 60 * after)
    ended = await _session(config, key, known, first)
    if ended.reason is not StopReason.OWED or config.fallback is None or fallback_key is None:
        return ended
    if options.on_fallback is not None:
        options.on_fallback(ended)
    return await _session(config.fallen_back, fallback_key, known, options)


async def _session(config: RunConfig, key: SecretStr, known: _Known, options: Options) -> Ended:
    backend = backend_of(config, key)
    async with HttpTransport() as transport:
        offer = await list_endpoints(config, backend, transport)
        if options.check is not None:
            options.check(known.inputs, offer)
        backend = await proven(config, backend, known.tokenizer, transport, offer)
        parts = Parts(config, backend, known.tokenizer, known.inputs, offer, known.text)
        with lock(config.dir):
            return await run(parts, transport, options, how_many(config))


async def proven(
    config: RunConfig, backend: Backend, tokenizer: Tokenizer, transport: Transport, offer: Offer
) -> Backend:
    """The backend as it is to be used: servers of the user's that answer now have shown what they can, the API needs not.

    Raises:
        ApiError: no server answers, or one does not answer as its kind does.
        UsageError: one cannot do what the run needs of it.
    """
    if not isinstance(backend, Local):
        return backend
    tags = [verdict.endpoint.tag for verdict in offer.verdicts if verdict.use]
    if not tags:
        reasons = "; ".join(verdict.reason for verdict in offer.verdicts)
        raise ApiError(reasons + ("; `eyas run --fallback` asks [fallback] at once" if config.fallback else ""))
    return await prove(backend, tokenizer.loaded, config.thinking(config.datasets[0].name), transport, tags)
