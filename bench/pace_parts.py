"""`Pace` without one of its parts each: what does it earn? For bench/pace.py."""

from pace_rivals import Ours

from eyas.engine import pace

CONSTANTS = ("FIRST", "FIRST_HOLD", "MOST_HOLD", "NEAR", "LEAST_NEAR")
SAVED = {name: getattr(pace, name) for name in CONSTANTS}


class Bursts(pace.Window):
    """What flies may jump."""

    def room(self, now):
        self.ceiling = float("inf")
        return super().room(now)


class Unprobed(pace.Window):
    """After a pause everything goes at once."""

    def room(self, now):
        self.probing = False
        return super().room(now)


class Shrinking(pace.Window):
    """A cut to 0.85 of the window, not to what it carries."""

    def _cut(self, now):
        limit = self.limit
        super()._cut(now)
        self.limit = self.cut_to = max(pace.FLOOR, 0.85 * limit)


class Forgetful(pace.Window):
    """A cut to what is carried at that moment, not lately."""

    def _cut(self, now):
        self.shown = pace.Shown(lately=self.carried)
        super()._cut(now)


class Steady(pace.Window):
    """Growth by a share of the window a second at once, not by 1, 2, 4."""

    def grow(self, now, seconds):
        self.step = self._rise()
        super().grow(now, seconds)


class Deaf(pace.Window):
    """A cut an epoch even where nothing was let in between."""

    def rejected(self, now, retry_after):
        self.heard = True
        super().rejected(now, retry_after)


def part(window=pace.Window, **constants):
    """A controller whose windows are of that class, under those constants."""

    def make(most):
        for name, value in {**SAVED, **constants}.items():
            setattr(pace, name, value)
        controller = Ours(most)
        controller.pace.endpoints = Windows(window, controller.pace)
        return controller

    return make


class Windows(dict):
    """Makes an endpoint's window when it is asked for."""

    def __init__(self, window, owner):
        super().__init__()
        self.window, self.owner = window, owner

    def get(self, tag, default=None):
        if tag not in self:
            self[tag] = self.window(min(pace.FIRST, self.owner.most), self.owner.most)
        return self[tag]


PARTS = {
    "whole": part(),
    "what flies may jump": part(Bursts),
    "the window starts at 2000": part(FIRST=2000),
    "both": part(Bursts, FIRST=2000),
    "no probe after a pause": part(Unprobed),
    "cut to 0.85": part(Shrinking),
    "cut to what is carried now": part(Forgetful),
    "cuts though nothing is let in": part(Deaf),
    "growth by 6 % at once": part(Steady),
    "always 5 s until growth": part(FIRST_HOLD=5.0, MOST_HOLD=5.0),
    "always 14 s until growth": part(FIRST_HOLD=14.0, MOST_HOLD=14.0),
}
