"""A RadSec listener on a free port, with the areas behind it and its certificates."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, replace
from pathlib import Path
from socket import SOCK_STREAM

import trio

from sallyport.areas.login.listen.exchange import Exchange, RadiusService
from sallyport.areas.login.listen.radsec import LABEL, Limits, RadSec, decode_proven
from sallyport.certs.credentials import Certificates
from sallyport.certs.folder import CertificateFolder
from sallyport.settings.listening import bound
from sallyport.settings.values import Address
from tests.areas.login.listen.conftest import WINDOW_S, Wire
from tests.radsec_client import RadSecClient, client_context, connected

PROXY = "proxy.example.org"


@dataclass
class Secure:
    """A running listener.

    directory: the directory of the certificates. It has client certificates of the RADIUS client `proxy` and of the
    user ann.
    """

    wire: Wire
    radsec: RadSec
    auth: Exchange
    directory: CertificateFolder
    port: int

    @asynccontextmanager
    async def connected(
        self, name: str | None = PROXY, *, newest: bool = True, source: str = "127.0.0.1"
    ) -> AsyncIterator[RadSecClient]:
        """Yield a client with the certificate of this name. If `name` is None, the client has no certificate."""
        certificate = None if name is None else self.directory.client(name)
        context = client_context(self.directory.ca, certificate, newest=newest)
        async with connected(self.port, context, source=source) as client:
            yield client

    async def refused(self, name: str | None) -> bool:
        """Return whether the service closes the connection of a client.

        With TLS 1.3 the client notices this only after its own handshake.
        """
        try:
            async with self.connected(name) as client:
                return await client.ended()
        except (trio.BrokenResourceError, OSError):
            return True

    def dropped(self, reason: str) -> float:
        """Return how often packets or connections were refused for a reason."""
        return self.wire.dropped(reason, LABEL)

    @property
    def connections(self) -> float:
        """Return the number of connections."""
        return self.wire.areas.sample("sallyport_radsec_connections")

    async def has(self, connections: int) -> None:
        """Wait until there are exactly this many connections."""
        with trio.fail_after(20):
            while self.connections != connections:
                await trio.sleep(0.01)


@asynccontextmanager
async def running(wire: Wire, data_dir: Path, *, limits: Limits | None = None) -> AsyncIterator[Secure]:
    """Yield a running listener. The RADIUS client `proxy` is identified by the name in its certificate."""
    areas = wire.areas
    await areas.client("198.51.100.1/32", name="proxy", tls_name=PROXY)
    radsec = RadSec(
        Certificates(data_dir, look_s=0).server,
        lambda: areas.clients.table,
        areas.journal.flush,
        wire.radius_metrics,
        wire.senders,
        limits=limits,
        clock=areas.clock,
    )
    services = replace(wire.services, find_client=radsec.find_client, decode=decode_proven)
    auth, acct = [
        Exchange(
            services,
            kind,
            number,
            radsec.send,
            wire.nursery,
            duplicate_window_s=WINDOW_S,
            reject_delay_s=lambda: 0.0,
            label=LABEL,
        )
        for number, kind in enumerate(RadiusService, 2)
    ]
    with closing(bound(Address("127.0.0.1", 0), SOCK_STREAM)) as sock:
        port = sock.getsockname()[1]
        async with trio.open_nursery() as nursery:
            await nursery.start(radsec.run, [sock], auth, acct)
            yield Secure(wire, radsec, auth, CertificateFolder(data_dir), port)
            nursery.cancel_scope.cancel()
