"""The beginning of an attempt: its body, its intent in the journal, its flight. Nothing is sent here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from eyas.backends.base import Ask
from eyas.engine.admit import Admitted
from eyas.engine.attempt import Flight
from eyas.engine.recover import mark_next, mark_of
from eyas.engine.settle import Books, Setting
from eyas.engine.turns import conversation
from eyas.events import Intent
from eyas.plan import sampling
from eyas.types import Prompt


def begin(
    books: Books, admitted: Admitted, block: Mapping[str, Any], on_headers: Callable[[Flight], None]
) -> tuple[Flight, bytes, Awaitable[None]]:
    """An attempt at what was admitted, with `block` as its `provider` object: flight, body, and when it may be sent.

    The money is the caller's to reserve first.
    """
    candidate, route, reserved = admitted
    setting, name = books.setting, candidate.work.dataset
    most = setting.config.max_tokens(name)
    thinking = setting.config.thinking(name)
    number = books.state.work(candidate.work).numbers + 1
    repeat = books.pool.repeats.pop(candidate.work, None)
    mark = mark_next(setting.config, books.state, repeat, candidate.work, route.tag)
    ask = Ask(
        max_tokens=most,
        provider=block,
        family_body=setting.family.body(thinking),
        sampling=sampling(setting.config, name, setting.family.sampling(thinking), route),
        thinking=thinking,
        stream=setting.backend.streams if setting.config.target.stream is None else setting.config.target.stream,
        mark=mark,
        session=conversation(candidate),
        prompt_ids=_prompt_ids(setting, candidate.prompt, thinking),
        stops=setting.tokens.stops,
    )
    body = setting.backend.body(candidate.prompt, ask)
    intent = Intent(
        at=books.world.wall(),
        attempt=books.state.last_attempt + 1,
        work=candidate.work,
        number=number,
        tag=route.tag,
        prices=route.prices,
        reserved=reserved,
        mark=mark,
    )
    durable = books.emit(intent, body)
    flight = Flight(
        attempt=intent.attempt,
        candidate=candidate,
        route=route,
        reserved=reserved,
        most=most,
        began=books.world.clock(),
        mark=mark,
        repeated=bool(mark) and mark != mark_of(books.state.began, candidate.work, number),
        fetch=repeat is not None and repeat.fetch,
        on_headers=on_headers,
    )
    return flight, body, durable


def _prompt_ids(setting: Setting, prompt: Prompt, thinking: bool) -> tuple[int, ...]:
    """The prompt as the family renders it, where it is sent so."""
    if not setting.backend.takes_ids:
        return ()
    return tuple(setting.tokens.prompt_ids(prompt.messages, prompt.tools, thinking))
