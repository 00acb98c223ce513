"""The market of bench/pace.py: three providers, their trouble, and a client that asks a controller before each request.

A discrete-event simulation on a heap. At a provider with n running answers each makes 60 / (1 + n / 300) tokens a second, so the
answers of one provider share a clock of tokens: one is over when that clock has gone on by its length.
"""

import heapq
import math
import random
from collections import deque
from dataclasses import dataclass, field

TPS, SLOWDOWN = 60.0, 300.0
MEDIAN, SIGMA, SHORTEST, LONGEST = 1000, 1.05, 30, 16_000
IN_FLIGHT, CONNECTS, TICK = 2000, 300, 0.25
FULL, RATE, DOWN = "full", "rate", "down"
KEPT = 64
RUNS_ON, HANGS, BREAKS = "runs on", "hangs", "breaks"


@dataclass(frozen=True)
class Trouble:
    """From `start` to `end` (seconds) a provider has `share` of its slots; with 0 it is down and answers 503."""

    tag: str
    start: float
    end: float
    share: float


SLOTS = {"a": (900, 100), "b": (600, 60), "c": (300, 30)}
TROUBLES = (Trouble("a", 200, 400, 0.5), Trouble("b", 500, 560, 0.0))


@dataclass(frozen=True)
class Case:
    """One scenario. `slots`: (slots, requests a second) by tag; `outage`: what becomes of the answers that run at a provider that
    goes down.

    `delay` is the longest way to a provider, seconds; each request takes 0.5 to 1 of it, and as long back. `stray` is the share
    of requests that get a 429 for nothing. `streamed`: whether headers come when a request is let in, or with its end.
    """

    prompts: int = 12_000
    slots: dict[str, tuple[int, float]] = field(default_factory=lambda: SLOTS)
    troubles: tuple[Trouble, ...] = TROUBLES
    outage: str = BREAKS
    delay: float = 0.2
    balanced: bool = False
    stray: float = 0.0
    streamed: bool = True
    median: int = MEDIAN


class Provider:
    """Slots, a bucket of requests (one second's worth), and a clock of tokens."""

    def __init__(self, slots, rate):
        self.slots, self.rate, self.held_up = slots, rate, False
        self.bucket, self.filled = float(rate), 0.0
        self.tokens, self.at, self.running = 0.0, 0.0, 0
        self.ends = []

    def speed(self):
        return TPS / (1 + self.running / SLOWDOWN) if not self.held_up else 0.0

    def advance(self, now):
        self.tokens += (now - self.at) * self.speed()
        self.at = now

    def refusal(self, now):
        """Why it lets nobody in now; "" if it does."""
        self.bucket = min(self.rate, self.bucket + (now - self.filled) * self.rate)
        self.filled = now
        if not self.slots:
            return DOWN
        if self.bucket < 1:
            return RATE
        self.bucket -= 1
        return FULL if self.running >= self.slots else ""

    def next_end(self):
        """When the next answer ends, if nothing changes before."""
        speed = self.speed()
        if not self.ends or not speed:
            return math.inf
        return self.at + max(0.0, self.ends[0][0] - self.tokens) / speed


def capacity(slots):
    """Tokens a second of a provider that is full."""
    return TPS * slots / (1 + slots / SLOWDOWN)


def ideal(case, tokens):
    """Seconds in which the market makes so many tokens if every slot is taken from the first second to the last."""
    marks = sorted({0.0, *(t.start for t in case.troubles), *(t.end for t in case.troubles)})
    for start, end in zip(marks, [*marks[1:], math.inf], strict=True):
        rate = sum(capacity(slots_at(case, tag, start)) for tag in case.slots)
        if tokens <= rate * (end - start):
            return start + tokens / rate
        tokens -= rate * (end - start)
    raise AssertionError("the last stretch has no end")


def slots_at(case, tag, now):
    share = min((t.share for t in case.troubles if t.tag == tag and t.start <= now < t.end), default=1.0)
    return int(case.slots[tag][0] * share)


@dataclass(frozen=True)
class Sample:
    """One a second: answers that run and the controller's limit, by tag; whether work waits."""

    at: float
    running: dict[str, int]
    limits: dict[str, float]
    waits: bool


@dataclass
class Seen:
    """What one run showed: tokens, attempts, the times at which answers ended, refusals (time, tag, why), samples."""

    tokens: float = 0.0
    attempts: int = 0
    ended: list[float] = field(default_factory=list)
    refused: list[tuple[float, str, str]] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)


