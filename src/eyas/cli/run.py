"""`eyas run`."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import click

from eyas.cli import start
from eyas.cli.keys import key_for
from eyas.cli.listener import Carried
from eyas.cli.progress import progress as shown
from eyas.cli.say import columns_of, say
from eyas.config import RunConfig, Shard, load
from eyas.engine.inputs import Inputs
from eyas.engine.planning import holds, opened
from eyas.engine.run import Engine
from eyas.engine.scope import Scope
from eyas.engine.session import Ended, Options
from eyas.engine.sessions import run_config
from eyas.errors import UsageError
from eyas.machine import freeze_heap
from eyas.report import loaded
from eyas.report.progress import plain, table
from eyas.report.resume import rest, sentences
from eyas.report.summary import exit_code, status
from eyas.state import State
from eyas.types import StopReason, Verdict

ASK_ABOVE = 5.0
"""US dollars above which `run` asks first."""


def command(
    config_file: Path,
    yes: bool,
    as_json: bool,
    progress: str | None,
    limit: int | None,
    datasets: tuple[str, ...],
    key_file: Path | None,
    insecure_http: bool,
    confirm_removed: bool,
    fallback: bool,
    shard: str | None,
    on: str | None,
) -> int:
    """Answer the prompts of RUN.toml, up to its cap and quotas. The same command again resumes."""
    given, (config_file, planned) = config_file, opened(config_file)
    config = load(config_file, insecure_http=insecure_http)
    if shard is not None:
        config = part_of(config, shard, given)
    start.allow_open_files(config.limits.in_flight)
    scope = Scope(limit, datasets)
    scope.check(config)
    if fallback:
        config = config.fallen_back
    key = key_for(config.target, key_file)
    other = None if config.fallback is None else key_for(config.fallback, key_file)
    agree(config, yes=yes)
    quiet = progress == "none"
    begin = watch_signals if quiet else functools.partial(say_found, scope)
    with shown(progress) as view:
        options = Options(
            confirm_removed, say_inputs, both(begin, view.begin), view.tick, scope, on_fallback=say_fallback
        )
        if planned is not None:
            options = dataclasses.replace(options, check=holds(given, planned, config))
        text = config_file.read_text(encoding="utf-8")
        if on is not None:
            from eyas.cli import led  # noqa: PLC0415  # loads what only a run over many machines needs

            ended = led.run(config, text, key, options, (on, led.Shown(both(begin, view.begin), view.tick)))
        else:
            ended = start.run_loop(run_config(config, text, key, options, other))
    code = finish(ended, as_json=as_json, quiet=quiet)
    if ended.reason is StopReason.COMPLETE and not quiet and (code == 0 or not scope.whole):
        say_rest(ended.state, config)
    return code


def part_of(config: RunConfig, shard: str, given: Path) -> RunConfig:
    """The part of a run that `--shard` names.

    Raises:
        UsageError: it names none, or a plan of the whole run is given.
    """
    if given.suffix == ".json":
        raise UsageError(f"--shard {shard}: a plan is of the whole run: name its RUN.toml in place of {given}")
    found = config.part(Shard.read(shard))
    say(f"shard {shard} of the run, in {found.dir}; `eyas export` takes the directories of all shards together")
    return found


def agree(config: RunConfig, *, yes: bool) -> None:
    """Have the cap confirmed where it is above $5.

    Raises:
        UsageError: nobody is there to ask.
    """
    cap = config.budget.usd or 0.0
    if yes or cap <= ASK_ABOVE:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"this run may spend up to ${cap:.2f}: add --yes to agree without a terminal")
    click.confirm(f"This run may spend up to ${cap:.2f} in all. Go on?", abort=True, err=True)


def say_inputs(inputs: Inputs) -> None:
    """Say what the sources held, what was left out, and what cannot be promised."""
    for caveat in inputs.caveats:
        say(f"note: {caveat}")
    for sentence in loaded.sentences(inputs.sets.values()):
        say(plain(sentence, 600))


def say_fallback(ended: Ended) -> None:
    """Say that somebody else is asked now."""
    say(f"eyas: {plain(ended.detail, 400) or 'no server is left that may answer the rest'}; going on at [fallback]")


def say_found(scope: Scope, session: Carried) -> None:
    """Say what a resumed run found and does next, and watch signals."""
    books = session.books
    asked = None if scope.whole else books.pool.size
    for sentence in sentences(books.state, books.setting.config.dir, len(books.pool.repeats), asked):
        say(plain(sentence, 600))
    watch_signals(session)


def watch_signals(session: Carried) -> None:
    """^C and SIGTERM drain; a second one aborts. From here on what is loaded stays."""
    freeze_heap()
    loop = asyncio.get_running_loop()
    if isinstance(session, Engine):
        session.tuner.say = say

    def interrupt() -> None:
        again = session.books.stopping is StopReason.INTERRUPTED
        bills = session.books.setting.backend.bills
        text = "keeps their text" if bills else "has them asked again by the next run"
        say(
            f"ending what flies; {'its text is kept' if bills else 'it is asked again by the next run'}"
            if again
            else f"starting nothing more; {session.in_flight} in flight may land (^C again ends them and {text})"
        )
        session.interrupt()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt)


def both(first: Callable[[Carried], None], second: Callable[[Carried], None]) -> Callable[[Carried], None]:
    """One listener for two."""

    def hear(session: Carried) -> None:
        first(session)
        second(session)

    return hear


def say_rest(state: State, config: RunConfig) -> None:
    """Say what is still owed after a session that asked for a part, and what to do next."""
    done = f"nothing more is owed: `eyas export {config.dir} --out rows` writes the training rows"
    say(f"eyas: {rest(state, config.dir) or done}")


def finish(ended: Ended, *, as_json: bool, quiet: bool) -> int:
    """Say how a session ended; gives the exit code."""
    figures = status(ended.state, running=False)
    if not quiet:
        say(table(figures, columns_of(sys.stderr)))
    code = exit_code(ended.state)
    advice = _advice(ended, code)
    if advice:
        say(f"eyas: {advice}")
    if as_json:
        print(json.dumps(figures, indent=2))
    return code


def _advice(ended: Ended, code: int) -> str:
    detail = plain(ended.detail, 400)
    match ended.reason:
        case StopReason.KEY:
            return f"stopped: {detail}. Mend the key or add credits, then run the same command again: it resumes"
        case StopReason.ALARM:
            return f"stopped: {detail}. What is there is valid; set the provider aside in [providers] ignore before going on"
        case StopReason.CAP:
            return (
                "the cap is reached; what is there is valid. Raise [budget] usd and run the same command again to go on"
            )
        case StopReason.INTERRUPTED:
            return "interrupted; run the same command again to go on"
        case StopReason.OWED:
            return "no endpoint is left that may answer the rest; run the same command again later"
        case _ if code == 5:
            return "some outcomes are unknown; `eyas reconcile RUNDIR` looks them up, --write-off all gives them up"
        case _ if code == 4:
            return (
                f"some works failed or were refused; `eyas show RUNDIR ID` says why: {_failed(ended.state)}; "
                "`eyas retry RUNDIR --where verdict=failed` (or refused) has them asked again"
            )
        case _:
            return ""


def _failed(state: State) -> str:
    ended = (Verdict.FAILED, Verdict.REFUSED)
    keys = [work.key for work, known in state.works.items() if known.verdict in ended]
    return ", ".join(sorted(keys)[:3]) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")
