"""`eyas tune` with the real binary against the simulator: what it prints, what the run says, what the market sees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eyas.lock import is_locked
from eyas.records import Run
from tests import kit

pytestmark = pytest.mark.e2e


def test_a_live_run_is_changed(tmp_path: Path, kimi_folder: Path) -> None:
    """Fewer fly and the cheapest endpoint is asked no more, seconds after the command; a second run of it starts afresh."""
    with kit.simulator(kimi_folder, tps=60, ttft=0.05, length_median=150, length_sigma=0.3, slots=0) as sim:
        kit.write_run(tmp_path, sim, kimi_folder, 400, in_flight=40)
        with kit.start(tmp_path, "run", "RUN.toml", "--yes", "--json", "--progress", "none") as process:
            kit.until(process, lambda: sim.state()["in_flight"] >= 30)
            tuned = kit.eyas(tmp_path, "tune", "run", "in_flight=5", "drop=chutes")
            assert tuned.returncode == 0, tuned.stderr
            assert tuned.stdout == "in_flight: 40 → 5\nchutes/int4: asked → dropped\n"
            assert "RUN.toml says what holds after it" in tuned.stderr
            asked = {row["tag"] for row in sim.books().values()}
            assert asked >= {"chutes/int4"}
            kit.until(process, lambda: sim.state()["in_flight"] <= 5)
            before = sum(row["tag"] == "chutes/int4" for row in sim.books().values())
            refused = kit.eyas(tmp_path, "tune", "run", "drop=nobody")
            assert (refused.returncode, refused.stdout) == (2, "")
            assert "the run asks no endpoint named nobody: it asks inceptron/int4" in refused.stderr or (
                "it asks chutes/int4" in refused.stderr
            )
            status = json.loads(kit.eyas(tmp_path, "status", "run", "--json").stdout)
            assert status["state"] == "running"
            assert status["predicted"] is None or 10 < status["predicted"]["seconds"] < 1000
            assert kit.eyas(tmp_path, "tune", "run", "in_flight=100", "take=chutes/int4").returncode == 0
            out, err = process.communicate(timeout=100)
        assert process.returncode == 0, err
        assert "tuned: in_flight: 40 → 5" in err
        assert "tuned: chutes/int4: dropped → asked" in err
        chutes = sum(row["tag"] == "chutes/int4" for row in sim.books().values())
        assert chutes >= before
        assert json.loads(out)["predicted"] is None
        run = Run(tmp_path / "run")
        assert sum(run.state.datasets["B3"].ended.values()) == 400
        assert len(run.state.attempts) == 400
        run.close()


def test_nothing_to_tune(tmp_path: Path, kimi_folder: Path) -> None:
    """Exit 2 and a sentence: where no run is, where none runs, and for words that are none."""
    for arguments, says in (
        (("nowhere", "in_flight=5"), "no run"),
        (("nowhere", "faster"), "'faster' is nothing that a running session can change"),
    ):
        found = kit.eyas(tmp_path, "tune", *arguments)
        assert (found.returncode, found.stdout) == (2, "")
        assert says in found.stderr
    with kit.simulator(kimi_folder, tps=400, ttft=0.05, length_median=100, slots=0) as sim:
        kit.write_run(tmp_path, sim, kimi_folder, 3)
        assert kit.eyas(tmp_path, "run", "RUN.toml", "--yes").returncode == 0
    assert not is_locked(tmp_path / "run")
    ended = kit.eyas(tmp_path, "tune", "run", "in_flight=5")
    assert ended.returncode == 2
    assert "nothing runs in run: change RUN.toml instead" in ended.stderr
