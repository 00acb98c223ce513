"""Routes in the order of what a token costs that will be exported strict, as learned from the run's own answers."""

from __future__ import annotations

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from eyas.engine.choice import REORDER, Choice
from eyas.engine.pace import Pace
from eyas.engine.pool import Pool
from eyas.events import AnyEvent, Corrected, Intent, Labelled, PromptAdded, SessionOpened, Settled
from eyas.ledger import cost_of
from eyas.plan import Route, ordered
from eyas.plan.route import JUDGED, overpaid
from eyas.state import fold
from eyas.types import Endpoint, Label, Prices, Verdict, Work

CHEAP, DEAR = "cheap/int4", "dear/int4"
PRICES = {CHEAP: Prices(475_000_000, 1_900_000_000), DEAR: Prices(500_000_000, 2_000_000_000)}
PROMPT, ANSWER = 100, 400


def route(tag: str, rank: int = 0) -> Route:
    """A way to ask one endpoint."""
    return Route(tag, (Endpoint("m", tag, tag, tag, PRICES[tag]),), PRICES[tag], {}, rank)


ROUTES = (route(CHEAP), route(DEAR))


class Buyer:
    """Buys answers, and keeps the events."""

    def __init__(self) -> None:
        self.events: list[AnyEvent] = [SessionOpened(at=0, model="m", cap=None, quotas={"A": None}, waste_limit=None)]
        self.state = fold(self.events)
        self._numbers = count(1)

    def emit(self, event: AnyEvent) -> None:
        """Something happened."""
        self.events.append(event)
        self.state.apply(event)

    def buy(self, tag: str, label: Label | None = Label.COUNTED, verdict: Verdict = Verdict.DONE, **more: float) -> int:
        """One attempt at its list price times `bill`; gives its number."""
        number, tokens = next(self._numbers), int(more.get("tokens", ANSWER))
        work = Work("A", f"{number:016x}")
        cost = round(cost_of(PRICES[tag], PROMPT, tokens) * more.get("bill", 1.0))
        self.emit(PromptAdded(at=0, dataset="A", prompt_id=work.prompt_id, tokens=PROMPT))
        self.emit(Intent(at=0, attempt=number, work=work, number=1, tag=tag, prices=PRICES[tag], reserved=10**10))
        kept = tokens if verdict is Verdict.DONE else 0
        self.emit(Settled(at=0, attempt=number, verdict=verdict, cost=cost, tokens=kept))
        if verdict is Verdict.DONE and label is not None:
            self.emit(Labelled(at=0, attempt=number, label=label))
        return number

    def first(self) -> str:
        """The tag that is asked first now."""
        return ordered(ROUTES, self.state.providers)[0].tag


def test_waste_of_a_fifth_outweighs_five_percent() -> None:
    """The cheaper endpoint comes first until 50 of its answers are judged, and second from then on; also after a resume."""
    buyer = Buyer()
    for number in range(2 * JUDGED):
        assert buyer.first() == (CHEAP if number < JUDGED else DEAR)
        buyer.buy(CHEAP, verdict=Verdict.AGAIN if number % 5 == 0 else Verdict.DONE)
        buyer.buy(DEAR)
    assert ordered(ROUTES, fold(buyer.events).providers)[0].tag == DEAR
    assert fold(buyer.events) == buyer.state


def test_labels_that_are_not_exported_are_waste_too() -> None:
    """Mismatches count as paid for nothing; put right by a later label, they do no more."""
    buyer = Buyer()
    numbers = [buyer.buy(CHEAP, Label.MISMATCH if n % 5 == 0 else Label.STREAMED) for n in range(2 * JUDGED)]
    assert buyer.first() == DEAR
    for number in numbers:
        buyer.emit(Labelled(at=0, attempt=number, label=Label.COUNTED))
    assert buyer.first() == CHEAP
    assert overpaid(buyer.state.providers[CHEAP], 10**6) == 1.0


