"""`eyas init`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import get_args

import click

from eyas.cli.say import say
from eyas.config import parse
from eyas.config.target import API, Backend
from eyas.errors import StorageError, UsageError
from eyas.report import own_starter
from eyas.report.first_look import look
from eyas.report.own_starter import OwnWish
from eyas.report.starter import Keeping, Wish, dataset_name, run_toml

_ELSEWHERE = ("-", "hub:")
_SAY = {True: "only models whose author allows distillation", False: "models under any licence"}
_KEEP = {
    Keeping.ALLOW: "providers that keep prompts and answers may be asked",
    Keeping.DENY: "only providers that keep no prompts and answers",
}


def command(
    source: str | None,
    out: Path,
    model: str,
    backend: str | None,
    base_url: tuple[str, ...],
    usd: float,
    distillable: bool | None,
    data_collection: str | None,
    yes: bool,
    force: bool,
) -> None:
    """Write a commented RUN.toml. With SOURCE, a prompt file, show what stands in it and how it would be asked."""
    if out.exists() and not force:
        raise UsageError(f"{out} is there already and was not touched: --force replaces it, --out names another file")
    named = _named(source, out) if source else "prompts.jsonl"
    if source and source != "-":
        for sentence in look(named, out.parent):
            say(sentence)
    asks = sys.stdin.isatty() and not yes
    who = _backend(backend, base_url, asks)
    if who != API:
        text = own_starter.run_toml(OwnWish(model, who, base_url, dataset_name(source or ""), named))
        said, first = f"{who}: servers of your own, no dollars", f"`eyas plan {out} --pilot 20`"
    else:
        wish = Wish(
            model, usd, dataset_name(source or ""), named, _licence(distillable, asks), _keeping(data_collection, asks)
        )
        text = run_toml(wish)
        said = f"{_SAY[wish.distillable]}; {_KEEP[wish.keeping]}; at most ${usd:,.2f}"
        first = f"`eyas plan {out}`"
    parse(text, out)
    _write(out, text, force=force)
    print(out)
    say(f"written; {said}")
    if not source:
        say(f"put your prompts into {out.parent / named}, or change [[datasets]] source")
    say(f"next: `eyas doctor {out}`, then {first}, then `eyas run {out} --limit 20`")


def _backend(given: str | None, base_url: tuple[str, ...], asks: bool) -> str:
    if given is None and base_url:
        raise UsageError("--base-url: say with --backend what listens there: openai, sglang, vllm or llamacpp")
    if given == API and base_url:
        raise UsageError("--base-url is for servers of your own: leave it away for openrouter")
    if given is None and asks:
        return click.prompt("Who answers?", type=click.Choice(get_args(Backend)), default=API, err=True)
    return given or API


def _named(source: str, out: Path) -> str:
    """The source as RUN.toml names it: relative paths start from the folder of that file."""
    if source.startswith(_ELSEWHERE) or out.parent.resolve() == Path.cwd():
        return source
    path = Path(source).expanduser().absolute()
    inside = path.is_relative_to(out.parent.absolute())
    return str(path.relative_to(out.parent.absolute()) if inside else path)


def _licence(given: bool | None, asks: bool) -> bool:
    if given is None and asks:
        return click.confirm("Ask only models whose author allows distillation?", default=True, err=True)
    return given is not False


def _keeping(given: str | None, asks: bool) -> Keeping:
    if given is None and asks:
        keep = click.confirm("May providers that keep prompts and answers be asked?", default=False, err=True)
        return Keeping.ALLOW if keep else Keeping.DENY
    return Keeping(given) if given else Keeping.DENY


def _write(path: Path, text: str, *, force: bool) -> None:
    try:
        # "x": another process may have written it meanwhile.
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{path} is there already and was not touched: --force replaces it") from None
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise StorageError(f"{path} cannot be written ({why}): name a file in a folder of yours with --out") from error
