"""What `eyas doctor` makes of what it found: one finding a check, with the remedy. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from eyas.config import LOOPBACK
from eyas.engine.account import Account
from eyas.engine.findings import Finding, Standing, Trouble
from eyas.ledger import usd

SPARE_FILES = 256
"""Open files that are not connections: the journal, sources, the tokenizer, libraries."""
MOST_SKEW = 30.0
"""Seconds that this clock and the server's may differ."""
SOON = 86_400.0
"""Seconds before its end in which a key is said to expire soon."""
SLOW_WRITE = 0.1
"""Seconds that a durable write may take; a run makes some dozens a second, in common."""
NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "gpfs", "beegfs", "glusterfs",
                     "orangefs", "ocfs2", "gfs2", "drvfs", "vboxsf", "virtiofs", "davfs", "sshfs", "s3fs"})  # fmt: skip
"""File systems behind which another machine or host keeps the bytes; so does whatever begins with `fuse`."""
MEMORY = frozenset({"tmpfs", "ramfs"})
BYTES_A_TOKEN = 6
"""Bytes that the journal takes for a token of an answer, with its pieces and drafts; 4 were measured in a simulated run."""
WAL_BYTES = 16 * 1024 * 1024
"""What SQLite may hold beside the journal before it is taken in: 4000 pages."""
BYTES_A_WORK = 4_096
"""Bytes of what a work has beside its texts: events, headers, the body's frame."""


def extras(requires: Iterable[str], installed: Callable[[str], bool]) -> dict[str, bool]:
    """Each optional extra and whether all it needs is installed, from a distribution's requirements (PEP 508)."""
    found: dict[str, bool] = {}
    for line in requires:
        what, _, marker = line.partition(";")
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", marker)
        name = re.match(r"[\w.-]+", what.strip())
        if extra and name:
            found[extra[1]] = found.get(extra[1], True) and installed(name[0])
    return found


def python(version: tuple[int, int, int], eyas: str, have: dict[str, bool]) -> Finding:
    """The interpreter, and which extras are there; one that is missing is told of where it is needed."""
    says = f"eyas {eyas} on Python {'.'.join(map(str, version))}"
    there = [name for name, is_there in have.items() if is_there]
    missing = [name for name in have if name not in there]
    says += f"; extras: {', '.join(there) or 'none'}" + (f"; not installed: {', '.join(missing)}" if missing else "")
    if version < (3, 11):
        return Finding("python", Standing.FAIL, says, "install Python 3.11 or later")
    return Finding("python", Standing.OK, says)


def address(base_url: str) -> Finding:
    """The API at that address answered; over https its certificate was checked."""
    url = urlsplit(base_url)
    if url.scheme == "https":
        return Finding("network", Standing.OK, f"{base_url} answers, over TLS")
    if url.hostname in LOOPBACK:
        return Finding("network", Standing.OK, f"{base_url} answers, on this machine")
    return Finding(
        "network", Standing.WARN, f"{base_url} answers without TLS: the key goes unencrypted", "use https://"
    )


def clock(date: str, now: float) -> Finding:
    """This clock against a server's Date header; `now` is seconds since 1970."""
    try:
        theirs = parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError):
        return Finding("clock", Standing.OK, "not compared: the server says no date")
    skew = now - theirs
    if abs(skew) <= MOST_SKEW:
        return Finding("clock", Standing.OK, f"within {MOST_SKEW:g} s of the server's")
    way = "ahead of" if skew > 0 else "behind"
    return Finding(
        "clock",
        Standing.WARN,
        f"{abs(skew):,.0f} s {way} the server's, so that times in the journal are wrong",
        "set it, for example with `timedatectl set-ntp true`",
    )


def key(account: Account, now: float) -> list[Finding]:
    """An accepted key: what kind it is, and until when it holds; `now` is seconds since 1970."""
    info, says = account.key, "accepted"
    found: list[Finding] = []
    if info.management:
        found.append(
            Finding("key", Standing.WARN, "accepted, but it is a management key, which may not buy answers",
                    "give `eyas run` an ordinary key")
        )  # fmt: skip
    if info.free_tier:
        found.append(
            Finding("key", Standing.WARN, "accepted, but its account never bought credits: only free models, few a day",
                    "buy credits at https://openrouter.ai/settings/credits")
        )  # fmt: skip
    if info.expires_at:
        left = _seconds_left(info.expires_at, now)
        if left is None or left > SOON:
            says += f"; it expires on {info.expires_at[:10]}"
        else:
            found.append(_expiry(left, info.expires_at))
    return found or [Finding("key", Standing.OK, says)]


def _expiry(left: float, when: str) -> Finding:
    if left <= 0:
        return Finding("key", Standing.FAIL, f"it expired at {when}", "make a new key", Trouble.KEY)
    return Finding("key", Standing.WARN, f"it expires in {left / 3600:.1f} hours, at {when}", "make a new key")


def _seconds_left(when: str, now: float) -> float | None:
    try:
        until = datetime.fromisoformat(when)
    except ValueError:
        return None
    return (until if until.tzinfo else until.replace(tzinfo=UTC)).timestamp() - now


