"""What `eyas doctor` asks of the API: whether it is there, what the key may, who may answer. Only reads; spends nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from pydantic import SecretStr

from eyas.backends.openrouter import OpenRouter
from eyas.config import OPENROUTER, RunConfig
from eyas.engine import checkup
from eyas.engine.account import Account, read_account
from eyas.engine.findings import Check, Finding, Found, Standing, Trouble
from eyas.engine.inputs import Offer, ask, list_endpoints
from eyas.engine.target import api_of
from eyas.errors import EyasError, NotSentError
from eyas.ledger import nano_dollars
from eyas.plan import routes
from eyas.providers.choose import allowed
from eyas.transport import Deadlines, Transport, fetch
from eyas.types import NANO

_DEADLINES = Deadlines(total=60.0)
_PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


@dataclass(slots=True)
class ApiChecks:
    """The checks of one API, in order; what one learns is there for those after it.

    Attributes:
        config: the run that asks there; None: the API as it is, without a run.
        key: empty if there is none.
        key_error: why the key that was named cannot be used.
        wall: seconds since 1970.
        broken: RUN.toml cannot be read, so that nobody knows at which address to ask.
    """

    config: RunConfig | None
    key: SecretStr
    transport: Transport
    wall: Callable[[], float]
    key_error: str = ""
    broken: bool = False
    date: str = ""
    backend: OpenRouter | None = None
    account: Account | None = None
    offer: Offer | None = None

    def checks(self) -> list[tuple[str, Trouble, Check]]:
        """All of them but the money, which is held against what the run has spent."""
        return [
            ("network", Trouble.USAGE, self._network),
            ("clock", Trouble.USAGE, self._clock),
            ("key", Trouble.KEY, self._key),
            ("endpoints", Trouble.USAGE, self._endpoints),
            ("distillation", Trouble.USAGE, self._distillation),
        ]

    async def _network(self) -> Found:
        if self.broken:
            return Finding("network", Standing.WARN, "the API was not asked: RUN.toml does not say at which address")
        backend = api_of(self.config, self.key) if self.config else OpenRouter(OPENROUTER, "", self.key)
        try:
            _, headers, _ = await fetch(self.transport, backend.providers(), _DEADLINES)
        except EyasError as error:
            return Finding("network", Standing.FAIL, f"{backend.base_url} cannot be reached: {error}", _remedy(error))
        self.backend, self.date = backend, headers.get("date", "")
        return checkup.address(backend.base_url)

    def _clock(self) -> Found:
        return None if self.backend is None else checkup.clock(self.date, self.wall())

    async def _key(self) -> Found:
        if self.key_error:
            return Finding("key", Standing.FAIL, self.key_error, trouble=Trouble.KEY)
        if not self.key.get_secret_value():
            remedy = "set OPENROUTER_API_KEY, or give a file with --key-file"
            return Finding("key", Standing.FAIL, "there is none", remedy, Trouble.KEY)
        if self.backend is None:
            return Finding("key", Standing.WARN, "there is one; the API could not be asked whether it accepts it")
        self.account = await read_account(self.backend, self.transport)
        return checkup.key(self.account, self.wall())

    def money(self, settled: int) -> Found:
        """The walls behind the cap; `settled` is what the run has spent, nano-dollars."""
        if self.account is None:
            return None
        left = None
        if self.config is not None and self.config.budget.usd is not None:
            left = max(0, nano_dollars(self.config.budget.usd) - settled)
        return checkup.money(self.account, left)

    async def _endpoints(self) -> Found:
        if self.config is None or self.backend is None:
            return None
        self.offer = await list_endpoints(self.config, self.backend, self.transport)
        usable = allowed(self.offer.verdicts)
        best = routes(self.config, usable)[0]
        return Finding(
            "endpoints",
            Standing.OK,
            f"{len(usable)} of {len(self.offer.verdicts)} may answer; first {best.tag} at ${best.prices.completion / NANO:g} "
            "a million output tokens",
        )

    async def _distillation(self) -> Found:
        config = self.config
        if config is None or self.backend is None or not config.providers.enforce_distillable_text:
            return None
        data = await ask("the list of models", self.backend, self.transport, self.backend.distillable())
        rows = cast("list[dict[str, object]]", data) if isinstance(data, list) else []
        return checkup.distillable(config.target.model, [str(row.get("id")) for row in rows])


def _remedy(error: EyasError) -> str:
    if isinstance(error, NotSentError) and any(os.environ.get(name) for name in _PROXIES):
        return "eyas knows no proxy, and one is set here: let it connect directly"
    return "check [target] base_url and the network"
