"""An exchange without its socket: a test passes datagrams to it, and reads the answers from a channel."""

import time
from collections.abc import AsyncIterator

import pytest
import trio
import trio.testing

from sallyport.areas.clients.client import Client
from sallyport.areas.login.listen.exchange import Exchange, RadiusService, Services, Source
from sallyport.areas.login.listen.pending import PendingSlots
from sallyport.areas.login.listen.senders import Senders
from sallyport.base.clock import SECOND
from sallyport.radius.packet import SharedSecret, decode_reply
from tests.areas import SECRET, Areas, areas, clock

__all__ = ["areas", "clock"]

NAS = ("192.0.2.1", 40000)
WINDOW_S = 15.0


class Wire:
    """Exchanges that use the same areas. The user ann has the password hello, and 192.0.2.1 is a RADIUS client."""

    def __init__(self, areas: Areas, nursery: trio.Nursery, *, limit: int = 200, reject_delay_s: float = 0) -> None:
        self.areas = areas
        self.nursery = nursery
        self.radius_metrics = areas.radius_metrics
        self.senders = Senders(max_senders=100)
        self.waiting = PendingSlots(limit)
        self.learned: list[tuple[str, str]] = []
        self.ready = True
        self._reject_delay_s = reject_delay_s
        self._begun = time.monotonic() - areas.clock() / SECOND
        self._out, self._in = trio.open_memory_channel[tuple[bytes, Source]](10_000)
        self.services = Services(
            find_client=areas.clients.find,
            domains=areas.domains,
            sightings=areas.devices.sightings,
            pipeline=areas.pipeline,
            eap=areas.login.eap,
            journal=areas.journal,
            senders=self.senders,
            slots=self.waiting,
            radius_metrics=self.radius_metrics,
            login_metrics=areas.login_metrics,
            learn=self._learn,
            ready=lambda: self.ready,
            clock=areas.clock,
            copied=areas.app.shadow.copies.receive,
        )
        self.auth = self.exchange(RadiusService.AUTHENTICATION, 0)
        self.acct = self.exchange(RadiusService.ACCOUNTING, 1)

    def exchange(self, kind: RadiusService, number: int) -> Exchange:
        """Return an exchange whose answers this object receives."""
        return Exchange(
            self.services,
            kind,
            number,
            lambda reply, to: self._out.send_nowait((reply, to)),
            self.nursery,
            duplicate_window_s=WINDOW_S,
            reject_delay_s=lambda: self._reject_delay_s,
        )

    def _learn(self, client: Client, what: str) -> None:
        self.learned.append((client.name, what))
        self.areas.clients.latches.latch(client, what)
        self.nursery.start_soon(self.areas.clients.latches.store)

    def put(
        self, *datagrams: bytes, source: Source = NAS, acct: bool = False, exchange: Exchange | None = None
    ) -> None:
        """Pass datagrams to the exchange as if they arrived in one wake-up."""
        exchange = exchange or (self.acct if acct else self.auth)
        at = self.areas.clock()
        exchange.receive([(datagram, source, at, self._begun + at / SECOND) for datagram in datagrams])
        self.areas.journal.flush()

    async def take(self) -> tuple[bytes, Source]:
        """Return the next answer and its destination."""
        with trio.fail_after(30):
            return await self._in.receive()

    async def ask(self, datagram: bytes, *, source: Source = NAS, secret: bytes = SECRET, acct: bool = False) -> int:
        """Send a request and verify its answer. Return the answer's code."""
        self.put(datagram, source=source, acct=acct)
        reply, to = await self.take()
        assert to == source
        return decode_reply(reply, datagram, SharedSecret(secret))[0]

    async def silence(self) -> None:
        """Wait until all work is done, and assert that no answer was sent."""
        with trio.fail_after(60):  # formatting the trace of one error takes seconds on a busy machine
            await self.areas.journal.drained()
            while self.nursery.child_tasks:
                await trio.sleep(0.001)
            await self.areas.journal.drained()
        with pytest.raises(trio.WouldBlock):
            self._in.receive_nowait()

    def dropped(self, reason: str, listener: str = "auth") -> float:
        """Return how many datagrams were dropped for a reason."""
        return self.areas.sample("sallyport_radius_discards_total", listener=listener, reason=reason)


@pytest.fixture
async def wire(areas: Areas) -> AsyncIterator[Wire]:
    """Yield exchanges that send a reject without a delay."""
    await areas.add_user(areas.domain, "ann", b"hello")
    await areas.client(name="nas")
    async with trio.open_nursery() as nursery:
        yield Wire(areas, nursery)
        nursery.cancel_scope.cancel()
