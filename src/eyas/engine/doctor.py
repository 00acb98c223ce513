"""`eyas doctor`: looks at the machine, the account and a run before it costs anything. Only reads; asks no answer.

Every check runs, whatever the others found; one that breaks is a finding too.
"""

from __future__ import annotations

import importlib.metadata
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from inspect import isawaitable
from pathlib import Path
from typing import cast

from pydantic import SecretStr

import eyas
from eyas.backends.openrouter import OpenRouter
from eyas.config import OPENROUTER, RunConfig
from eyas.engine import checkup, findings
from eyas.engine.account import Account, read_account
from eyas.engine.findings import Finding, Standing, Trouble
from eyas.engine.inputs import Inputs, Offer, Tokenizer, ask, backend_of, list_endpoints, load_tokenizer, read_inputs
from eyas.errors import EyasError, KeyOrCreditsError, NotSentError, StorageError
from eyas.events import Alarm
from eyas.journal import NAME, Journal, Store
from eyas.ledger import MILLION, nano_dollars
from eyas.lock import is_locked, lock
from eyas.plan import routes
from eyas.providers.choose import allowed
from eyas.records import Run
from eyas.state import State
from eyas.transport import Deadlines, Transport, fetch
from eyas.types import NANO

_DEADLINES = Deadlines(total=60.0)
_WRITES = 5
_PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
_MOUNTS = Path("/proc/self/mountinfo")

Found = Finding | Iterable[Finding] | None
Check = Callable[[], Found | Awaitable[Found]]


@dataclass(frozen=True, slots=True)
class Subject:
    """What is looked at: a run, or (config None) the machine and the account alone.

    Attributes:
        key: empty if there is none.
        broken: why RUN.toml cannot be read, where one was named; the API is not asked then, for its address is not known.
        key_error: why the key that was named cannot be used.
    """

    key: SecretStr
    config: RunConfig | None = None
    broken: str = ""
    key_error: str = ""


