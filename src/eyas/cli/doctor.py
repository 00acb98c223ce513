"""`eyas doctor`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from eyas.cli import start
from eyas.cli.keys import keys_of
from eyas.cli.say import columns_of, say
from eyas.cli.style import style_of
from eyas.config import load
from eyas.engine.doctor import Doctor, Subject
from eyas.engine.findings import Finding, Standing, Trouble
from eyas.errors import UsageError
from eyas.report.fit import fit
from eyas.report.progress import plain
from eyas.transport import HttpTransport

EXIT = {Trouble.STORAGE: 7, Trouble.KEY: 6, Trouble.USAGE: 2}
"""Exit codes of failures; of several the first that there is."""
_NAME_AT, _SAYS_AT = 6, 21
_MOST = 2_000


def command(config_file: Path | None, key_file: Path | None, insecure_http: bool, as_json: bool) -> int:
    """Check the machine, the account and, with RUN.toml, a run, before it costs anything. Spends nothing."""
    found = start.run_loop(_examine(_subject(config_file, key_file, insecure_http=insecure_http)))
    code = exit_code(found)
    if as_json:
        print(json.dumps(figures(found, code), indent=2))
        return code
    width, style = columns_of(sys.stdout), style_of(sys.stdout)
    for each in found:
        standing = each.standing.value
        print(style.standing(standing) + line(each, width).removeprefix(standing), flush=True)
    say(f"eyas: {following(found, config_file)}")
    return code


def following(found: Iterable[Finding], config_file: Path | None) -> str:
    """What to do after these findings."""
    failed = sum(each.standing is Standing.FAIL for each in found)
    if failed:
        return f"{failed} of these checks failed: a run would stop at once, or be worth nothing"
    if config_file is None:
        return "give a RUN.toml to have its run checked too; `eyas init` writes one"
    return f"nothing failed; next: `eyas plan {config_file}`, then `eyas run {config_file} --limit 20`"


def _subject(config_file: Path | None, key_file: Path | None, *, insecure_http: bool) -> Subject:
    key, other, key_error, config, broken = SecretStr(""), SecretStr(""), "", None, ""
    if config_file is not None:
        try:
            config = load(config_file, insecure_http=insecure_http)
        except UsageError as error:
            broken = str(error)
    try:
        if config is None:
            key = start.key(key_file, needed=False)
        else:
            key, other = keys_of(config, key_file, needed=not config.target.bills)
    except UsageError as error:
        key_error = str(error)
    return Subject(key, config, broken, key_error, other)


async def _examine(subject: Subject) -> list[Finding]:
    async with HttpTransport() as transport:
        return await Doctor(subject, transport).examine()


def exit_code(found: Iterable[Finding]) -> int:
    """0 if nothing failed; of several failures storage goes first, then the key, then the rest."""
    troubles = {each.trouble for each in found if each.standing is Standing.FAIL}
    return next((code for trouble, code in EXIT.items() if trouble in troubles), 0)


def figures(found: Iterable[Finding], code: int) -> dict[str, Any]:
    """The figures of `eyas doctor --json`."""
    return {
        "schema": 1,
        "exit": code,
        "checks": [
            {"name": each.name, "standing": each.standing.value, "says": each.says, "remedy": each.remedy}
            for each in found
        ],
    }


def line(finding: Finding, width: int) -> str:
    """A finding for people: one line, wrapped under itself where a terminal has `width` columns (0: it has no width)."""
    says = finding.says + (f": {finding.remedy}" if finding.remedy else "")
    says = " ".join(plain(says, _MOST).split())
    head = f"{finding.standing.value:<{_NAME_AT}}{finding.name:<{_SAYS_AT - _NAME_AT}}"
    if width <= _SAYS_AT + 20:
        return head + says
    return head + fit(says, width - _SAYS_AT, "").replace("\n", f"\n{' ' * _SAYS_AT}")