class Run:
    """One run of a controller through a case, on its own clock."""

    def __init__(self, case, controller, seed):
        self.case, self.controller, self.seen = case, controller, Seen()
        self.rng = random.Random(seed)
        # Lengths and chances are drawn apart, so that every controller is given the same prompts.
        self.lengths = random.Random(seed + 1_000_003)
        self.fresh = deque(self.length() for _ in range(case.prompts))
        self.again = deque()
        self.providers = {tag: Provider(*each) for tag, each in case.slots.items()}
        self.left, self.flying, self.peak, self.ramp = case.prompts, 0, 0, 0.0
        self.heap, self.number, self.now = [], 0, 0.0

    def at(self, when, what, *more):
        self.number += 1
        heapq.heappush(self.heap, (when, self.number, what, more))

    def run(self):
        self.at(0.0, self.tick)
        for trouble in self.case.troubles:
            self.at(trouble.start, self.change, trouble)
            self.at(trouble.end, self.change, trouble)
        while self.left:
            ends = {tag: p.next_end() for tag, p in self.providers.items()}
            tag = min(ends, key=ends.__getitem__)
            if ends[tag] <= self.heap[0][0]:
                self.now = ends[tag]
                self.finish(tag)
            else:
                self.now, _, what, more = heapq.heappop(self.heap)
                what(*more)
        return self.seen

    def tick(self):
        self.controller.grow(self.now, TICK)
        if self.now == int(self.now):
            running = {tag: p.running for tag, p in self.providers.items()}
            limits = {tag: self.controller.limit(tag) for tag in self.providers}
            self.seen.samples.append(Sample(self.now, running, limits, bool(self.fresh)))
        self.at(self.now + TICK, self.tick)
        self.admit()

    def change(self, trouble):
        provider = self.providers[trouble.tag]
        provider.advance(self.now)
        provider.slots = slots_at(self.case, trouble.tag, self.now)
        down = not provider.slots
        provider.held_up = down and self.case.outage == HANGS
        if not down or self.case.outage != BREAKS:
            return
        missing = 0.0
        for end, _, size in provider.ends:
            came = size - (end - provider.tokens)
            missing += size - came if came >= KEPT else size
            self.seen.tokens += came if came >= KEPT else 0
            self.seen.ended.append(self.now)
            self.left -= 1
            self.land(trouble.tag, provider, came_in=self.case.streamed)
        provider.ends.clear()
        while missing > 0:
            self.fresh.append(min(missing, self.length()))
            missing -= self.fresh[-1]
            self.left += 1
        self.admit()

    def length(self):
        return min(LONGEST, max(SHORTEST, self.lengths.lognormvariate(math.log(self.case.median), SIGMA)))

    def admit(self):
        while (self.again or self.fresh) and self.flying < IN_FLIGHT:
            if self.flying >= self.peak:
                self.ramp = max(self.ramp, self.now - TICK)
                if self.ramp > self.now:
                    return
            tag = self.route()
            if tag is None:
                return
            if self.flying >= self.peak:
                self.ramp += 1 / CONNECTS
                self.peak = self.flying + 1
            size = (self.again or self.fresh).popleft()
            self.flying += 1
            self.controller.started(tag)
            self.send(tag, size)

    def route(self):
        """The first provider with room, or with `balanced` the one that runs the least of its slots."""
        able = [tag for tag in self.providers if self.controller.room(tag, self.now)]
        if self.case.balanced and able:
            return min(able, key=lambda tag: self.providers[tag].running / self.case.slots[tag][0])
        return able[0] if able else None

    def send(self, tag, size):
        self.seen.attempts += 1
        self.at(self.now + self.way(), self.arrive, tag, size)

    def way(self):
        return self.case.delay * self.rng.uniform(0.5, 1.0)

    def arrive(self, tag, size):
        provider = self.providers[tag]
        why = provider.refusal(self.now) or (FULL if self.rng.random() < self.case.stray else "")
        if why:
            hint = 1.0 if why == RATE else 5.0 if why == FULL and self.rng.random() < 0.5 else None
            self.at(self.now + self.way(), self.reject, tag, size, why, hint)
            return
        provider.advance(self.now)
        provider.running += 1
        self.number += 1
        heapq.heappush(provider.ends, (provider.tokens + size, self.number, size))
        if self.case.streamed:
            self.at(self.now + self.way(), self.controller.accepted, tag)

    def reject(self, tag, size, why, hint):
        self.seen.refused.append((self.now, tag, why))
        self.controller.rejected(tag, self.now, hint)
        if self.controller.holds:
            self.at(self.now + (hint or 0.0), self.send, tag, size)
            return
        self.flying -= 1
        self.controller.ended(tag, accepted=False)
        self.again.append(size)
        self.admit()

    def finish(self, tag):
        provider = self.providers[tag]
        provider.advance(self.now)
        _, _, size = heapq.heappop(provider.ends)
        self.left -= 1
        self.seen.tokens += size
        self.seen.ended.append(self.now)
        self.land(tag, provider, came_in=self.case.streamed)
        self.admit()

    def land(self, tag, provider, *, came_in):
        provider.running -= 1
        self.flying -= 1
        if not came_in:
            self.controller.accepted(tag)
        self.controller.ended(tag, accepted=True)
