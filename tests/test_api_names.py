"""The Python interface is stable: these names, these arguments, these fields. Whoever changes one changes docs/api.md."""

from __future__ import annotations

import dataclasses
import inspect
import subprocess
import sys
from types import FunctionType
from typing import Any

import pytest

import eyas
from eyas.api.columns import ORDER

NAMES = [
    "Completion", "Config", "Ending", "EyasError", "Label", "Manifest", "OpenRun", "Plan", "Progress", "Prompt", "Record",
    "Report", "Result", "Sequence", "__version__", "errors", "export", "load", "open_run", "plan", "plan_async", "report",
    "run", "run_async",
]  # fmt: skip
RUN = (
    "config, *, key=None, on_progress=None, limit=None, datasets=(), confirm_removed=False, fallback=False, shard=None"
)
PLAN = "config, *, key=None, quotas=(5000000, 7000000, 8000000, 10000000), local_tps=None, train_max_length=None"
SIGNATURES = {
    "export": "rundirs, out, *, format='rows', labels='strict', max_length=None, min_loss_tokens=1, on_length=None, "
    "eval_share=0.0, draft_vocab=(), rows_per_shard=100000, compress='none', workers=1, on=None",
    "load": "source, *, insecure_http=False, **sections",
    "open_run": "paths",
    "plan": PLAN,
    "plan_async": PLAN,
    "report": "rundirs, out=None, *, text=True, activity=None, workers=1",
    "run": RUN,
    "run_async": RUN,
}
METHODS = {
    "OpenRun": {
        "close": "self",
        "config": "property",
        "decode": "self, ids",
        "events": "self",
        "prompts": "self",
        "records": "self",
        "refresh": "self",
        "running": "property",
        "sequences": "self, labels='strict', *, max_length=None, min_loss_tokens=1, on_length=None",
        "status": "self",
        "table": "self, of='answers'",
    },
    "Plan": {"save": "self, path", "text": "property"},
    "Result": {"complete": "property", "open": "self"},
}
FIELDS = {
    "Plan": "figures, config, notes, basis, run_toml",
    "Progress": "at, works, answers, ended, output_tokens, usd, reserved_usd, unknown_usd, in_flight, last_error",
    "Result": "dir, ending, reason, detail, figures, notes",
}
ENDINGS = {"COMPLETE": 0, "CAP": 3, "FAILED": 4, "UNKNOWN": 5, "KEY": 6, "STORAGE": 7, "INTERRUPTED": 130}
COLUMNS = (
    "id", "dataset", "turn", "sample", "number", "provider", "tag", "verdict", "kind", "finish", "label", "prompt_tokens",
    "completion_tokens", "reasoning_tokens", "output_tokens", "usd", "first_token", "seconds", "at", "generation_id",
)  # fmt: skip


def arguments(function: Any) -> str:
    """Names and defaults, without types."""
    found = inspect.signature(function)
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in found.parameters.values()]
    return str(found.replace(parameters=bare, return_annotation=inspect.Signature.empty))[1:-1]


def test_these_names_and_no_others() -> None:
    """__all__ is sorted and complete, dir() shows it, and an unknown name is an AttributeError."""
    assert eyas.__all__ == sorted(eyas.__all__) == NAMES
    assert set(NAMES) <= set(dir(eyas))
    assert all(getattr(eyas, name) is not None for name in NAMES)
    with pytest.raises(AttributeError, match="no attribute 'runs'"):
        eyas.runs  # type: ignore[attr-defined]  # noqa: B018  # what is shown


def test_arguments_stay() -> None:
    """Every function, with its arguments and their defaults, is as promised; an async twin takes the same."""
    functions = {name: value for name in NAMES if isinstance(value := getattr(eyas, name), FunctionType)}
    assert {name: arguments(value) for name, value in functions.items()} == SIGNATURES
    assert {name for name, value in functions.items() if inspect.iscoroutinefunction(value)} == {
        "plan_async",
        "run_async",
    }


def test_methods_and_fields_stay() -> None:
    """Every public method, property and field of what the functions return is as promised."""
    for name, wanted in METHODS.items():
        fields = FIELDS.get(name, "").split(", ")
        public = {
            key: "property" if isinstance(value, property) else arguments(value)
            for key, value in vars(getattr(eyas, name)).items()
            if not key.startswith("_") and key not in fields
        }
        assert public == wanted, name
    for name, fields in FIELDS.items():
        assert ", ".join(each.name for each in dataclasses.fields(getattr(eyas, name))) == fields
    assert {each.name: each.value for each in eyas.Ending} == ENDINGS
    assert ORDER == COLUMNS


def test_everything_public_is_described() -> None:
    """Each function, class and method has a docstring."""
    for name in NAMES:
        value = getattr(eyas, name)
        if not isinstance(value, str):
            assert inspect.getdoc(value), name
    for name, wanted in METHODS.items():
        assert all(inspect.getdoc(getattr(getattr(eyas, name), each)) for each in wanted)


def test_importing_the_package_loads_nothing() -> None:
    """`import eyas` loads no other module of ours, and nothing of others; a name loads what it needs."""
    script = (
        "import sys; before = set(sys.modules); import eyas\n"
        "new = set(sys.modules) - before - {'__future__', 'importlib', 'types', 'typing'}\n"
        "print(sorted(each for each in new if each.split('.')[0] not in sys.stdlib_module_names))\n"
        "eyas.Label; print('numpy' in sys.modules, 'pydantic' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines() == ["['eyas']", "False False"]


def test_a_room_does_not_take_the_place_of_a_function() -> None:
    """`plan`, `export` and `report` are rooms of the package too: whichever is imported first, the functions stay."""
    script = (
        "import eyas.plan.figures, eyas.export, eyas.report.fit, eyas.errors\n"
        "import eyas\n"
        "from eyas import export, plan, report\n"
        "assert all(map(callable, (plan, export, report, eyas.plan, eyas.export, eyas.report)))\n"
        "assert sys.modules['eyas.plan'].figures and eyas.errors is sys.modules['eyas.errors']"
    )
    subprocess.run([sys.executable, "-c", f"import sys\n{script}"], check=True)
