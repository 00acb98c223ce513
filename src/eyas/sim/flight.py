"""One answer on its way: the timed steps of a stream or of a whole body, with the fault that befalls it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Generator, Iterator
from typing import Any

import msgspec

from eyas.sim.billing import Counts, count
from eyas.sim.books import Entry
from eyas.sim.chunks import COMMENT, DONE, KEEPALIVE, Chunks, error_json, usage_json, whole_body
from eyas.sim.counting import Surplus
from eyas.sim.cutting import Texts, pieces, stripped
from eyas.sim.listing import Listing, listed
from eyas.sim.providers import Provider, Redump
from eyas.sim.reply import Action, Step
from eyas.sim.scenarios import Scenario
from eyas.sim.text import Answer, Part

BEFORE = frozenset({"error_200", "early_cut", "empty_choices", "empty_answer"})
"""Faults after the headers and before any token."""

AMID = frozenset({"error_chunk", "finish_error", "cut_close", "cut_reset", "hang", "stall"})
"""Faults amid the tokens."""

FREE = frozenset({"error_200", "finish_error", "empty_choices", "empty_answer"})
"""Faults that zero-completion insurance makes free."""

LOST = frozenset({"html", "reset", "early_cut", "cut_close", "cut_reset", "hang"})
"""Faults that look to the provider like a client that went away."""

WHOLE = frozenset({None, "stall", "no_usage", "no_done", "misserved", "wrong_mode"})
"""Faults, or none, after which all that was sampled has been sent."""


def _full() -> float:
    return 1.0


class Flight(msgspec.Struct, kw_only=True):
    """An accepted request.

    Attributes:
        head: id, created, model and provider of every chunk.
        prompt: tokens of the rendered prompt, before the provider's convention.
        tps, ttft: tokens a second, and seconds to the first token.
        fault: what befalls it; `turn` is the token at which it does.
        instant: repeated from the response cache: no waiting, and usage all zero.
        logprobs: it was asked for logprobs.
        surplus: see `count`.
        pace: the share of its full speed at which the provider works now; `worked`: seconds of full speed by now.
        begun, size: of an answer without text: what `worked` was at its first token, and all its tokens.
    """

    scenario: Scenario
    provider: Provider
    answer: Answer
    entry: Entry
    head: dict[str, Any]
    rng: random.Random
    prompt: int
    tps: float
    ttft: float
    fault: str | None = None
    turn: int = 0
    instant: bool = False
    logprobs: bool = False
    surplus: Surplus | None = None
    pace: Callable[[], float] = _full
    worked: Callable[[], float] = _full
    begun: float | None = None
    size: int = 0

    def counts(self, produced: int) -> Counts:
        """The provider's counts after that many sampled tokens."""
        return Counts() if self.instant else count(self.provider, self.answer, self.prompt, produced, self.surplus)

    @property
    def seconds(self) -> float:
        """From the acceptance to the last token."""
        return 0.0 if self.instant else self.ttft + self.answer.size / (self.tps * self.pace())


def _failure(flight: Flight) -> bytes:
    code: int | str = flight.rng.choice([502, 503, 429, 408, "server_error"])
    metadata = {"provider_name": flight.provider.name, "raw": "upstream connect error or disconnect", "is_byok": False}
    return error_json(code, "Provider returned error", metadata)


def _waiting(seconds: float, every: float, filler: bytes) -> Generator[Step, None, float]:
    """Fillers at once and then every so often, up to `seconds`; returns what is left of them."""
    if seconds <= 0:
        return 0.0
    yield 0.0, filler
    while seconds > every:
        yield every, filler
        seconds -= every
    return seconds


