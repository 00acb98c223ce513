"""The controllers that bench/pace.py sets beside `Pace`, behind one small interface.

room, started, accepted, rejected, ended, grow: as engine/run.py, admit.py and settle.py call `Pace`. `limit` is what the controller
allows at a provider now (in flight, or for a rate bucket requests a second). `holds`: a refused request keeps its place in flight
while it waits for its own Retry-After.
"""

import math
from collections import defaultdict
from dataclasses import dataclass

from eyas.engine.pace import Pace


class Ours:
    """The engine's own."""

    holds = False

    def __init__(self, most):
        self.pace = Pace(most)
        self.room, self.started = self.pace.room, self.pace.started
        self.accepted, self.ended, self.grow = self.pace.accepted, self.pace.ended, self.pace.grow

    def rejected(self, tag, now, hint):
        self.pace.window(tag).rejected(now, hint)

    def limit(self, tag):
        return self.pace.window(tag).limit

    def meet(self, providers):
        pass


class Counting:
    """Counts what flies; what follows decides on top of it."""

    holds = False

    def __init__(self, most, tags=3):
        self.most, self.tags, self.flying = most, tags, defaultdict(int)

    def started(self, tag):
        self.flying[tag] += 1

    def ended(self, tag, *, accepted):
        self.flying[tag] -= 1

    def room(self, tag, now):
        return self.flying[tag] < int(self.limit(tag))

    def accepted(self, tag):
        pass

    def rejected(self, tag, now, hint):
        pass

    def grow(self, now, seconds):
        pass

    def meet(self, providers):
        pass


class Patient(Counting):
    """Asks a provider no more until Retry-After, or half a second, is over."""

    def __init__(self, most, tags=3):
        super().__init__(most, tags)
        self.until = defaultdict(float)

    def room(self, tag, now):
        return now >= self.until[tag] and super().room(tag, now)

    def rejected(self, tag, now, hint):
        self.until[tag] = max(self.until[tag], now + (0.5 if hint is None else hint))


class Fixed(Counting):
    """A semaphore a provider, an equal share each; a refused request waits its Retry-After and is sent again."""

    holds = True

    def limit(self, tag):
        return self.most / self.tags


class Oracle(Counting):
    """Knows every provider's slots at every moment, and its bucket, and fills them. Fewer in flight may end sooner: answers run faster then."""

    def __init__(self, most, tags=3):
        super().__init__(most, tags)
        self.providers, self.credit = {}, {}

    def meet(self, providers):
        self.providers = providers

    def limit(self, tag):
        return self.providers[tag].slots

    def room(self, tag, now):
        provider = self.providers[tag]
        return super().room(tag, now) and self.credit.get(tag, 0.0) >= 1 and provider.slots > 0

    def started(self, tag):
        super().started(tag)
        self.credit[tag] -= 1

    def grow(self, now, seconds):
        for tag, provider in self.providers.items():
            self.credit[tag] = min(provider.rate / 2, self.credit.get(tag, 0.0) + provider.rate * seconds * 0.98)


@dataclass
class Past:
    """The window that eyas had before: whole at first, cut to what is carried or half of what flies, growth by 2 % that doubles."""

    limit: float
    most: int
    in_flight: int = 0
    carried: int = 0
    paused_until: float = 0.0
    last_cut: float = -1e9
    pause: float = 0.5

    def rejected(self, now, hint):
        if now - self.last_cut >= 5:
            self.last_cut = now
            self.limit = min(self.limit, max(5, self.carried, self.in_flight / 2))
            if hint is None:
                self.pause = min(self.pause * 2, 30)
        self.paused_until = max(self.paused_until, now + (hint if hint is not None else self.pause))

    def grow(self, now, seconds):
        quiet = (now - self.last_cut) / 5
        if quiet >= 1 and self.in_flight >= 0.8 * self.limit:
            rate = min(0.5, 0.02 * 2.0 ** min(quiet - 1, 10))
            self.limit = min(self.most, self.limit + max(1.0, rate * self.limit) * seconds)


