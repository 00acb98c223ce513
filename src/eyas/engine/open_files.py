"""How many files this process may open, which is how many requests it can have in flight."""

from __future__ import annotations

import resource

from eyas.engine.checkup import SPARE_FILES
from eyas.errors import UsageError


def allow_open_files(in_flight: int) -> None:
    """Raise the limit of open files as far as may be, and refuse what it does not carry.

    Raises:
        UsageError: fewer files may be open than requests in flight need.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    if soft != resource.RLIM_INFINITY and in_flight > soft - SPARE_FILES:
        raise UsageError(
            f"in_flight = {in_flight} needs {in_flight + SPARE_FILES} open files, {soft} are allowed: raise the limit "
            f"(ulimit -Hn as root, or /etc/security/limits.conf), or set [limits] in_flight = {max(1, soft - SPARE_FILES)}"
        )
