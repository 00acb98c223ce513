"""A command line that cannot be understood is answered with one sentence: what is wrong, what is near, where the help is."""

from __future__ import annotations

import pytest

from eyas.cli import main


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a wrong command line is answered with; exit code 2, and nothing on stdout."""
    with pytest.raises(SystemExit) as ended:
        main([*arguments])
    out, said = capsys.readouterr()
    assert (ended.value.code, out) == (2, "")
    assert said.count("\n") == 1, "one line, where there is no terminal"
    return said.removesuffix("\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "RUN.toml", "--limt", "3"],
         "eyas: there is no option --limt: did you mean --limit?; `eyas run --help` says more"),
        (["run", "RUN.toml", "--zzz"], "eyas: there is no option --zzz; `eyas run --help` says more"),
        (["run"], "eyas: RUN.toml|plan.json is missing: write `eyas run [OPTIONS] RUN.toml|plan.json`; `eyas run --help` says more"),
        (["retry", "runs/a"], "eyas: --where is missing: give --where EXPR; `eyas retry --help` says more"),
        (["export", "a", "--out", "b", "--labels", "strictt"],
         "eyas: --labels: there is no 'strictt': did you mean strict? choose strict or loose; `eyas export --help` says more"),
        (["export", "a", "--out", "b", "--format", "zzz"],
         "eyas: --format: there is no 'zzz': choose messages, parquet, rows, specforge-text or torchspec; `eyas export --help` says more"),
        (["export", "a", "--out"], "eyas: option '--out' needs a value behind it; `eyas export --help` says more"),
        (["export", "a", "--out", "b", "--draft-vocab", "many"],
         "eyas: --draft-vocab: many is no list of sizes: give for example 16384,32768; `eyas export --help` says more"),
        (["status", "a", "b"], "eyas: 'b' is more than this command takes: write `eyas status [OPTIONS] RUNDIR`; `eyas status --help` says more"),
        (["completion", "bsh"], "eyas: bash|zsh|fish: there is no 'bsh': did you mean bash? choose bash, zsh or fish; `eyas completion --help` says more"),
        (["sttus", "a"], "eyas: there is no command 'sttus': did you mean status? `eyas --help` lists them"),
        (["xyz"], "eyas: there is no command 'xyz': `eyas --help` lists them"),
        (["--verzion"], "eyas: there is no option --verzion: did you mean --version?; `eyas --help` says more"),
        (["plan", "x.toml", "--pilot", "0"], "eyas: --pilot: 0 is not in the range x>=1; `eyas plan --help` says more"),
    ],
)  # fmt: skip
def test_a_wrong_command_line(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    """Word for word."""
    assert told(capsys, *arguments) == said


def test_without_arguments_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """On stderr, and with exit code 2: nothing was done."""
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 2
    assert "A first evening" in capsys.readouterr().err
