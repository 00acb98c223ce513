"""Commands that the docs show and that no test runs as they stand: why, and what is done instead."""

from __future__ import annotations

from tests.shown.lines import Shown

GPU = "needs a GPU, or a trainer's environment; `make test-trainers` runs the trainers' own code"
SERVER = "starts a server that needs a GPU; the tests have a stand-in of it (docs/standins.md)"
ON_RAY = "needs Ray; `make test-ray` runs it over four nodes"
EXPLAINED: dict[str, str] = {
    "git clone ": "needs the network; every push runs in a checkout (.ci/run)",
    "make ": "makes an environment, or takes minutes; the target is looked up in the Makefile",
    "python -m pip install ": "needs the network; the extra is looked up in pyproject.toml",
    "python bench/": "takes minutes; its --help runs, and names the options shown",
    "python - <<'PY'": "needs torch; `make test-trainers` writes draft vocabularies and trains with them",
    ".venv-trainers/bin/python ": GPU,
    "specforge ": GPU,
    "speculators ": GPU,
    "torchrun ": GPU,
    "cp rows/draft_vocab/": "the next step of speculators, whose folder it needs",
    "python scripts/launch_vllm.py ": GPU,
    "vllm serve ": SERVER,
    "python -m sglang.launch_server ": SERVER,
    "llama-server ": "starts a server of its own; `make test-real` starts it with a real model",
    "eyas run RUN.toml --on ray": ON_RAY,
    "eyas export RUNDIR --on ray": ON_RAY,
    "eyas rehearse --scenario founding": "takes two minutes of CPU; bench/rehearse.py plays the scenario smaller",
}
"""What a command begins with, without variables before it and without the folder of an environment."""


def explained(shown: Shown) -> str | None:
    """The beginning that the table has of a command; None: it has to run."""
    return next((start for start in EXPLAINED if shown.bare.startswith(start)), None)
