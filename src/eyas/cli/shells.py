"""How shells ask for completions: click's own way, but for bash, whose words end at `=` where a value should go on."""

from __future__ import annotations

import os
from typing import ClassVar

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    ShellComplete,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

VARIABLE = "_EYAS_COMPLETE"
"""Set by the script in a shell when it asks."""
_SCRIPT = """\
%(complete_func)s() {
    local IFS=$'\\n' response completion type value
    response=$(env EYAS_LINE="${COMP_LINE:0:COMP_POINT}" %(complete_var)s=bash_complete "$1" 2>/dev/null)
    COMPREPLY=()
    for completion in $response; do
        type=${completion%%%%,*} value=${completion#*,}
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            open) compopt -o nospace; COMPREPLY+=("$value") ;;
            plain) COMPREPLY+=("$value") ;;
        esac
    done
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class Bash(BashComplete):
    """Bash, told the line as it stands before the cursor: its own list of words is cut at every `=` and `:`."""

    source_template: ClassVar[str] = _SCRIPT

    def source(self) -> str:
        """The script; the version of bash is not asked, for it may be written for another one."""
        return ShellComplete.source(self)

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one that was begun, and that one."""
        line = os.environ["EYAS_LINE"]
        words = split_arg_string(line)
        begun = words.pop() if (words and not line[-1:].isspace()) or _quoted(line) else ""
        return words[1:], begun

    def format_completion(self, item: CompletionItem[str]) -> str:
        """`TYPE,VALUE`; bash wants of the value what follows the last sign at which it ends words."""
        line, value = os.environ["EYAS_LINE"], item.value
        kind = "open" if item.type == "plain" and value.endswith(("=", ">")) else item.type
        if item.type == "plain" and not _quoted(line):
            _, begun = self.get_completion_args()
            cut = begun[: max(begun.rfind(sign) for sign in "=:") + 1]
            value = value.removeprefix(cut).replace(" ", "\\ ")
        return f"{kind},{value}"


def _quoted(line: str) -> bool:
    """Whether a quotation is open at the end of the line."""
    mark = ""
    for place, sign in enumerate(line):
        if sign in "\"'" and (not mark or sign == mark) and line[place - 1 : place] != "\\":
            mark = "" if mark else sign
    return bool(mark)


def answer(command: click.Command) -> None:
    """Print what the shell asks for on stdout.

    Raises:
        Exception: the line cannot be completed.
    """
    add_completion_class(Bash)
    kind = get_completion_class(os.environ[VARIABLE].partition("_")[0])
    if kind is not None:
        found = kind(command, {}, "eyas", VARIABLE).complete()
        print(found, end="\n" if found else "")


def script(shell: str, command: click.Command) -> str:
    """The script for a shell: bash, zsh or fish."""
    add_completion_class(Bash)
    kind = get_completion_class(shell)
    return kind(command, {}, "eyas", VARIABLE).source() if kind else ""
