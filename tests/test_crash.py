"""A sample of the crash points of bench/crash.py: nothing acknowledged is lost, nothing journalled is bought again."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from tests import crash, kit
from tests.crash import JOURNAL, KILLED, Point

pytestmark = pytest.mark.e2e

KILLS = [
    Point("kill", "call", "pwrite64:signal=SIGKILL:when=2", ends=(KILLED,)),
    Point("kill", "call", "pwrite64:signal=SIGKILL:when=24", ends=(KILLED,)),
    Point("kill", "call", "pwrite64:signal=SIGKILL:when=61", ends=(KILLED,)),
    Point("kill", "call", "pwrite64:signal=SIGKILL:when=98", ends=(KILLED,)),
    Point("kill", "call", "fdatasync:signal=SIGKILL:when=4", ends=(KILLED,)),
    Point("kill", "call", "fdatasync:signal=SIGKILL:when=13", ends=(KILLED,)),
    Point("kill", "call", "pwrite64:signal=SIGKILL:when=5", JOURNAL[:1], (KILLED,)),
    Point(
        "kill",
        "call",
        "fdatasync:signal=SIGKILL:when=16",
        ends=(KILLED,),
        again=Point("kill", "call", "pwrite64:signal=SIGKILL:when=12", ends=(KILLED,)),
    ),
]
ERRORS = [
    Point("ENOSPC", "call", "pwrite64:error=ENOSPC:when=5+"),
    Point("ENOSPC", "call", "pwrite64:error=ENOSPC:when=70"),
    Point("EIO", "call", "pwrite64:error=EIO:when=85+"),
    Point("EIO", "call", "fdatasync:error=EIO:when=12"),
    Point("short", "call", "pwrite64:retval=0:when=50+"),
]
LIMITS = [Point("short", "limit", "90123"), Point("short", "limit", "150123")]
FULL = [Point("full", "full", "12k"), Point("full", "full", "160k")]
POWER = [
    Point("power", "power", "pwrite64:signal=SIGSTOP:when=40"),
    Point("power", "power", "fdatasync:signal=SIGSTOP:when=9"),
    Point("power", "power", "fdatasync:signal=SIGSTOP:when=18"),
]


@pytest.fixture(scope="module")
def sim(kimi_folder: Path) -> Generator[kit.Sim]:
    """One simulator for all points; each asks prompts of its own."""
    with kit.simulator(kimi_folder, **crash.PACE) as running:
        yield running


def assert_holds(points: list[Point], sim: kit.Sim, tokenizer: Path) -> None:
    """Every point is met, and nothing is violated at any."""
    reason = crash.missing(points[0].way)
    if reason:
        pytest.skip(reason)
    results = list(crash.sweep(points, sim, tokenizer))
    violations = [(each.point.where, each.violations) for each in results if each.violations]
    assert not violations
    assert [each.point for each in results if not each.hit] == []


def test_sigkill_at_a_write_or_a_sync(sim: kit.Sim, kimi_folder: Path) -> None:
    """Killed while the journal is made, at its writes, at its syncs, at its end, and again while it resumes."""
    assert_holds(KILLS, sim, kimi_folder)


def test_failing_writes_and_syncs(sim: kit.Sim, kimi_folder: Path) -> None:
    """ENOSPC, EIO and writes of no byte: exit 7 with a sentence, and no request without a durable intent."""
    assert_holds(ERRORS, sim, kimi_folder)


def test_short_writes(sim: kit.Sim, kimi_folder: Path) -> None:
    """A write that ends amid a page, at a limit of file sizes."""
    assert_holds(LIMITS, sim, kimi_folder)


def test_a_full_disk(sim: kit.Sim, kimi_folder: Path) -> None:
    """A tmpfs that fills up: while the run begins, and while answers come."""
    assert_holds(FULL, sim, kimi_folder)


def test_power_loss(sim: kit.Sim, kimi_folder: Path) -> None:
    """The disk is gone from one system call to the next; what was acknowledged is there after the mount."""
    assert_holds(POWER, sim, kimi_folder)
