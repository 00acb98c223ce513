"""From [target] to the backend that it names."""

from __future__ import annotations

from pydantic import SecretStr

from eyas.backends.llamacpp import LLAMACPP
from eyas.backends.local import Dialect, Local, root_of, tag_of
from eyas.backends.openai import OPENAI
from eyas.backends.openrouter import OpenRouter
from eyas.backends.sglang import SGLANG, SGLANG_CHAT
from eyas.backends.vllm import VLLM, VLLM_CHAT
from eyas.config import RunConfig
from eyas.errors import UsageError
from eyas.transport import Deadlines

Backend = OpenRouter | Local
"""Who may answer: the API, or servers of the user's."""

_DIALECTS: dict[tuple[str, str], Dialect] = {
    ("openai", "ids"): OPENAI,
    ("openai", "chat"): OPENAI,
    ("vllm", "ids"): VLLM,
    ("vllm", "chat"): VLLM_CHAT,
    ("sglang", "ids"): SGLANG,
    ("sglang", "chat"): SGLANG_CHAT,
    ("llamacpp", "ids"): LLAMACPP,
}
"""By [target] backend and prompts_as."""


def backend_of(config: RunConfig, key: SecretStr) -> Backend:
    """The backend that RUN.toml names; `key` goes to it only."""
    target = config.target
    if target.bills:
        return OpenRouter(target.urls[0], target.asked_as, key, target.extra_headers, target.extra_body)
    dialect = _DIALECTS[target.backend, target.prompts_as]
    roots = {tag_of(url): root_of(url) for url in target.urls}
    return Local(dialect, roots, target.asked_as, key, target.extra_headers, target.extra_body)


def api_of(config: RunConfig, key: SecretStr) -> OpenRouter:
    """The API of a run: that of its target, or of its fallback.

    Raises:
        UsageError: it has none.
    """
    if config.target.bills:
        found = backend_of(config, key)
    elif config.fallback is not None:
        found = backend_of(config.fallen_back, key)
    else:
        found = None
    if not isinstance(found, OpenRouter):
        raise UsageError(
            "this run asks servers of your own only: there is no API to look anything up at, and nothing to reconcile"
        )
    return found


def deadlines_of(config: RunConfig) -> Deadlines:
    """How long each part of a request may take. An engine of the user's queues what it has no room for, and is waited for."""
    limits = config.limits
    queue = {"headers_seconds", "silence_seconds"} - limits.model_fields_set if not config.target.bills else set[str]()
    headers = limits.total_seconds if "headers_seconds" in queue else limits.headers_seconds
    silence = limits.total_seconds if "silence_seconds" in queue else limits.silence_seconds
    return Deadlines(limits.connect_seconds, headers, silence, limits.total_seconds)
