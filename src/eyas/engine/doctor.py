"""`eyas doctor`: looks at the machine, the account and a run before it costs anything. It buys no answer.

Every check runs, whatever the others found; one that breaks is a finding too.
"""

from __future__ import annotations

import importlib.metadata
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from inspect import isawaitable
from pathlib import Path

from pydantic import SecretStr

import eyas
from eyas.config import RunConfig
from eyas.engine import checkup, findings
from eyas.engine.api_checks import ApiChecks
from eyas.engine.findings import Check, Finding, Found, Standing, Trouble
from eyas.engine.inputs import Inputs, Tokenizer, load_tokenizer, read_inputs
from eyas.engine.server_checks import examine_servers
from eyas.errors import EyasError, KeyOrCreditsError, StorageError
from eyas.events import Alarm
from eyas.journal import NAME, Journal, Store
from eyas.ledger import MILLION, nano_dollars
from eyas.lock import is_locked, lock
from eyas.providers.choose import allowed
from eyas.records import Run
from eyas.state import State
from eyas.transport import Transport

_WRITES = 5
_MOUNTS = Path("/proc/self/mountinfo")


@dataclass(frozen=True, slots=True)
class Subject:
    """What is looked at: a run, or (config None) the machine and the account alone.

    Attributes:
        key: the target's; empty if there is none.
        fallback_key: that of [fallback], the same.
        broken: why RUN.toml cannot be read, where one was named; the API is not asked then, for its address is not known.
        key_error: why the key that was named cannot be used.
    """

    key: SecretStr
    config: RunConfig | None = None
    broken: str = ""
    key_error: str = ""
    fallback_key: SecretStr = field(default_factory=lambda: SecretStr(""))

    @property
    def api(self) -> RunConfig | None:
        """The run as it asks an API: itself, or by its [fallback]; None where it asks none."""
        found = (self.config, self.config.fallen_back if self.config and self.config.fallback else None)
        return next((each for each in found if each is not None and each.target.bills), None)

    @property
    def servers(self) -> RunConfig | None:
        """The run as it asks servers of the user's own; None where it asks none."""
        return None if self.config is None or self.config.target.bills else self.config


@dataclass(slots=True)
class Doctor:
    """The checks of one subject, in order; what one learns is there for those after it."""

    subject: Subject
    transport: Transport
    wall: Callable[[], float] = time.time
    tick: Callable[[], float] = time.monotonic
    api: ApiChecks | None = field(init=False)
    tokenizer: Tokenizer | None = None
    inputs: Inputs | None = None
    state: State = field(default_factory=State)

    def __post_init__(self) -> None:
        subject = self.subject
        key = subject.key if subject.servers is None else subject.fallback_key
        asks = subject.api is not None or subject.config is None
        self.api = (
            ApiChecks(subject.api, key, self.transport, self.wall, subject.key_error, bool(subject.broken))
            if asks
            else None
        )

    async def examine(self) -> list[Finding]:
        """Run every check; what they found, in order."""
        checks: list[tuple[str, Trouble, Check]] = [("python", Trouble.USAGE, self._python)]
        run: list[tuple[str, Trouble, Check]] = [
            ("run directory", Trouble.STORAGE, self._run_directory),
            ("tokenizer", Trouble.USAGE, self._tokenizer),
            ("prompts", Trouble.USAGE, self._prompts),
        ]
        asked: list[tuple[str, Trouble, Check]] = [("server", Trouble.USAGE, self._servers)]
        if self.api is not None:
            asked += self.api.checks()
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
        for name, trouble, check in checks + run + asked + machine:
            found += await _guarded(name, trouble, check)
        for key in (self.subject.key, self.subject.fallback_key):
            found = [findings.without(key, each) for each in found]
        return found

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

    async def _servers(self) -> Found:
        config = self.subject.servers
        if config is None:
            return None
        if self.api is None and self.subject.key_error:
            return Finding("server", Standing.FAIL, self.subject.key_error, trouble=Trouble.KEY)
        return await examine_servers(config, self.subject.key, self.transport, self.tokenizer)

    def _money(self) -> Found:
        return None if self.api is None else self.api.money(self.state.money.settled)

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
        offer = self.api.offer if self.api and config.target.bills else None
        cheapest = min((e.prices.completion for e in allowed(offer.verdicts)), default=0) if offer else 0
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