def stream(flight: Flight, texts: Texts) -> Iterator[Step]:
    """The steps of a streamed answer; the entry's `sent` follows what was played."""
    chunks, entry = Chunks(flight.head), flight.entry
    rest = yield from _waiting(flight.ttft, flight.scenario.keepalive, COMMENT)
    if flight.fault in BEFORE:
        yield from stream_before(flight, chunks, rest)
        return
    each, turn = 0.0 if flight.instant else 1.0 / flight.tps, flight.turn if flight.fault in AMID else 0
    comments, draw = flight.scenario.comments, flight.rng.random
    shown = _pieces(flight, texts, chunks)
    listing = _listing(flight, flight.answer.parts, texts)
    shared = flight.provider.batching > 0 and not flight.instant
    for tokens, data in shown if listing is None else listed(shown, listing, chunks.content(b"")):
        if shared:
            each = 1.0 / (flight.tps * flight.pace())
        if data:
            yield rest + tokens * each, COMMENT + data if draw() < comments else data
            rest = 0.0
        else:
            rest += tokens * each
        entry.sent += tokens
        if turn and entry.sent >= turn:
            if flight.fault != "stall":
                yield from stream_amid(flight, chunks, rest)
                return
            rest, turn = rest + flight.scenario.stall_seconds, 0
    yield from stream_end(flight, chunks, rest)


def stream_end(flight: Flight, chunks: Chunks, rest: float) -> Iterator[Step]:
    """The steps after the last token, which came `rest` seconds before the first of them is due."""
    finish, usage = flight.answer.finish, usage_json(flight.counts(flight.answer.size))
    yield rest, chunks.finish(finish)
    if flight.fault != "no_usage":
        yield 0.0, chunks.no_choices(usage) if flight.provider.usage_alone else chunks.finish(finish, usage)
    if flight.fault != "no_done":
        yield 0.0, DONE
    yield 0.0, Action.END


def stream_before(flight: Flight, chunks: Chunks, rest: float) -> Iterator[Step]:
    """The steps of a fault before any token."""
    match flight.fault:
        case "early_cut":
            yield rest, Action.RESET if flight.rng.random() < 0.5 else Action.END
            return
        case "error_200":
            yield rest, b'data: {"id":"%s","error":%s,"user_id":"user_simulated"}\n\n' % (
                flight.entry.id.encode(), _failure(flight))  # fmt: skip
        case "empty_choices":
            yield rest, chunks.no_choices(None)
        case _:
            yield rest, chunks.finish("stop")
            yield 0.0, chunks.finish("stop", usage_json(flight.counts(0), free=True))
    yield 0.0, DONE
    yield 0.0, Action.END


def stream_amid(flight: Flight, chunks: Chunks, rest: float) -> Iterator[Step]:
    """The steps of a fault amid the tokens, of which `entry.sent` have come."""
    match flight.fault:
        case "cut_close":
            yield rest, Action.END
        case "cut_reset":
            yield rest, Action.RESET
        case "hang":
            yield rest, Action.HANG
        case "finish_error":
            usage = usage_json(flight.counts(flight.entry.sent), free=True)
            yield rest, chunks.finish("error", error=_failure(flight))
            yield 0.0, chunks.finish("error", usage)
        case _:
            yield rest, chunks.error(_failure(flight), usage_json(flight.counts(flight.entry.sent)))
    if flight.fault in ("finish_error", "error_chunk"):
        yield 0.0, DONE
        yield 0.0, Action.END


def _pieces(flight: Flight, texts: Texts, chunks: Chunks) -> Iterator[tuple[int, bytes]]:
    """Tokens and the chunk that shows them; empty bytes for tokens that show nothing."""
    provider, parts, escape = flight.provider, flight.answer.parts, texts.escape
    index = -1
    for place, part in enumerate(parts):
        last = place == len(parts) - 1
        match part.channel:
            case "special":
                yield len(part.ids), b""
            case "name":
                index += 1
                yield len(part.ids), b"" if last else chunks.call(index, text_of(part, texts))
            case "arguments" if provider.redump != "none" and not last:
                yield len(part.ids), chunks.arguments(index, escape(redumped(text_of(part, texts), provider.redump)))
            case "arguments":
                for text, tokens in _cut(flight, part, texts):
                    yield tokens, chunks.arguments(index, escape(text)) if text else b""
            case _:
                chunk = chunks.reasoning if part.channel == "reasoning" else chunks.content
                for text, tokens in stripped(_cut(flight, part, texts), provider):
                    yield tokens, chunk(escape(text)) if text else b""
                if part.channel == "reasoning" and provider.trailing_space and not last:
                    yield 0, chunk(b" ")


def _cut(flight: Flight, part: Part, texts: Texts) -> Iterator[tuple[str, int]]:
    return pieces(part.ids, flight.scenario.cut or flight.provider.cut, texts, flight.rng)