def test_answers_without_a_label_yet_say_nothing() -> None:
    """Labels come seconds after the answers: till then they are neither good nor bad."""
    buyer = Buyer()
    for _ in range(JUDGED):
        buyer.buy(CHEAP)
    for _ in range(5 * JUDGED):
        buyer.buy(CHEAP, label=None)
    assert overpaid(buyer.state.providers[CHEAP], 10**6) == 1.0


def test_few_bad_answers_turn_no_order() -> None:
    """One bad answer among fifty does not outweigh 5 %, however long a typical one is."""
    buyer = Buyer()
    for number in range(JUDGED + 5):
        buyer.buy(CHEAP, verdict=Verdict.AGAIN if number == 3 else Verdict.DONE)
    assert buyer.first() == CHEAP


def test_a_discount_is_learned() -> None:
    """An endpoint whose bills are a tenth below its list price is the cheaper one."""
    buyer = Buyer()
    for _ in range(3 * JUDGED):
        buyer.buy(DEAR, bill=0.9)
    assert buyer.first() == DEAR


def test_a_cost_that_becomes_known_later_counts() -> None:
    """Lost answers whose bills are looked up are waste at their endpoint."""
    buyer = Buyer()
    for _ in range(JUDGED):
        buyer.buy(CHEAP)
    for number in range(1000, 1020):
        work = Work("A", f"{number:016x}")
        buyer.emit(Intent(at=0, attempt=number, work=work, number=1, tag=CHEAP, prices=PRICES[CHEAP], reserved=10**9))
        buyer.emit(Settled(at=0, attempt=number, verdict=Verdict.AGAIN, cost=None))
        assert buyer.first() == CHEAP
    for number in range(1000, 1020):
        buyer.emit(Corrected(at=0, attempt=number, cost=cost_of(PRICES[CHEAP], PROMPT, ANSWER)))
    assert buyer.first() == DEAR


def test_the_users_order_goes_before_what_was_learned() -> None:
    """[providers] order is the first key, whatever an endpoint wastes."""
    buyer = Buyer()
    for _ in range(2 * JUDGED):
        buyer.buy(CHEAP, verdict=Verdict.AGAIN)
    assert ordered((route(CHEAP, 0), route(DEAR, 1)), buyer.state.providers)[0].tag == CHEAP


def test_the_order_is_made_anew_every_few_seconds() -> None:
    """Not for each request; a dropped endpoint is out at once, and a full one too."""
    buyer = Buyer()
    choice = Choice(ROUTES, buyer.state, Pool(), Pace(100))
    assert [each.tag for each in choice.open(0.0)] == [CHEAP, DEAR]
    for _ in range(2 * JUDGED):
        buyer.buy(CHEAP, verdict=Verdict.AGAIN)
    assert [each.tag for each in choice.open(REORDER - 0.1)] == [CHEAP, DEAR]
    assert [each.tag for each in choice.open(REORDER)] == [DEAR, CHEAP]
    choice.dropped = {DEAR}
    assert [each.tag for each in choice.open(REORDER)] == [CHEAP]
    assert choice.usable() == [ROUTES[0]]


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(1, 8000)), max_size=150))
def test_what_was_learned_is_sound(bought: list[tuple[bool, bool, int]]) -> None:
    """No endpoint is ever held to be better than its list price for answers at that price, nor ten times worse for few."""
    buyer = Buyer()
    for good, kept, tokens in bought:
        label = Label.COUNTED if good else Label.NEAR
        buyer.buy(CHEAP, label, Verdict.DONE if kept else Verdict.AGAIN, tokens=tokens)
    known = buyer.state.providers.get(CHEAP)
    factor = overpaid(known, cost_of(PRICES[CHEAP], PROMPT, ANSWER))
    assert factor >= 1.0 or abs(factor - 1.0) < 1e-6
    assert factor == 1.0 or len(bought) >= JUDGED
    assert known is None or 0 <= known.unjudged <= known.cost
