"""What commands share before their work begins: the key, open files, the event loop."""

from __future__ import annotations

from eyas.cli.keys import openrouter_key as key
from eyas.engine.open_files import allow_open_files
from eyas.machine import run_loop

__all__ = ["allow_open_files", "key", "run_loop"]
