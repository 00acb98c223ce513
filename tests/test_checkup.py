"""What each check of `eyas doctor` makes of what it found."""

from __future__ import annotations

from email.utils import formatdate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyas.backends.account import Credits, KeyInfo
from eyas.cli.doctor import line
from eyas.engine import checkup
from eyas.engine.account import Account
from eyas.engine.findings import Finding, Standing, Trouble

NANO = 1_000_000_000
OK, WARN, FAIL = Standing.OK, Standing.WARN, Standing.FAIL


@pytest.mark.parametrize(
    ("date", "standing"),
    [(0, OK), (29, OK), (-29, OK), (31, WARN), (-90_000, WARN)],
)
def test_clocks(date: int, standing: Standing) -> None:
    """More than 30 s apart is a warning, either way; no date is no trouble."""
    assert checkup.clock(formatdate(1_800_000_000 + date, usegmt=True), 1_800_000_000).standing is standing
    assert checkup.clock("", 0).standing is OK
    assert checkup.clock("yesterday", 0).standing is OK


@pytest.mark.parametrize(
    ("info", "standing", "says"),
    [
        (KeyInfo(), OK, "accepted"),
        (KeyInfo(expires_at="2027-06-01T00:00:00Z"), OK, "2027-06-01"),
        (KeyInfo(expires_at="2027-01-15T12:00:00Z"), WARN, "expires in 4.0 hours"),
        (KeyInfo(expires_at="2027-01-15T07:00:00+00:00"), FAIL, "it expired"),
        (KeyInfo(expires_at="some day"), OK, "some day"),
        (KeyInfo(free_tier=True), WARN, "never bought credits"),
        (KeyInfo(management=True), WARN, "management key"),
    ],
)
def test_kinds_of_keys(info: KeyInfo, standing: Standing, says: str) -> None:
    """Free tier, management and expiry are told; 1800000000 is 2027-01-15T08:00:00Z."""
    found = checkup.key(Account(info, None), 1_800_000_000)
    assert [each.standing for each in found] == [standing]
    assert says in found[0].says


@given(st.integers(-5, 200), st.integers(-5, 200) | st.none(), st.integers(0, 200) | st.none())
def test_walls(limit: int, balance: int | None, left: int | None) -> None:
    """A wall that holds the whole run is ok, a lower one warns, none left fails as a matter of the key."""
    account = Account(KeyInfo(remaining=limit * NANO), None if balance is None else Credits(balance * NANO, 0))
    for finding, has in zip(
        checkup.money(account, None if left is None else left * NANO), (limit, balance), strict=True
    ):
        if has is None:
            assert finding.standing is OK
        elif has <= 0:
            assert (finding.standing, finding.trouble) == (FAIL, Trouble.KEY)
        else:
            assert finding.standing is (WARN if left is not None and has < left else OK)


@pytest.mark.parametrize(("most", "standing"), [(None, OK), (2256, OK), (2255, FAIL), (100, FAIL)])
def test_open_files(most: int | None, standing: Standing) -> None:
    """Each request in flight takes a file, and 256 are kept for the rest."""
    assert checkup.open_files(most, 2000).standing is standing


def test_disks() -> None:
    """Room for all that may be bought is enough; less is a warning with what to do."""
    need = checkup.disk_need(1000, 1_000_000, 7_000_000)
    assert 50_000_000 < need < 100_000_000
    assert checkup.disk(need, need).standing is OK
    assert checkup.disk(need - 1, need).standing is WARN
    assert checkup.disk(2_000_000_000, None).says == "2.0 GB free"


MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 22 0:44 / /data rw - nfs4 server:/data rw
41 40 8:2 / /data/my\\040disk rw - xfs /dev/sdb1 rw
42 22 0:45 / /scratch rw - tmpfs tmpfs rw
broken line
"""


@pytest.mark.parametrize(
    ("path", "kind", "standing"),
    [("/home/me", "ext4", OK), ("/data/run", "nfs4", WARN), ("/data/my disk/run", "xfs", OK), ("/scratch", "tmpfs", WARN),
     ("/database", "ext4", OK)],
)  # fmt: skip
def test_file_systems(path: str, kind: str, standing: Standing) -> None:
    """The deepest mount above the folder tells; a network's and a memory's are warned of."""
    found = checkup.mount_kind(MOUNTS, Path(path))
    assert found == kind
    assert checkup.file_system(found).standing is standing
    assert checkup.mount_kind("", Path("/x")) == ""
    assert checkup.file_system("fuse.sshfs").standing is WARN


def test_extras_and_python() -> None:
    """An extra is there if all it needs is; an old Python fails."""
    requires = [
        "click>=8.1",
        "a>=1; extra == 'one'",
        'b[x]>=2 ; python_version > "3" and extra == "two"',
        "a; extra == 'two'",
    ]
    have = checkup.extras(requires, lambda name: name == "a")
    assert have == {"one": True, "two": False}
    assert "extras: one; not installed: two" in checkup.python((3, 11, 7), "0.1", have).says
    assert checkup.python((3, 10, 1), "0.1", {}).standing is FAIL


def test_a_lock_that_does_not_hold() -> None:
    """Two runs could write one journal: storage fails. A slow disk is only slow."""
    assert checkup.durable(0.001, locks=False).trouble is Trouble.STORAGE
    assert checkup.durable(0.001, locks=True).standing is OK
    assert checkup.durable(0.2, locks=True).standing is WARN


@pytest.mark.parametrize(
    ("url", "standing"), [("https://a.b/v1", OK), ("http://127.0.0.1:1/v1", OK), ("http://a.b/v1", WARN)]
)
def test_addresses(url: str, standing: Standing) -> None:
    """Without TLS the key is in the open, unless it stays on this machine."""
    assert checkup.address(url).standing is standing


def test_lines() -> None:
    """One line a finding; on a terminal it is wrapped under itself."""
    found = Finding("open files", FAIL, "too few", "raise it")
    assert line(found, 0) == "fail  open files     too few: raise it"
    wide = line(Finding("disk", OK, "word " * 40), 80)
    assert max(map(len, wide.splitlines())) <= 80
    assert wide.splitlines()[1].startswith(" " * 21 + "word")
