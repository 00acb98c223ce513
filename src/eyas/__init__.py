"""eyas turns prompt sets into training data for the drafters of speculative decoding.

The names below are the Python interface (docs/api.md); each is loaded when it is first used, so that importing the package
costs nothing.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eyas import errors as errors
    from eyas.api.configure import load as load
    from eyas.api.ending import Ending as Ending
    from eyas.api.ending import Progress as Progress
    from eyas.api.ending import Result as Result
    from eyas.api.exporting import export as export
    from eyas.api.opened import OpenRun as OpenRun
    from eyas.api.opened import open_run as open_run
    from eyas.api.planning import Plan as Plan
    from eyas.api.planning import plan as plan
    from eyas.api.planning import plan_async as plan_async
    from eyas.api.reporting import report as report
    from eyas.api.running import run as run
    from eyas.api.running import run_async as run_async
    from eyas.config import RunConfig as Config
    from eyas.errors import EyasError as EyasError
    from eyas.export import Manifest as Manifest
    from eyas.report.document import Report as Report
    from eyas.types import Completion as Completion
    from eyas.types import Label as Label
    from eyas.types import Prompt as Prompt
    from eyas.types import Record as Record
    from eyas.types import Sequence as Sequence

    __version__: str

__all__ = [
    "Completion",
    "Config",
    "Ending",
    "EyasError",
    "Label",
    "Manifest",
    "OpenRun",
    "Plan",
    "Progress",
    "Prompt",
    "Record",
    "Report",
    "Result",
    "Sequence",
    "__version__",
    "errors",
    "export",
    "load",
    "open_run",
    "plan",
    "plan_async",
    "report",
    "run",
    "run_async",
]

_OFFERED = {
    "Completion": "eyas.types:Completion",
    "Config": "eyas.config:RunConfig",
    "Ending": "eyas.api.ending:Ending",
    "EyasError": "eyas.errors:EyasError",
    "Label": "eyas.types:Label",
    "Manifest": "eyas.export:Manifest",
    "OpenRun": "eyas.api.opened:OpenRun",
    "Plan": "eyas.api.planning:Plan",
    "Progress": "eyas.api.ending:Progress",
    "Prompt": "eyas.types:Prompt",
    "Record": "eyas.types:Record",
    "Report": "eyas.report.document:Report",
    "Result": "eyas.api.ending:Result",
    "Sequence": "eyas.types:Sequence",
    "errors": "eyas.errors:",
    "export": "eyas.api.exporting:export",
    "load": "eyas.api.configure:load",
    "open_run": "eyas.api.opened:open_run",
    "plan": "eyas.api.planning:plan",
    "plan_async": "eyas.api.planning:plan_async",
    "report": "eyas.api.reporting:report",
    "run": "eyas.api.running:run",
    "run_async": "eyas.api.running:run_async",
}
"""Where each name comes from."""


class _Package(ModuleType):
    """This package. Some of its functions are named as rooms of it: to import such a room must not put it in their place."""

    def __setattr__(self, name: str, value: object) -> None:
        if name not in _OFFERED or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


def __getattr__(name: str) -> Any:
    """Load a name of the interface when it is first asked for (PEP 562)."""
    if name == "__version__":
        found: Any = _version()
    elif name in _OFFERED:
        module, _, attribute = _OFFERED[name].partition(":")
        loaded = importlib.import_module(module)
        found = getattr(loaded, attribute) if attribute else loaded
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415  # a tenth of what `eyas --help` takes

    try:
        return version("eyas")
    except PackageNotFoundError:  # a source tree that was never installed
        return "0+unknown"


sys.modules[__name__].__class__ = _Package
