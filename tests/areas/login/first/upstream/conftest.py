"""A NAS, and a domain that passes its logins on to two home servers."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import pytest
import trio

from sallyport.areas.domains.domain import FirstFactor
from sallyport.areas.login.login import Login, Reason
from sallyport.areas.policy.attempt import Arrival
from sallyport.radius.duplicates import Entry
from sallyport.radius.packet import ACCESS_ACCEPT, SharedSecret, decode_reply, encode_reply
from tests.areas import SECRET, areas, clock
from tests.areas.login.first.upstream.home_server import SECRET as HOME_SECRET
from tests.areas.login.first.upstream.home_server import HomeServer, home_server
from tests.areas.login.listen.conftest import NAS, Wire, wire
from tests.areas.login.listen.second import events
from tests.packets import opened

__all__ = ["areas", "clock", "wire"]


async def until(holds: Callable[[], bool]) -> None:
    """Run all tasks until the condition is true. Fail after ten seconds."""
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        await trio.lowlevel.checkpoint()


class Upstream:
    """The service and the home servers.

    servers: the home servers in the configured order. The first one is asked first.
    """

    def __init__(self, wire: Wire, servers: tuple[HomeServer, ...]) -> None:
        self.wire = wire
        self.areas = wire.areas
        self.servers = servers
        self.first, self.second = servers

    async def configure(self, *servers: HomeServer, **fields: object) -> None:
        """Pass the domain's logins on to these servers."""
        domain = self.areas.domains.table.by_id[self.areas.domain]
        values = {"servers": [server.fields for server in servers or self.servers], **fields}
        await self.areas.first_settings.set(domain, FirstFactor.RADIUS, {"radius": values})

    async def ask(self, datagram: bytes) -> tuple[int, bytes]:
        """Send a request.

        Return the code of its verified answer, and the attributes that follow the Message-Authenticator.
        """
        self.wire.put(datagram)
        return await self.answer(datagram)

    async def answer(self, datagram: bytes) -> tuple[int, bytes]:
        """Return the next answer, after verifying it for this request."""
        reply, to = await self.wire.take()
        assert to == NAS
        return decode_reply(reply, datagram, SharedSecret(SECRET))[0], reply[38:]

    def login(self, datagram: bytes) -> Login:
        """Return a login that did not pass through the listener."""
        request = opened(datagram)
        client = self.areas.clients.table.find(NAS[0])
        assert client is not None
        known = Entry((NAS, request.identifier), request.authenticator)
        return Login(Arrival(request, client, NAS, self.areas.clock()), self.wire.auth, known)

    def accepts(self, index: int) -> bytes:
        """Return the first server's Accept for a request that it has received."""
        return encode_reply(ACCESS_ACCEPT, self.first.received[index], HOME_SECRET)

    async def reasons(self) -> list[Reason]:
        """Return the reason of each event, oldest first."""
        return [Reason(event.reason) for event in await events(self.areas)]

    def counted(self, name: str, **labels: str) -> float:
        """Return a metric of this domain."""
        return self.areas.sample(f"sallyport_upstream_{name}", domain=str(self.areas.domain), **labels)


@pytest.fixture
async def upstream(wire: Wire) -> AsyncIterator[Upstream]:
    """Yield a domain with the first factor `radius`."""
    async with AsyncExitStack() as stack:
        servers = (await stack.enter_async_context(home_server()), await stack.enter_async_context(home_server()))
        upstream = Upstream(wire, servers)
        await upstream.configure()
        yield upstream
