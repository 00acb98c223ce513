"""`eyas completion`."""

from __future__ import annotations

import os
import stat
import sys

import click

from eyas.cli.say import say
from eyas.cli.shells import script

INSTALL = {
    "bash": 'for this shell: `eval "$(eyas completion bash)"`; for every one to come, put that line into ~/.bashrc',
    "zsh": 'for this shell: `eval "$(eyas completion zsh)"`; for every one to come, put that line into ~/.zshrc, below compinit',
    "fish": "for every shell to come: `eyas completion fish > ~/.config/fish/completions/eyas.fish`",
}
"""How the script of each shell is taken into use."""


def command(shell: str) -> None:
    """Print the script, and say what to do with it."""
    print(script(shell, click.get_current_context().find_root().command), end="")
    if _looked_at():
        say(f"eyas: {INSTALL[shell]}")


def _looked_at() -> bool:
    """Whether the script goes to a terminal or a file; a pipe is a shell that starts, and wants nothing said."""
    try:
        return sys.stdout.isatty() or stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):  # no file at all
        return False
