"""Any order of events over a coordinator and its workers: no dollar is spent twice or lost, no conversation is asked by two.

EYAS_FULL=1 runs 500 examples of 50 steps each instead of the few of an ordinary test run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.test_ledger_machine import PICK, SHARE, profile

from eyas.events import GivenBack, Headers, Intent
from eyas.state import ANSWERED, Left, fold
from eyas.state.workers import works_of
from eyas.types import Verdict, Work
from tests_ray.leadkit import Lead
from tests_ray.leasekit import TALKS, Grants, Peer, play, refuses

MOST_WORKERS = 4
TAPE = st.binary(min_size=8, max_size=40)
"""What a worker does, four bytes each: what it is, to which of those there are, a share, and what comes of it."""


class Leases(RuleBasedStateMachine):
    """A coordinator and its workers, each of whom may be late, twice told, killed, out of reach, or given up."""

    def __init__(self) -> None:
        super().__init__()
        self.lead = Lead()
        self.peers: dict[int, Peer] = {}
        self.cap = 0

    def those(self, which: Callable[[Peer], object]) -> list[Peer]:
        """The workers that are so."""
        return [peer for peer in self.peers.values() if which(peer)]

    def one(self, pick: int, which: Callable[[Peer], object]) -> Peer:
        """One of them."""
        return (found := self.those(which))[pick % len(found)]

    def left(self, peer: Peer) -> Left:
        """How the coordinator sees it."""
        return self.lead.state.workers[peer.number].left

    def present(self, peer: Peer) -> bool:
        """Whether it may be granted something."""
        return self.left(peer) is Left.NOT

    def alive(self, peer: Peer) -> bool:
        """Whether it can do something; also one that was given up."""
        return not peer.gone

    def lying(self, peer: Peer) -> Grants:
        """Grants that it has not heard of."""
        return self.lead.sent[peer.number][peer.taken :]

    def hears(self, peer: Peer) -> bool:
        """Whether there is a grant to tell it of."""
        return not peer.gone and bool(self.lead.sent[peer.number])

    def readable(self, peer: Peer) -> bool:
        """Whether its journal is there, and rows of it may come."""
        return not peer.hidden and self.left(peer) is not Left.READ

    def over(self, peer: Peer) -> bool:
        """Whether its journal may be read to the end."""
        return peer.gone and self.readable(peer)

    def read(self, peer: Peer, most: int, again: int = 0) -> None:
        """Rows of it come. Where works stand, one that was given up can only say by answers, and by costs."""
        before = {work: known.verdict for work, known in self.lead.state.works.items()}
        self.lead.absorb(peer, most, again)
        after = {work: known.verdict for work, known in self.lead.state.works.items()}
        changed = [work for work, verdict in after.items() if verdict is not before.get(work)]
        clear = [work for work in changed if before.get(work) is not Verdict.UNKNOWN]
        assert self.present(peer) or all(after[work] in ANSWERED for work in clear)

    @initialize(cap=st.integers(100, 5_000))
    def start(self, cap: int) -> None:
        """A run of fifteen conversations of one to three turns under a cap, of which two workers have some already."""
        self.cap = cap
        self.lead.open(cap)
        for pick in range(2):
            self.join()
            self.grant(pick, Fraction(1, 3), 4, arrives=True)

    @precondition(lambda self: len(self.peers) < MOST_WORKERS)
    @rule()
    def join(self) -> None:
        """One more worker."""
        peer = self.lead.join()
        self.peers[peer.number] = peer

    @precondition(lambda self: self.those(self.present))
    @rule(pick=PICK, share=SHARE, talks=st.integers(1, 6), arrives=st.sampled_from([True, True, False]))
    def grant(self, pick: int, share: Fraction, talks: int, arrives: bool) -> None:
        """A worker may spend more and ask more, once it hears of it, now or later; never more than is free."""
        free = self.lead.state.money.free
        assert free is not None
        assert free >= 0
        assert refuses(lambda: self.lead.state.money.lease(free + 1))
        peer = self.one(pick, self.present)
        ready = sorted(talk for talk in self.lead.free if next(self.lead.owed(talk), None))
        turned = ready[pick % len(ready) :] + ready[: pick % len(ready)] if ready else []
        self.lead.grant(peer.number, int(share * free), turned[:talks])
        self.tell(peer, self.lying(peer) * arrives)

    @precondition(lambda self: self.those(self.hears))
    @rule(pick=PICK, which=PICK, twice=st.booleans())
    def deliver(self, pick: int, which: int, twice: bool) -> None:
        """A worker hears of a grant that it has not taken, and of an old one again."""
        peer = self.one(pick, self.hears)
        sent = self.lead.sent[peer.number]
        self.tell(peer, [sent[which % len(sent)], *sent[peer.taken : peer.taken + 1]] * (1 + twice))

    def tell(self, peer: Peer, grants: Grants) -> None:
        """Grants come to a worker."""
        for event, works in grants:
            if peer.take(event):
                peer.hand(works)

    @precondition(lambda self: self.those(self.alive))
    @rule(pick=PICK, tape=TAPE, rows=st.sampled_from([0, 0, 3, 200]))
    def work(self, pick: int, tape: bytes, rows: int) -> None:
        """A worker does some things, and rows of it come."""
        peer = self.one(pick, self.alive)
        play(peer, tape)
        if self.readable(peer):
            self.read(peer, rows)

    @precondition(lambda self: self.those(self.readable))
    @rule(pick=PICK, most=st.sampled_from([200, 200, 10, 3, 1]), again=st.integers(0, 5))
    def absorb(self, pick: int, most: int, again: int) -> None:
        """Some rows of a worker's journal come, perhaps some of them again."""
        self.read(self.one(pick, self.readable), most, again)

    @rule(what=st.sampled_from(["die", "hide", "write off", "write off", "crash"]), pick=PICK, share=SHARE)
    def misfortune(self, what: str, pick: int, share: Fraction) -> None:
        """A worker's process is gone; its directory is out of reach, or no more; it is given up; the coordinator is killed.

        What a worker asked is answered and billed all the same. Of the coordinator's events those stay that were waited for.
        """
        lead = self.lead
        if what == "crash":
            lead.crash(lead.durable + int(share * (len(lead.events) - lead.durable)))
        elif what == "die" and self.those(self.alive):
            self.one(pick, self.alive).die()
        elif what == "hide" and self.those(self.present):
            peer = self.one(pick, self.present)
            peer.hidden = not peer.hidden
        elif what == "write off" and self.those(self.present):
            lead.write_off(self.one(pick, self.present).number)

    @precondition(lambda self: self.those(self.over))
    @rule(pick=PICK, bill=SHARE)
    def leave(self, pick: int, bill: Fraction) -> None:
        """The journal of a worker that is gone is read to its end."""
        self.lead.to_the_end(self.one(pick, self.over), bill)

    @precondition(lambda self: self.lead.state.unknown())
    @rule(which=PICK)
    def look_up(self, which: int) -> None:
        """The coordinator finds out what something cost whose cost it does not know, whoever asked it."""
        unknown = self.lead.state.unknown()
        attempt = unknown[which % len(unknown)].id
        self.lead.look_up(attempt, self.bill(attempt))

    @invariant()
    def contradictions(self) -> None:
        """What a worker can never say is refused: more money back than it has, a row again, anything after its end."""
        state = self.lead.state
        number = next(iter(state.attempts), 0)
        for who, known in state.workers.items():
            assert refuses(lambda known=known: known.lease.give_back(known.lease.left + 1))
            late = known.seq + 1 if known.left is Left.READ else known.seq
            word = Headers(at=9.0, attempt=number, generation_id="gen", worker=who, seq=late)
            assert not number or refuses(lambda word=word: state.apply(word))

    def askers(self) -> dict[int, tuple[Peer, int]]:
        """Who asked what: the run's attempts, each with its worker and the number that it has there."""
        seen: Counter[int] = Counter()
        found: dict[int, tuple[Peer, int]] = {}
        for event in self.lead.events:
            if isinstance(event, Intent):
                seen[event.worker] += 1
                found[event.attempt] = (self.peers[event.worker], seen[event.worker])
        return found

    def bill(self, attempt: int) -> int:
        """What an attempt of the run cost, by the worker that asked it."""
        peer, number = self.askers()[attempt]
        return peer.bills[number]

    def most(self, peer: Peer) -> int:
        """The most that a worker has spent or can ever spend, by what it has and what is on its way to it."""
        if peer.gone:
            return peer.spent
        return max(peer.spent, peer.cap + sum(event.nano for event, _ in self.lying(peer)))

    def shares(self) -> Counter[int]:
        """What the books hold for each worker: its attempts, and what is left or was lost of its lease."""
        attempts, found = self.lead.state.attempts, Counter[int]()
        for number, (peer, _) in self.askers().items():
            cost = attempts[number].cost
            found[peer.number] += attempts[number].reserved if cost is None else cost
        for number, known in self.lead.state.workers.items():
            found[number] += known.lease.left if known.left is Left.NOT else known.lease.lost
        return found

    @invariant()
    def money(self) -> None:
        """The cap covers all that was and can be spent; the books know it (I1), and how much of it workers have."""
        money, workers = self.lead.state.money, self.lead.state.workers
        assert money.committed <= self.cap
        assert min(money.settled, money.wasted, money.reserved, money.unknown, money.leased) >= 0
        shares = self.shares()
        assert money.committed == sum(shares.values())
        assert all(self.most(peer) <= shares[peer.number] for peer in self.peers.values())
        leases = [known.lease for known in workers.values() if known.left is Left.NOT]
        assert money.leased == sum(lease.left for lease in leases)
        assert money.leased == sum(lease.granted - lease.used for lease in leases)
        attempts = self.lead.state.attempts
        for known in workers.values():
            assert known.left is Left.READ or known.cost == sum(attempts[number].cost or 0 for number in known.attempts)
        for peer in self.peers.values():
            assert peer.state.money.committed <= peer.cap
            if self.left(peer) is Left.NOT:
                assert peer.state.money.committed <= workers[peer.number].lease.granted

    @invariant()
    def conversations(self) -> None:
        """Each is with one worker, or free, or at its end; and nobody asks one that is free or another one's."""
        state = self.lead.state
        there = [work for known in state.workers.values() for work in known.works]
        ended = {talk for talk in TALKS if next(self.lead.owed(talk), None) is None}
        assert len(set(there)) == len(there)
        assert not set(there) & self.lead.free
        assert {*there, *self.lead.free} | ended == set(TALKS)
        asked = [talk for peer in self.peers.values() for talk in self.asked(peer)]
        assert len(set(asked)) == len(asked)
        assert not set(asked) & {talk for talk in self.lead.free if talk not in ended}
        for peer in self.peers.values():
            if self.present(peer) and not peer.gone and self.heard(peer):
                works = state.workers[peer.number].works
                assert peer.talks - ended <= works <= peer.talks

    def heard(self, peer: Peer) -> bool:
        """Whether nothing lies between it and the coordinator."""
        return self.lead.heard[peer.number] == len(peer.rows) and not self.lying(peer)

    def asked(self, peer: Peer) -> set[Work]:
        """The conversations that a worker may ask; of one that was given up nobody minds."""
        if peer.gone or self.left(peer) is not Left.NOT:
            return set()
        return peer.talks.union(*(works_of(event.works) for event, _ in self.lying(peer)))

    @invariant()
    def history(self) -> None:
        """The state is the fold of the events, and nothing of a worker stands in them twice."""
        assert fold(self.lead.events) == self.lead.state
        rows = [(event.worker, event.seq) for event in self.lead.events if event.worker]
        backs = [(event.by, event.number) for event in self.lead.events if isinstance(event, GivenBack)]
        assert len(set(rows)) == len(rows)
        assert len(set(backs)) == len(backs)

    def teardown(self) -> None:
        """At last every journal is read and every cost looked up: each dollar and each answer is where it belongs."""
        for peer in self.peers.values():
            if self.left(peer) is not Left.READ:
                peer.die()
                self.lead.to_the_end(peer, Fraction(1, 2))
        for attempt in self.lead.state.unknown():
            self.lead.look_up(attempt.id, self.bill(attempt.id))
        for check in (self.money, self.conversations, self.contradictions, self.history):
            check()
        state = self.lead.state
        lost = sum(known.lease.lost for known in state.workers.values())
        assert state.money.settled == sum(peer.spent for peer in self.peers.values()) + lost
        assert state.money.committed == state.money.settled
        assert len(state.attempts) == sum(len(peer.state.attempts) for peer in self.peers.values())
        answered = {work for peer in self.peers.values() for work, known in peer.state.works.items() if known.answer}
        assert {work for work, known in state.works.items() if known.answer} == answered
        standing = [attempt for attempt in state.attempts.values() if attempt.answered]
        assert sorted(attempt.work for attempt in standing) == sorted(answered)
        assert state.money.wasted - lost == sum(a.cost or 0 for a in state.attempts.values() if not a.answered)


def test_any_order_of_leases_keeps_the_books() -> None:
    """Grants, answers, losses, write-offs and crashes in any order: never above the cap, nothing twice, nothing lost."""
    run_state_machine_as_test(Leases, settings=profile(60, 40))
