"""A world of virtual providers behind one OpenRouter-like API: pure, seeded, on any clock.

A request goes in, a `Reply` comes out: timed steps that a server or a virtual clock plays. Whoever plays tells the reply
how it ended, so that slots, bills and books are right.
"""

from __future__ import annotations

import math
import random
import string
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from eyas.sim.account import PREFIX, Account
from eyas.sim.ask import Ask, parse
from eyas.sim.billing import Counts, Purse, in_flight_refusal
from eyas.sim.books import Books, Entry
from eyas.sim.cache import Cached, ResponseCache
from eyas.sim.chunks import envelope
from eyas.sim.counting import CountPrompt, Meter
from eyas.sim.flight import AMID, FREE, LOST, WHOLE, Flight
from eyas.sim.gate import Full, Gate
from eyas.sim.providers import Provider, Route, allowed, ranked
from eyas.sim.refusals import page, refused, reset, too_long, unrouted, upstream
from eyas.sim.reply import Reply, body
from eyas.sim.scenarios import Scenario
from eyas.sim.text import Answer, Shape, Vocabulary
from eyas.sim.written import Author, Written

_ALPHANUMERIC = string.ascii_letters + string.digits
_UPSTREAM = frozenset({"rate_limit", "unavailable", "server_error"})


class World:
    """The virtual market.

    Args:
        scenario: market, lengths, speeds, faults.
        seed: with the scenario, the order of requests and the clock it decides every byte.
        vocabulary: the model's tokenizer.
        now: the clock, in seconds; any origin, but it must never go back.
        count_prompt: renders and counts a prompt as the model's own template does; an approximation without it.
        author: who makes the answers; sampled texts without it.
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        vocabulary: Vocabulary,
        now: Callable[[], float],
        count_prompt: CountPrompt | None = None,
        author: Author | None = None,
    ) -> None:
        self.scenario = scenario
        self.books = Books()
        self.purse = Purse(scenario, now)
        self._seed = seed
        self._now = now
        self._meter = Meter(vocabulary, count_prompt)
        self._author = author or Written(vocabulary)
        self._account = Account(scenario, self.books, self.purse, now)
        self._cache = ResponseCache()
        self._gate = Gate(scenario, now)
        self._flying: dict[str, Flight] = {}
        self._seen: Counter[str] = Counter()
        self._rates = [(name, rate) for name, rate in msgspec.structs.asdict(scenario.faults).items() if rate]

    def handle(self, method: str, target: str, headers: Mapping[str, str], data: bytes = b"") -> Reply:
        """The reply to a request; header names are lower case, `target` is the path with its query."""
        key = self._key(headers)
        if method == "POST" and target.partition("?")[0] == f"{PREFIX}/chat/completions":
            return self._chat(key, headers, data)
        if method == "GET":
            return self._account.get(target, key)
        return body(404, envelope(404, "Not Found"))

    def sent(self, generation_id: str) -> int:
        """Tokens of an answer that have reached its client by now; 0 for one that the world does not know."""
        flight, entry = self._flying.get(generation_id), self.books.entries.get(generation_id)
        return self._author.sent(flight) if flight else entry.sent if entry else 0

    def _key(self, headers: Mapping[str, str]) -> str | None:
        scheme, _, key = headers.get("authorization", "").partition(" ")
        known = (*self.scenario.keys, *self.scenario.management_keys)
        valid = scheme.lower() == "bearer" and key and (not self.scenario.keys or key in known)
        return key if valid else None

    def _chat(self, key: str | None, headers: Mapping[str, str], data: bytes) -> Reply:
        self.books.arrive(self._now())
        reply, flight, ask = self._answer(key, headers, data)
        self.books.statuses[reply.status] += 1
        if flight is not None:
            reply.generation_id = flight.entry.id
            self.books.entries[flight.entry.id] = flight.entry
            self._flying[flight.entry.id] = flight
        reply.on_close(partial(self._close, flight, ask))
        return reply

    def _answer(self, key: str | None, headers: Mapping[str, str], data: bytes) -> _Answered:
        if key is None:
            return body(401, envelope(401, "Missing Authentication header")), None, None
        ttl = None
        if headers.get("x-openrouter-cache", "").lower() == "true":
            ttl = float(headers.get("x-openrouter-cache-ttl", self.scenario.cache_ttl))
        ask = parse(data, key, ttl)
        if isinstance(ask, str):
            return body(400, envelope(400, ask)), None, None
        if ask.chat.model not in (self.scenario.model, self.scenario.permaslug):
            return body(400, envelope(400, f"{ask.chat.model} is not a valid model ID")), None, ask
        cached = self._cache.find(key, ask.body_sha256, self._now()) if ttl is not None else None
        if cached is not None:
            return self._repeated(ask, cached)
        number = self._seen[ask.fate]
        self._seen[ask.fate] += 1
        return self._fresh(ask, number, random.Random(f"{self._seed}|{ask.fate}|{number}"))

    def _fresh(self, ask: Ask, number: int, rng: random.Random) -> _Answered:
        chat, fault = ask.chat, self._draw(ask, rng)
        prompt = self._meter.prompt(chat.messages, chat.tools or [], chat.thinking)
        limit = chat.limit or 1
        fitting = [p for p in allowed(chat.provider, self.scenario.providers) if limit <= (p.max_output or limit)]
        if not fitting:
            return unrouted(chat, self.scenario.providers), None, ask
        if all(prompt + limit > p.context for p in fitting):
            return too_long(max(p.context for p in fitting), prompt, limit), None, ask
        tried = ranked(chat.provider, [p for p in fitting if prompt + limit <= p.context], rng)
        refusal = self.purse.refuse(ask.key, tried[0], prompt, chat.limit or tried[0].max_output or 65_536)
        if fault == "budget_402" and refusal is None:
            self.books.faults[fault] += 1
            refusal = in_flight_refusal(rng.randint(1, 3))
        if refusal is not None:
            return refused(refusal), None, ask
        if fault in _UPSTREAM:
            self.books.faults[fault] += 1
            return upstream(fault, tried[0], chat.model, rng, self.scenario.retry_after), None, ask
        if fault == "misserved":
            tried, fault = self._others(tried, chat.provider)
        provider = self._gate.admit(tried)
        if isinstance(provider, Full):
            self.books.faults[provider.fault] += 1
            return upstream(provider.kind, provider.provider, chat.model, rng, self.scenario.retry_after), None, ask
        flight = self._open(ask, provider, number, prompt, (fault, rng))
        return self._play(flight, ask), flight, ask

    def _draw(self, ask: Ask, rng: random.Random) -> str | None:
        point = rng.random()
        for name, rate in self._rates:
            point -= rate
            if point < 0:
                return None if name == "no_done" and not ask.chat.stream else name
        return None

    def _others(self, tried: list[Provider], route: Route) -> tuple[list[Provider], str | None]:
        """The cheapest endpoint that was not allowed, so that the bill stays below what was reserved."""
        mine = allowed(route, self.scenario.providers)
        others = [p for p in self.scenario.providers if p not in mine and p.status >= 0]
        if not others:
            return tried, None
        return [min(others, key=lambda p: p.prompt_nano + p.completion_nano)], "misserved"

    def _open(
        self, ask: Ask, provider: Provider, number: int, prompt: int, fate: tuple[str | None, random.Random]
    ) -> Flight:
        fault, rng = fate
        prompt = self._meter.shown(provider, prompt, ask.chat.messages, ask.chat.tools or [])
        scenario, thinking = self.scenario, ask.chat.thinking != (fault == "wrong_mode")
        answer = self._sample(ask, number, thinking, _room(ask, provider, prompt, thinking=thinking))
        entry = self._entry(ask, provider, answer, rng, thinking=thinking)
        entry.fault = fault
        ttft = (provider.ttft if scenario.ttft is None else scenario.ttft) * math.exp(rng.gauss(0.0, 0.3))
        tps = (scenario.tps or provider.tps) * scenario.speed * math.exp(rng.gauss(0.0, provider.tps_sigma))
        entry.latency = ttft
        self.purse.hold(entry.id, provider, prompt, ask.chat.limit or answer.size)
        return Flight(
            scenario=scenario, provider=provider, answer=answer, entry=entry, head=self._head(entry), rng=rng,
            prompt=prompt, tps=tps, ttft=ttft, fault=fault, turn=rng.randint(1, max(1, answer.size - 1)),
            logprobs=bool(ask.chat.logprobs), surplus=self._meter.surplus if provider.other_tokenizer else None,
            pace=self._gate.pace(provider.tag), worked=self._gate.worked(provider.tag),
        )  # fmt: skip

    def _sample(self, ask: Ask, number: int, thinking: bool, limit: int) -> Answer:
        scenario, rng = self.scenario, random.Random(f"{self._seed}|{ask.prompt_key}|{number}")
        total = self._author.length(scenario, ask.chat, rng)
        share = min(0.95, max(0.05, rng.gauss(scenario.thinking_share, 0.1)))
        reasoning = max(1, round(total * share)) if thinking else None
        drift, calls = rng.random() < scenario.drift, ()
        if ask.chat.tools and rng.random() < scenario.tool_share:
            calls = tuple(rng.choices(ask.chat.tools, k=1 + (rng.random() < 0.3)))
        content = 0 if calls and rng.random() < 0.6 else max(1, total - (reasoning or 0))
        compact = scenario.compact_share > 0 and rng.random() < scenario.compact_share
        return self._author.sample(Shape(reasoning, content, limit, drift, calls, ask.chat.calls_before, compact), rng)

    def _entry(self, ask: Ask, provider: Provider, answer: Answer, rng: random.Random, *, thinking: bool) -> Entry:
        now = self._now()
        return Entry(
            id=f"gen-{int(now)}-{''.join(rng.choices(_ALPHANUMERIC, k=20))}", key=ask.key, prompt_key=ask.prompt_key,
            body_sha256=ask.body_sha256, provider=provider.name, tag=provider.tag, accepted=now,
            stream=ask.chat.stream, thinking=thinking, finish=answer.finish,
            parts=answer.parts if self.scenario.keep_ids else (), canonical=answer.canonical, drifted=answer.drifted,
            total=answer.size,
        )  # fmt: skip

    def _head(self, entry: Entry) -> dict[str, Any]:
        model = self.scenario.permaslug if self.scenario.echo_permaslug else self.scenario.model
        return {"id": entry.id, "created": int(entry.accepted), "model": model, "provider": entry.provider}

    def _repeated(self, ask: Ask, cached: Cached) -> _Answered:
        rng = random.Random(f"{self._seed}|{cached.source}|{len(self.books.entries)}")
        entry = self._entry(ask, cached.provider, cached.answer, rng, thinking=cached.thinking)
        entry.source = cached.source
        flight = Flight(
            scenario=self.scenario, provider=cached.provider, answer=cached.answer, entry=entry, head=self._head(entry),
            rng=rng, prompt=0, tps=1.0, ttft=0.0, instant=True, logprobs=bool(ask.chat.logprobs),
        )  # fmt: skip
        reply = self._play(flight, ask)
        age = max(0, int(self._now() - cached.since))
        reply.headers |= {"X-OpenRouter-Cache-Status": "HIT", "X-OpenRouter-Cache-Source-Id": cached.source,
                          "X-OpenRouter-Cache-Age": str(age), "X-OpenRouter-Cache-TTL": str(int(cached.until - self._now()))}  # fmt: skip
        return reply, flight, ask

    def _play(self, flight: Flight, ask: Ask) -> Reply:
        if flight.fault == "html":
            return page(flight.rng, min(3.0, flight.ttft))
        if flight.fault == "reset":
            return reset(min(3.0, flight.ttft))
        headers = {
            "Content-Type": "text/event-stream" if ask.chat.stream else "application/json",
            "X-Generation-Id": flight.entry.id,
        }
        if ask.cache_ttl is not None:
            headers["X-OpenRouter-Cache-Status"] = "MISS"
        return Reply(200, self._author.steps(flight), headers=headers)

    def _close(self, flight: Flight | None, ask: Ask | None, played: bool) -> None:
        now = self._now()
        self.books.leave(now)
        if flight is None or ask is None:
            return
        entry, fault, size = flight.entry, flight.fault, flight.answer.size
        del self._flying[entry.id]
        entry.sent = self._author.sent(flight)
        if fault is not None and (played or (fault in AMID and entry.sent >= flight.turn)):
            self.books.faults[fault] += 1
        entry.produced, entry.ended = size, now
        if played and fault in WHOLE:
            entry.status = "full"
        elif played and fault not in LOST:
            entry.status, entry.produced = "error", entry.sent
            entry.finish = "error"
        else:
            entry.status = "cut" if played else "cancelled"
            if flight.provider.cancel_stops and entry.stream:
                entry.produced = entry.sent
            else:
                entry.ended = max(now, entry.accepted + flight.seconds)
        self._book(flight, ask, now)

    def _book(self, flight: Flight, ask: Ask, now: float) -> None:
        entry, ended = flight.entry, flight.entry.ended or now
        counts = flight.counts(entry.produced)
        if not entry.produced or (entry.status == "error" and flight.fault in FREE):
            counts = Counts(counts.prompt, counts.completion, counts.reasoning)
        entry.counts = counts
        if flight.instant:
            return
        self.purse.settle(entry.id, ask.key, counts.cost)
        self._gate.free(entry.tag, ended)
        if (
            ask.cache_ttl is not None
            and entry.status != "error"
            and entry.produced == entry.total
            and flight.fault != "html"
        ):
            until = ended + ask.cache_ttl
            cached = Cached(entry.id, flight.provider, flight.answer, entry.thinking, ended, until)
            self._cache.store(ask.key, ask.body_sha256, cached, now)


_Answered = tuple[Reply, Flight | None, Ask | None]


def _room(ask: Ask, provider: Provider, prompt: int, *, thinking: bool) -> int:
    """The most tokens that may be sampled; a sampled `<think>` takes one of them."""
    room = min(ask.chat.limit or provider.max_output or provider.context, provider.context - prompt)
    return max(1, room - (thinking and provider.think_sampled))