@dataclass(slots=True)
class Doctor:
    """The checks of one subject, in order; what one learns is there for those after it."""

    subject: Subject
    transport: Transport
    wall: Callable[[], float] = time.time
    tick: Callable[[], float] = time.monotonic
    date: str = ""
    backend: OpenRouter | None = None
    account: Account | None = None
    offer: Offer | None = None
    tokenizer: Tokenizer | None = None
    inputs: Inputs | None = None
    state: State = field(default_factory=State)

    async def examine(self) -> list[Finding]:
        """Run every check; what they found, in order."""
        checks: list[tuple[str, Trouble, Check]] = [("python", Trouble.USAGE, self._python)]
        run: list[tuple[str, Trouble, Check]] = [
            ("run directory", Trouble.STORAGE, self._run_directory),
            ("tokenizer", Trouble.USAGE, self._tokenizer),
            ("prompts", Trouble.USAGE, self._prompts),
        ]
        api: list[tuple[str, Trouble, Check]] = [
            ("network", Trouble.USAGE, self._network),
            ("clock", Trouble.USAGE, self._clock),
            ("key", Trouble.KEY, self._key),
            ("endpoints", Trouble.USAGE, self._endpoints),
            ("distillation", Trouble.USAGE, self._distillation),
        ]
        machine: list[tuple[str, Trouble, Check]] = [
            ("limit", Trouble.KEY, self._money),
            ("open files", Trouble.USAGE, self._open_files),
            ("disk", Trouble.STORAGE, self._disk),
            ("file system", Trouble.STORAGE, self._file_system),
            ("journal", Trouble.STORAGE, self._journal),
        ]
        found = list[Finding]()
        if self.subject.broken:
            found.append(Finding("RUN.toml", Standing.FAIL, self.subject.broken))
        for name, trouble, check in checks + run + api + machine:
            found += await _guarded(name, trouble, check)
        return [findings.without(self.subject.key, each) for each in found]

    def _python(self) -> Finding:
        def installed(name: str) -> bool:
            try:
                importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                return False
            return True

        try:
            requires = importlib.metadata.requires("eyas") or []
        except importlib.metadata.PackageNotFoundError:
            requires = list[str]()
        return checkup.python(sys.version_info[:3], eyas.__version__, checkup.extras(requires, installed))

    def _run_directory(self) -> Found:
        config = self.subject.config
        if config is None:
            return None
        if not (config.dir / NAME).exists():
            return Finding("run directory", Standing.OK, f"{config.dir}: nothing was begun there yet")
        running = is_locked(config.dir)
        with closing(Run(config.dir)) as run:
            self.state = run.state
        return findings.run_directory(config, self.state, running=running)

    def _tokenizer(self) -> Found:
        if self.subject.config is None:
            return None
        self.tokenizer = load_tokenizer(self.subject.config)
        family, vocab = self.tokenizer.family.name, self.tokenizer.loaded.vocab
        found = [Finding("tokenizer", Standing.OK, f"{vocab.size:,} ids, as the family {family} wants them")]
        return found + [Finding("tokenizer", Standing.WARN, each) for each in self.tokenizer.loaded.caveats]

    def _prompts(self) -> Found:
        if self.subject.config is None:
            return None
        if self.tokenizer is None:
            return Finding(
                "prompts", Standing.WARN, "not read: they are counted with the tokenizer, which did not load"
            )
        self.inputs = read_inputs(self.subject.config, self.tokenizer)
        return findings.prompts(self.inputs)

    async def _network(self) -> Found:
        subject = self.subject
        if subject.broken:
            return Finding("network", Standing.WARN, "the API was not asked: RUN.toml does not say at which address")
        backend = backend_of(subject.config, subject.key) if subject.config else OpenRouter(OPENROUTER, "", subject.key)
        try:
            _, headers, _ = await fetch(self.transport, backend.providers(), _DEADLINES)
        except EyasError as error:
            return Finding("network", Standing.FAIL, f"{backend.base_url} cannot be reached: {error}", _remedy(error))
        self.backend, self.date = backend, headers.get("date", "")
        return checkup.address(backend.base_url)

    def _clock(self) -> Found:
        return None if self.backend is None else checkup.clock(self.date, self.wall())

    async def _key(self) -> Found:
        if self.subject.key_error:
            return Finding("key", Standing.FAIL, self.subject.key_error, trouble=Trouble.KEY)
        if not self.subject.key.get_secret_value():
            remedy = "set OPENROUTER_API_KEY, or give a file with --key-file"
            return Finding("key", Standing.FAIL, "there is none", remedy, Trouble.KEY)
        if self.backend is None:
            return Finding("key", Standing.WARN, "there is one; the API could not be asked whether it accepts it")
        self.account = await read_account(self.backend, self.transport)
        return checkup.key(self.account, self.wall())

    def _money(self) -> Found:
        if self.account is None:
            return None
        config, left = self.subject.config, None
        if config is not None and config.budget.usd is not None:
            left = max(0, nano_dollars(config.budget.usd) - self.state.money.settled)
        return checkup.money(self.account, left)

    async def _endpoints(self) -> Found:
        config = self.subject.config
        if config is None or self.backend is None:
            return None
        self.offer = await list_endpoints(config, self.backend, self.transport)
        usable = allowed(self.offer.verdicts)
        best = routes(config, usable)[0]
        return Finding(
            "endpoints",
            Standing.OK,
            f"{len(usable)} of {len(self.offer.verdicts)} may answer; first {best.tag} at ${best.prices.completion / NANO:g} "
            "a million output tokens",
        )

    async def _distillation(self) -> Found:
        config = self.subject.config
        if config is None or self.backend is None or not config.providers.enforce_distillable_text:
            return None
        data = await ask("the list of models", self.backend, self.transport, self.backend.distillable())
        rows = cast("list[dict[str, object]]", data) if isinstance(data, list) else []
        return checkup.distillable(config.target.model, [str(row.get("id")) for row in rows])

    def _open_files(self) -> Finding:
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        in_flight = self.subject.config.limits.in_flight if self.subject.config else 2000
        return checkup.open_files(None if most == resource.RLIM_INFINITY else most, in_flight)

    def _disk(self) -> Finding:
        return checkup.disk(shutil.disk_usage(self._folder()).free, self._need())

    def _need(self) -> int | None:
        """Bytes that the journal may still take; None without a run."""
        config = self.subject.config
        if config is None or self.inputs is None:
            return None
        works = tokens = prompt_tokens = 0
        for (name, _), count in self.inputs.counts.items():
            samples = config.dataset(name).samples
            works += samples
            prompt_tokens += samples * count
            tokens += samples * config.max_tokens(name)
        quotas = [config.quota(each.name) for each in config.datasets]
        answers = min(tokens, sum(quota or tokens for quota in quotas))
        cheapest = min((e.prices.completion for e in allowed(self.offer.verdicts)), default=0) if self.offer else 0
        if cheapest and config.budget.usd is not None:
            answers = min(answers, nano_dollars(config.budget.usd) * MILLION // cheapest)
        return checkup.disk_need(works, prompt_tokens, answers)

    def _file_system(self) -> Finding:
        kind = ""
        if _MOUNTS.exists():
            kind = checkup.mount_kind(_MOUNTS.read_text(encoding="utf-8", errors="replace"), self._folder())
        return checkup.file_system(kind)

    def _folder(self) -> Path:
        """The run directory, or the folder that is there of those above it."""
        folder = (self.subject.config.dir if self.subject.config else Path()).resolve()
        return next(each for each in (folder, *folder.parents) if each.exists())

    async def _journal(self) -> Finding:
        """Write a trial journal where the run's would be, and take it away again."""
        above = self._folder()
        try:
            with tempfile.TemporaryDirectory(dir=above, prefix=".eyas-doctor-") as name:
                return await self._trial(Path(name))
        except OSError as error:
            says = f"{above} cannot be written ({error.strerror or type(error).__name__})"
            return Finding("journal", Standing.FAIL, says, "choose another [run] dir", Trouble.STORAGE)

    async def _trial(self, folder: Path) -> Finding:
        with lock(folder):
            holds = is_locked(folder)
        with closing(Journal(folder)) as journal:
            began = self.tick()
            for number in range(_WRITES):
                await journal.write(Alarm(at=self.wall(), detail=f"trial {number}"))
            seconds = (self.tick() - began) / _WRITES
        with closing(Store(folder)) as store:
            back = sum(1 for _ in store.events())
        if back != _WRITES:
            raise StorageError(f"{folder.parent}: of {_WRITES} writes {back} came back: check the disk")
        return checkup.durable(seconds, locks=holds)


async def _guarded(name: str, trouble: Trouble, check: Check) -> list[Finding]:
    """What a check found; an error that it raises is a failure, one that eyas does not know is so by its own name."""
    try:
        found = check()
        if isawaitable(found):
            found = await found
    except KeyOrCreditsError as error:
        return [Finding(name, Standing.FAIL, str(error), trouble=Trouble.KEY)]
    except (StorageError, OSError) as error:
        return [Finding(name, Standing.FAIL, str(error), trouble=Trouble.STORAGE)]
    except EyasError as error:
        return [Finding(name, Standing.FAIL, str(error), trouble=trouble)]
    except Exception as error:  # noqa: BLE001  # the other checks must still be made
        says = f"this check itself broke ({type(error).__name__}: {error})"
        return [Finding(name, Standing.FAIL, says, "please report it", trouble)]
    if found is None:
        return []
    return [found] if isinstance(found, Finding) else list(found)


def _remedy(error: EyasError) -> str:
    if isinstance(error, NotSentError) and any(os.environ.get(name) for name in _PROXIES):
        return "eyas knows no proxy, and one is set here: let it connect directly"
    return "check [target] base_url and the network"
