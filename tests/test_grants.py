"""How much a worker is handed: never more than there is, less and less, and in the end all of the cap is used."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from eyas.engine.grants import PARTS, Crew, Need, money, prompts, share
from eyas.ledger import Lease, Money

AMOUNT = st.integers(0, 10**12)
CREWS = st.builds(Crew, st.integers(1, 200), st.integers(1, 4000), st.integers(1, 2000))
NEEDS = st.builds(Need, st.integers(0, 5000), st.integers(0, 5000), st.integers(0, 10**10))
LEASES = st.builds(Lease, granted=st.integers(0, 10**11), used=st.integers(0, 10**11))


@given(st.integers(-(10**12), 10**12), AMOUNT, st.integers(1, 200), st.integers(1, 10**10))
def test_a_share_is_nothing_or_enough_and_never_more_than_is_left(
    wanted: int, left: int, workers: int, least: int
) -> None:
    """It is 0, or at least the least; not above what is left, what is wanted, or a part of what is left for each worker."""
    got = share(wanted, left, workers, least)
    assert got == 0 or least <= got <= left
    assert got <= max(wanted, least)
    assert got <= max(least, left // (PARTS * workers))
    assert (got == 0) == (wanted <= 0 or left < least)


@given(AMOUNT, AMOUNT, AMOUNT, st.integers(1, 200), st.integers(1, 10**10))
def test_a_share_grows_with_what_is_wanted_and_what_is_left(
    wanted: int, left: int, more: int, workers: int, least: int
) -> None:
    """Who wants more never gets less, nor does anyone when more is left."""
    got = share(wanted, left, workers, least)
    assert got <= share(wanted + more, left, workers, least)
    assert got <= share(wanted, left + more, workers, least)


@given(st.integers(1, 50), st.integers(0, 10**9), st.integers(1, 10**6), st.lists(st.integers(0, 10**9), max_size=60))
def test_shares_of_any_sequence_shrink_and_leave_something(
    workers: int, left: int, least: int, wishes: list[int]
) -> None:
    """Whatever is wished, in whatever order: together it is no more than there was, and the same wish never gets more later."""
    rest, before = left, None
    for wish in wishes:
        got = share(wish, rest, workers, least)
        rest -= got
        assert rest >= 0
        whole = share(left, rest, workers, least)
        assert before is None or whole <= before
        before = whole


@given(CREWS, st.integers(0, 5000), st.integers(0, 10**7))
def test_prompts_come_before_the_last_half_is_begun(crew: Crew, waiting: int, left: int) -> None:
    """A worker that has less than half of its prompts waiting gets some if there are any, and never too many."""
    got = prompts(crew, waiting, left)
    assert 0 <= got <= left
    assert got == 0 or waiting + got <= crew.prompts
    assert (got > 0) == (2 * waiting < crew.prompts and left > 0)


@given(CREWS, NEEDS, LEASES, AMOUNT)
def test_money_is_for_what_can_fly_and_pays_a_request_at_least(crew: Crew, need: Need, lease: Lease, free: int) -> None:
    """Nothing or at least one reservation; with what the worker has no more than all that may fly at once could need."""
    got = money(crew, need, lease, free)
    more = min(need.waiting, max(0, crew.in_flight - need.in_flight))
    assert got == 0 or need.reservation <= got <= free
    assert got == 0 or lease.left + got <= max(more * need.reservation, lease.left + need.reservation)
    assert (got == 0) == (more * need.reservation <= lease.left or free < need.reservation)


@given(CREWS, st.lists(st.tuples(NEEDS, LEASES), max_size=40), AMOUNT)
def test_grants_of_any_sequence_fit_the_cap(crew: Crew, asked: list[tuple[Need, Lease]], cap: int) -> None:
    """The books can lease what is granted, whoever needs what: `lease` never raises."""
    books = Money(cap)
    for need, lease in asked:
        books = books.lease(money(crew, need, lease, books.free or 0))
    assert books.committed <= cap


@dataclass
class Worker:
    """As many requests as it may and can pay, each with a cost below its reservation."""

    lease: Lease = field(default_factory=Lease)
    flying: list[int] = field(default_factory=list[int])


@dataclass
class Model:
    """A crew that asks without end under a cap; `books` are the coordinator's. A step is what all do once."""

    crew: Crew
    books: Money
    most: int
    random: Random
    workers: list[Worker] = field(init=False)
    turned: int = 0

    def __post_init__(self) -> None:
        self.workers = [Worker() for _ in range(self.crew.workers)]

    def change(self, worker: Worker, lease: Lease) -> None:
        """Another lease, also in the books."""
        self.books, worker.lease = self.books.released(worker.lease, lease), lease

    def step(self) -> bool:
        """Grants, new requests, some ends, and money that comes back where somebody is short; whether anything happened."""
        before = (self.books, [len(worker.flying) for worker in self.workers])
        for worker in self.workers:
            need = Need(self.crew.prompts, len(worker.flying), self.most)
            more = money(self.crew, need, worker.lease, self.books.free or 0)
            self.books.lease(more)
            self.change(worker, worker.lease.grant(more))
            while len(worker.flying) < self.crew.in_flight and worker.lease.left >= self.most:
                worker.flying.append(self.most)
                self.use(worker, self.most, 0)
        self.land()
        self.squeeze()
        return before != (self.books, [len(worker.flying) for worker in self.workers])

    def use(self, worker: Worker, reserve: int, cost: int) -> None:
        """A reservation is taken, or ends as a cost."""
        if reserve > 0:
            self.books = self.books.force(reserve)
        else:
            self.books = self.books.settle(-reserve, cost)
        self.change(worker, worker.lease.use(reserve + cost))

    def land(self) -> None:
        """Some requests end, below their reservations; one at least where any flies."""
        for worker in self.workers:
            for _ in range(self.random.randint(min(1, len(worker.flying)), len(worker.flying))):
                self.use(worker, -worker.flying.pop(), self.random.randint(1, self.most))

    def squeeze(self) -> None:
        """Where somebody cannot pay a request and nothing is free, all give back what could not pay one."""
        short = [worker for worker in self.workers if worker.lease.left < self.most]
        if short and (self.books.free or 0) < self.most:
            self.turned += 1
            for worker in short:
                self.change(worker, worker.lease.give_back(worker.lease.left))


@settings(deadline=None, max_examples=60)
@given(
    st.builds(Crew, st.integers(1, 12), st.integers(1, 20), st.integers(20, 60)),
    st.integers(10, 10_000),
    st.integers(100, 400),
    st.randoms(use_true_random=False),
)
def test_the_cap_is_used_to_the_last_reservation(crew: Crew, most: int, requests: int, random: Random) -> None:
    """However answers cost less than was reserved: at the end less is left than one request may cost, 1 % of the cap here."""
    model = Model(crew, Money(most * requests), most, random)
    while model.step():
        assert model.books.committed <= most * requests
    assert not any(worker.flying for worker in model.workers)
    assert model.books.committed == model.books.settled
    assert most * requests - model.books.settled < most
    assert model.books.settled >= 0.99 * most * requests
