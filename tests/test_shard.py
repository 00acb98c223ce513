"""`--shard i/n`: the parts of a run are disjoint, complete, and no more than the whole in money, quotas and requests."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyas import config as configs
from eyas.config import Shard
from eyas.errors import UsageError
from eyas.ledger import nano_dollars
from eyas.prompts import load, part
from tests import kit

SHARDS = st.integers(1, 40)


@given(SHARDS, st.integers(0, 10**12))
def test_the_shares_of_a_number_add_up_to_it(of: int, whole: int) -> None:
    """Nothing of a cap or a quota is lost, nothing is there twice, and no two shares differ by more than one."""
    shares = [Shard(number, of).cut(whole) for number in range(1, of + 1)]
    assert sum(shares) == whole
    assert max(shares) - min(shares) <= 1


@pytest.mark.parametrize("text", ["", "1", "0/2", "3/2", "1/0", "a/b", "1/2/3", "-1/2", "1/1001", "1.0/2"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    """Anything but i/n with 1 <= i <= n <= 1000 is an error that shows the form."""
    with pytest.raises(UsageError, match="such as 2/4"):
        Shard.read(text)


def whole(folder: Path, budget: str = "usd = 10.0\noutput_tokens = 7_000_001") -> configs.RunConfig:
    """A RUN.toml of two sets."""
    text = f"""
[run]
dir = "run"
[target]
model = "moonshotai/kimi-k2.5"
[budget]
{budget}
[limits]
in_flight = 2000
[[datasets]]
name = "B3"
source = "b3.jsonl"
[[datasets]]
name = "B4"
source = "b3.jsonl"
output_tokens = 1000
"""
    (folder / "RUN.toml").write_text(text)
    return configs.load(folder / "RUN.toml")


def test_shards_have_their_share_of_everything(tmp_path: Path) -> None:
    """Caps, quotas and requests in flight of all shards add up to the run's; each has a directory of its own."""
    config = whole(tmp_path)
    parts = [config.part(Shard(number, 3)) for number in (1, 2, 3)]
    assert sum(nano_dollars(each.budget.usd or 0) for each in parts) == nano_dollars(10.0)
    for name in ("B3", "B4"):
        assert sum(each.quota(name) or 0 for each in parts) == config.quota(name)
    assert sum(each.limits.in_flight for each in parts) == 2000
    assert len({each.dir for each in parts}) == 3


def test_total_quotas_are_shared_too(tmp_path: Path) -> None:
    """A quota that the sets share by weight is cut after it was shared."""
    config = whole(tmp_path, "usd = 10.0\ntotal_output_tokens = 100_000")
    parts = [config.part(Shard(number, 7)) for number in range(1, 8)]
    assert sum(each.quota("B3") or 0 for each in parts) == 99_000


@pytest.mark.parametrize("budget", ["usd = 0.000000001\noutput_tokens = 9", "usd = 1.0\noutput_tokens = 1"])
def test_a_share_of_nothing_is_refused(tmp_path: Path, budget: str) -> None:
    """A shard whose cap or quota would be 0, which elsewhere means no limit, is an error."""
    with pytest.raises(UsageError, match="take fewer"):
        whole(tmp_path, budget).part(Shard(1, 2))


def test_a_run_directory_knows_its_shard(tmp_path: Path) -> None:
    """What is frozen in a shard's directory gives the shard's config again, its own directory included."""
    config = whole(tmp_path).part(Shard(2, 3))
    config.dir.mkdir(parents=True)
    configs.freeze(config, (tmp_path / "RUN.toml").read_text())
    found = configs.frozen(config.dir)
    assert (found.dir.resolve(), found.shard, found.budget) == (config.dir.resolve(), Shard(2, 3), config.budget)
    assert found.datasets == config.datasets


def test_every_prompt_is_in_one_shard(tmp_path: Path) -> None:
    """The parts of a set are disjoint and complete, keep its order, and say how many rows are others'."""
    rows = "".join(json.dumps({"prompt": f"What is {number}?"}) + "\n" for number in range(200))
    (tmp_path / "b3.jsonl").write_text(rows)
    one = load(whole(tmp_path).datasets[:1], tmp_path, 0, lambda _: 7).sets["B3"]
    parts = [part(one, number, 4) for number in (1, 2, 3, 4)]
    assert sorted(each for some in parts for each in some.ids) == sorted(one.ids)
    for some in parts:
        assert [prompt.id for prompt in some.prompts] == list(some.ids)
        mine = set(some.ids)
        assert list(some.ids) == [each for each in one.ids if each in mine]
        assert len(some.prompts) + some.removed["other shards"] == len(one.prompts)
        assert len(some.tokens) == len(some.turns) == len(some.ids)


@pytest.mark.e2e
def test_the_shards_of_a_run_make_one_export(kimi_folder: Path, tmp_path: Path) -> None:
    """Three shards answer every prompt once; a shard that is done asks nothing again; export takes all three."""
    with kit.simulator(kimi_folder, length_median=60, speed=100) as sim:
        kit.write_run(tmp_path, sim, kimi_folder, 60)
        for _ in range(2):
            for number in (1, 2, 3):
                done = kit.eyas(tmp_path, "run", "RUN.toml", "--shard", f"{number}/3", "--yes")
                assert done.returncode == 0, done.stderr
        assert set(kit.asked(sim.books().values()).values()) == {1}
        assert len(sim.books()) == 60
    folders = [f"run-shard-{number}-of-3" for number in (1, 2, 3)]
    done = kit.eyas(tmp_path, "export", *folders, "--labels", "loose", "--out", "rows")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "rows" / "manifest.json").read_text())["datasets"]["B3"]["answers"] == 60
    assert json.loads(kit.eyas(tmp_path, "status", folders[0], "--json").stdout)["state"] == "complete"
    refused = kit.eyas(tmp_path, "run", "plan.json", "--shard", "1/2")
    assert refused.returncode == 2


def test_without_ray_the_commands_say_what_to_install(kimi_folder: Path, tmp_path: Path) -> None:
    """`--on` names what it knows, and without the extra what to install; nothing is asked."""
    with kit.simulator(kimi_folder) as sim:
        kit.write_run(tmp_path, sim, kimi_folder, 3)
        wrong = kit.eyas(tmp_path, "run", "RUN.toml", "--yes", "--on", "slurm")
        assert (wrong.returncode, "give ray" in wrong.stderr) == (2, True)
        if importlib.util.find_spec("ray") is None:
            without = kit.eyas(tmp_path, "run", "RUN.toml", "--yes", "--on", "ray")
            assert (without.returncode, "pip install 'eyas[ray]'" in without.stderr) == (2, True)
        assert not sim.books()