class Before:
    """A `Past` an endpoint."""

    holds = False

    def __init__(self, most):
        self.windows = defaultdict(lambda: Past(most, most))

    def room(self, tag, now):
        window = self.windows[tag]
        return now >= window.paused_until and window.in_flight < int(window.limit)

    def started(self, tag):
        self.windows[tag].in_flight += 1

    def accepted(self, tag):
        self.windows[tag].carried += 1
        self.windows[tag].pause = 0.5

    def ended(self, tag, *, accepted):
        self.windows[tag].in_flight -= 1
        self.windows[tag].carried -= accepted

    def rejected(self, tag, now, hint):
        self.windows[tag].rejected(now, hint)

    def grow(self, now, seconds):
        for window in self.windows.values():
            window.grow(now, seconds)

    def limit(self, tag):
        return self.windows[tag].limit

    def meet(self, providers):
        pass


class Aimd(Patient):
    """Netflix/concurrency-limits AIMDLimit: +1 a success where twice what flies reaches the limit, x 0.9 a drop.

    A success is an accepted request (its default, the end within 5 s, would call every answer a drop); the limit stays between 20
    and the run's.
    """

    def __init__(self, most, tags=3):
        super().__init__(most, tags)
        self.limits = defaultdict(lambda: 20.0)

    def limit(self, tag):
        return self.limits[tag]

    def accepted(self, tag):
        if self.flying[tag] * 2 >= self.limits[tag]:
            self.limits[tag] = min(self.most, self.limits[tag] + 1)

    def rejected(self, tag, now, hint):
        super().rejected(tag, now, hint)
        self.limits[tag] = max(20.0, int(self.limits[tag] * 0.9))


class Bucket:
    """AWS SDK's adaptive mode for one provider (botocore retries/adaptive, bucket, throttling): a CUBIC of requests a second."""

    BETA, SCALE, SMOOTH, LEAST = 0.7, 0.4, 0.8, 0.5

    def __init__(self):
        self.enabled, self.rate, self.capacity, self.tokens = False, self.LEAST, self.LEAST, 0.0
        self.filled, self.last_max, self.throttled_at = 0.0, 0.0, 0.0
        self.measured, self.count, self.bin = 0.0, 0, 0.0

    def ready(self, now):
        if not self.enabled:
            return True
        self.tokens = min(self.capacity, self.tokens + (now - self.filled) * self.rate)
        self.filled = now
        return self.tokens >= 1

    def sent(self):
        if self.enabled:
            self.tokens -= 1

    def answered(self, now, *, throttled):
        # The SDK measures by half seconds, and counts each answer, not each request.
        self.count += 1
        half = math.floor(now * 2) / 2
        if half > self.bin:
            current = self.count / (half - self.bin)
            self.measured = self.SMOOTH * current + (1 - self.SMOOTH) * self.measured
            self.count, self.bin = 0, half
        if throttled:
            worst = min(self.measured, self.rate) if self.enabled else self.measured
            self.last_max, self.throttled_at, self.enabled = worst, now, True
            new = worst * self.BETA
        else:
            window = (self.last_max * (1 - self.BETA) / self.SCALE) ** (1 / 3)
            new = self.SCALE * (now - self.throttled_at - window) ** 3 + self.last_max
        self.ready(now)
        self.rate = max(self.LEAST, min(new, 2 * self.measured))
        self.capacity = max(1.0, self.rate)
        self.tokens = min(self.tokens, self.capacity)


class Aws(Patient):
    """A bucket a provider; how many fly is bounded by the run's limit only."""

    def __init__(self, most, tags=3):
        super().__init__(most, tags)
        self.buckets, self.now = defaultdict(Bucket), 0.0

    def limit(self, tag):
        bucket = self.buckets[tag]
        return bucket.rate if bucket.enabled else self.most

    def room(self, tag, now):
        self.now = now
        return now >= self.until[tag] and self.buckets[tag].ready(now)

    def started(self, tag):
        super().started(tag)
        self.buckets[tag].sent()

    def accepted(self, tag):
        self.buckets[tag].answered(self.now, throttled=False)

    def rejected(self, tag, now, hint):
        super().rejected(tag, now, hint)
        self.now = max(self.now, now)
        self.buckets[tag].answered(self.now, throttled=True)

    def grow(self, now, seconds):
        self.now = now
