"""The error tree; each message says what happened and what to do next.

    EyasError
     ├── UsageError            bad RUN.toml, source, tokenizer or option       exit 2
     │    ├── PromptsRemoved   a resumed run's sources lost prompts            exit 2
     │    └── StalePlanError   a plan no longer holds                          exit 8
     ├── LedgerError           the books were used wrongly: a defect of eyas
     │    └── CapReached       a reservation does not fit below the cap        (admission's answer, not an exit)
     ├── KeyOrCreditsError     no key, a refused key, no credits               exit 6
     ├── NotSentError          no connection: the request provably did not start
     ├── BrokenError           the connection broke after the request was sent
     ├── ApiError              the API answered a question of ours with an error
     ├── StorageError          the journal could not be written or read        exit 7
     └── LockedError           another process holds the run                   exit 2

Exit codes are given in `cli` only.
"""

from __future__ import annotations


class EyasError(Exception):
    """Base of all errors that eyas raises on purpose."""


class UsageError(EyasError):
    """Input of the user that cannot be used; nothing was spent."""


class PromptsRemoved(UsageError):
    """Sources of a resumed run no longer hold prompts that it asked for."""


class StalePlanError(UsageError):
    """A plan rests on prompts, prices or keys of RUN.toml that are not as they were; nothing was spent."""


class LedgerError(EyasError):
    """The ledger was asked for something that cannot be: a defect of the caller."""


class CapReached(LedgerError):
    """A reservation does not fit below the cap."""


class KeyOrCreditsError(EyasError):
    """The key is missing or refused, its limit is used up, or the account has no credits."""


class NotSentError(EyasError):
    """No connection: the request provably did not start."""


class BrokenError(EyasError):
    """The connection broke, fell silent or ran out of time after the request was sent."""


class ApiError(EyasError):
    """The API answered a question of ours (endpoints, generation, key) with an error."""


class StorageError(EyasError):
    """The journal could not be written or read; the run stops rather than pay for what it cannot keep."""


class WorkerLost(EyasError):
    """A worker of a run over many machines cannot be spoken to any more."""


class LockedError(EyasError):
    """Another process holds the run directory."""
