"""What TAB completes of each argument and option: names here, the search in `candidates`, which is loaded on TAB only."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:  # not needed for help, where every millisecond counts
    from click.shell_completion import CompletionItem

Completer = Callable[[click.Context, click.Parameter, str], "list[CompletionItem[str]]"]


def _by(name: str) -> Completer:
    """The function of that name in `candidates`, on what was typed so far."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        return getattr(importlib.import_module("eyas.cli.candidates"), name)(ctx.params, incomplete)

    return complete


rundirs = _by("rundirs")
configs = _by("configs")
plans = _by("plans")
rundirs_and_configs = _by("rundirs_and_configs")
files = _by("files")
datasets = _by("datasets")
works = _by("works")
changes = _by("changes")
where = _by("where")
scenarios = _by("scenarios")