def text_of(part: Part, texts: Texts) -> str:
    """The whole text of a part; bytes of a character that never became whole are dropped."""
    return b"".join(map(texts.data, part.ids)).decode(errors="ignore")


def redumped(arguments: str, form: Redump) -> str:
    """Arguments parsed and written anew."""
    separators = (",", ":") if form == "compact" else (", ", ": ")
    return json.dumps(json.loads(arguments), ensure_ascii=form == "escaped", separators=separators)


def _listing(flight: Flight, parts: tuple[Part, ...], texts: Texts) -> Listing | None:
    style = flight.provider.logprobs if flight.logprobs else "none"
    return None if style == "none" else Listing(style, parts, texts, flight.rng)


def whole(flight: Flight, texts: Texts) -> Iterator[Step]:
    """The steps of an answer that is not streamed: whitespace while it runs, then one body."""
    fault, turn = flight.fault, flight.answer.size
    if fault in BEFORE:
        turn = 0
    elif fault in AMID and fault != "stall":
        turn = flight.turn
    seconds = 0.0 if flight.instant else flight.ttft + turn / (flight.tps * flight.pace())
    seconds += flight.scenario.stall_seconds if fault == "stall" else 0.0
    rest = yield from _waiting(seconds, flight.scenario.keepalive, KEEPALIVE)
    flight.entry.sent = turn
    if fault in ("hang", "cut_close", "cut_reset", "early_cut"):
        yield rest, {"hang": Action.HANG, "cut_close": Action.END}.get(fault, Action.RESET)
        return
    yield rest, _body(flight, texts, turn)
    yield 0.0, Action.END


def _body(flight: Flight, texts: Texts, turn: int) -> bytes:
    fault, error = flight.fault, None
    if fault == "error_200":
        failed = b'{"id":"%s","error":%s,"user_id":"user_simulated"}'
        return failed % (flight.entry.id.encode(), _failure(flight))
    if fault == "empty_choices":
        return whole_body(flight.head, [], None, None)
    shown = flight.answer.upto(turn)
    finish: str | None = "stop" if fault == "empty_answer" else flight.answer.finish
    if fault == "error_chunk":
        finish, error = None, _failure(flight)
    listing = _listing(flight, shown, texts)
    entries = None if listing is None else [json.loads(each) for each in listing.take(turn)]
    choice = {"index": 0, "logprobs": entries and {"content": entries}, "finish_reason": finish, "native_finish_reason": finish,
              "message": _message(flight, shown, texts)}  # fmt: skip
    if fault == "finish_error":
        choice |= {"finish_reason": "error", "native_finish_reason": "error",
                   "error": msgspec.json.decode(_failure(flight))}  # fmt: skip
    usage = None if fault == "no_usage" else usage_json(flight.counts(turn), free=fault in FREE)
    return whole_body(flight.head, [choice], usage, error)


def _message(flight: Flight, parts: tuple[Part, ...], texts: Texts) -> dict[str, Any]:
    said = {"reasoning": "", "content": ""}
    calls = list[dict[str, Any]]()
    for place, part in enumerate(parts):
        last = place == len(parts) - 1
        if part.channel in said:
            said[part.channel] += "".join(text for text, _ in stripped(_cut(flight, part, texts), flight.provider))
            if part.channel == "reasoning" and flight.provider.trailing_space and not last:
                said["reasoning"] += " "
        elif part.channel == "name" and not last:
            name = text_of(part, texts)
            short = name.removeprefix("functions.").rpartition(":")[0]
            function = {"name": short, "arguments": ""}
            calls.append({"type": "function", "index": len(calls), "id": name, "function": function})
        elif part.channel == "arguments":
            text = text_of(part, texts)
            form = "none" if last else flight.provider.redump
            calls[-1]["function"]["arguments"] = text if form == "none" else redumped(text, form)
    reasoning = said["reasoning"] or None
    message: dict[str, Any] = {"role": "assistant", "content": said["content"] or (None if calls else ""), "refusal": None,
                               "reasoning": reasoning}  # fmt: skip
    if calls:
        message["tool_calls"] = calls
    if reasoning:
        details = {"type": "reasoning.text", "text": reasoning, "format": "unknown", "index": 0}
        message["reasoning_details"] = [details]
    return message