def money(account: Account, left: int | None) -> list[Finding]:
    """The key's limit and the balance against what the run may still spend (nano-dollars; None: no run is known)."""
    remaining, balance = account.key.remaining, account.credits.balance if account.credits else None
    limit = _wall("limit", remaining, left, "raise the key's limit")
    if limit is None:
        wall = "one would be" if left is None else f"one of ${usd(left):,.2f} would be"
        limit = Finding(
            "limit",
            Standing.OK,
            f"the key has no limit of its own; {wall} a second wall (https://openrouter.ai/settings/keys)",
        )
    credit = _wall("balance", balance, left, "add credits")
    if credit is None:
        credit = Finding(
            "balance",
            Standing.OK,
            "not known: only a management key may read it (https://openrouter.ai/settings/credits)",
        )
    return [limit, credit]


def _wall(name: str, has: int | None, left: int | None, remedy: str) -> Finding | None:
    if has is None:
        return None
    whose = f"${usd(has):,.2f} left"
    if has <= 0:
        return Finding(name, Standing.FAIL, f"{whose}: nothing can be bought", remedy, Trouble.KEY)
    if left is None:
        return Finding(name, Standing.OK, whose)
    if has < left:
        return Finding(
            name,
            Standing.WARN,
            f"{whose}, and the run may still spend ${usd(left):,.2f}: should it come to that, it stops with exit 6",
            f"{remedy}, or lower [budget] usd",
        )
    return Finding(name, Standing.OK, f"{whose}, the run may still spend ${usd(left):,.2f}")


def distillable(model: str, listed: Iterable[str]) -> Finding:
    """Whether the model is among those whose authors allow distillation; `listed` are ids of the API's own list."""
    if model.partition(":")[0] in {each.partition(":")[0] for each in listed}:
        return Finding("distillation", Standing.OK, f"the API lists {model} among the models whose author allows it")
    return Finding(
        "distillation",
        Standing.FAIL,
        f"the API does not list {model} among the models whose author allows it, so it would refuse every request",
        "choose another model, or read the model's licence and set [providers] enforce_distillable_text = false",
    )


def open_files(most: int | None, in_flight: int) -> Finding:
    """The hard limit of open files (None: there is none) against the requests in flight."""
    need = in_flight + SPARE_FILES
    if most is None or most >= need:
        return Finding(
            "open files", Standing.OK, f"{most or 'any number'} allowed, in_flight = {in_flight} needs {need}"
        )
    return Finding(
        "open files",
        Standing.FAIL,
        f"{most} allowed, in_flight = {in_flight} needs {need}",
        f"raise it (ulimit -Hn as root), or set [limits] in_flight = {max(1, most - SPARE_FILES)}",
    )


def disk_need(works: int, prompt_tokens: int, answer_tokens: float) -> int:
    """Bytes that the journal of a run may take: each prompt stands in it and in its request's body."""
    return WAL_BYTES + works * BYTES_A_WORK + 2 * BYTES_A_TOKEN * prompt_tokens + round(BYTES_A_TOKEN * answer_tokens)


def disk(free: int, need: int | None) -> Finding:
    """Free bytes against what the journal may take at most (None: not known)."""
    says = f"{_size(free)} free"
    if need is None:
        return Finding("disk", Standing.OK if free > 10**9 else Standing.WARN, says)
    says += f", the journal takes up to {_size(need)}"
    if free < need:
        remedy = "free some space, or choose another [run] dir"
        return Finding("disk", Standing.WARN, says, remedy, Trouble.STORAGE)
    return Finding("disk", Standing.OK, says)


def _size(count: int) -> str:
    for unit, bytes_of in (("GB", 10**9), ("MB", 10**6)):
        if count >= bytes_of:
            return f"{count / bytes_of:,.1f} {unit}"
    return f"{count / 1000:,.0f} kB"


def mount_kind(mountinfo: str, path: Path) -> str:
    """The file system that holds a resolved path, by Linux's /proc/self/mountinfo; empty if that does not tell.

    Source: https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html
    """
    best, kind = -1, ""
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split()
        if len(fields) < 5 or not after:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
        depth = len(PurePosixPath(point).parts)
        if depth >= best and path.is_relative_to(point):  # the last one mounted at a point hides those before it
            best, kind = depth, after.split()[0]
    return kind


def file_system(kind: str) -> Finding:
    """What kind of file system the run directory is on; empty: not known."""
    if kind in NETWORK or kind.startswith("fuse"):
        return Finding(
            "file system",
            Standing.WARN,
            f"{kind}: over a network, locks and fsync may promise more than they keep",
            "put [run] dir on a local disk, and copy it when the run is over",
        )
    if kind in MEMORY:
        return Finding("file system", Standing.WARN, f"{kind}: it is gone after a restart", "put [run] dir on a disk")
    if kind == "overlay":
        return Finding(
            "file system", Standing.OK, "overlay: a container's own layer, which goes when the container does"
        )
    return Finding("file system", Standing.OK, kind or "not told on this system")


def durable(seconds: float, *, locks: bool) -> Finding:
    """A trial journal was written and read back: how long a durable write took, and whether its lock held."""
    if not locks:
        return Finding(
            "journal", Standing.FAIL, "a lock does not hold here: two runs could write one journal",
            "put [run] dir on a local disk", Trouble.STORAGE,
        )  # fmt: skip
    says = f"a trial journal holds; a durable write takes {1000 * seconds:.1f} ms"
    if seconds > SLOW_WRITE:
        return Finding("journal", Standing.WARN, says, "a local SSD is much quicker")
    return Finding("journal", Standing.OK, says)
