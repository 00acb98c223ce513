"""One worker of a run over many machines: its engine runs in a thread, its desk takes orders from any other."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

import msgspec
from pydantic import SecretStr

from eyas.config import RunConfig
from eyas.engine.desk import Desk
from eyas.engine.grants import Crew
from eyas.engine.inputs import Offer, list_endpoints, load_tokenizer
from eyas.engine.lead import NOTHING, serve, worker_config
from eyas.engine.orders import Orders, Report
from eyas.engine.remote import how_many
from eyas.engine.session import Parts
from eyas.engine.sessions import proven
from eyas.engine.target import backend_of
from eyas.machine import run_loop
from eyas.transport import HttpTransport

_orders = msgspec.msgpack.Decoder(Orders).decode
_report = msgspec.msgpack.Encoder().encode


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a worker begins with: the run as RUN.toml has it, the key, who may answer, its number, and how many there are."""

    config: RunConfig
    key: SecretStr
    offer: Offer
    number: int
    crew: Crew


class Worker:
    """Runs one worker; ends when the coordinator says that nothing more comes."""

    def __init__(self, assignment: Assignment, node: str) -> None:
        """Begin; `node` is this machine's address."""
        config = worker_config(assignment.config.at_node(node), assignment.number, assignment.crew)
        self._assignment = replace(assignment, config=config)
        self.desk = Desk(part=1 / assignment.crew.workers)
        self._thread = threading.Thread(target=self._run, name=f"eyas-worker-{assignment.number}", daemon=True)
        self._thread.start()

    def exchange(self, orders: bytes) -> bytes:
        """Take orders and give a report, both as msgpack; waits half a second at most."""
        return _report(self.desk.exchange(_orders(orders)))

    def _run(self) -> None:
        try:
            run_loop(self._serve())
        except BaseException as error:  # noqa: BLE001  # whatever it is: the coordinator must hear of it
            self.desk.failed(error)

    async def _serve(self) -> None:
        config, tokenizer = self._assignment.config, load_tokenizer(self._assignment.config)
        backend, offer = backend_of(config, self._assignment.key), self._assignment.offer
        if not config.target.bills:
            async with HttpTransport() as transport:
                offer = await list_endpoints(config, backend, transport)
                backend = await proven(config, backend, tokenizer, transport, offer)
        await serve(Parts(config, backend, tokenizer, NOTHING, offer), self.desk, how_many(config))


def report_of(raw: bytes) -> Report:
    """A report as a worker gave it."""
    return msgspec.msgpack.decode(raw, type=Report)


def orders_as(orders: Orders) -> bytes:
    """Orders as a worker takes them."""
    return msgspec.msgpack.encode(orders)
