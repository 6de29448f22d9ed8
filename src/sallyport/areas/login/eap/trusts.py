"""The servers of EAP-TLS for domains with authorities of their own.

Such a server has TLS contexts for the set of the anchors of a domain. Domains of a tenant with the same authorities
share it. A worker thread makes a server when the first conversation needs it. The server is kept in a cache, in which
each tenant has a fair share. Domains without authorities of their own cost nothing here.
"""

from collections.abc import Container, Sequence
from functools import partial
from typing import Final

import structlog
import trio
from cryptography import x509

from sallyport.areas.authorities.authority import Authority
from sallyport.base.bounded import BoundedMap
from sallyport.base.errors import ConfigError, StartError
from sallyport.base.fair import FairLimiter
from sallyport.certs.folder import read_certificates, read_lists
from sallyport.radius.eap.server import TlsServer, TrustingServer
from sallyport.radius.eap.trust import Trust, intermediates_of, key_of, revoked_by

MAX_SERVERS: Final = 256
"""Maximum number of servers in memory. A server takes about 250 KiB, and up to 4 MiB with the most anchors."""
Key = tuple[TlsServer, int, frozenset[str]]
"""The server with the certificate, the tenant, and the bundles of the authorities."""

log = structlog.get_logger()


class TrustingServers:
    """The servers of EAP-TLS with the anchors of domains."""

    def __init__(self) -> None:
        self._servers = BoundedMap[Key, TrustingServer | None](MAX_SERVERS)
        self._pending: dict[Key, trio.Event] = {}
        self._turns = FairLimiter[int](1)

    def has(self, server: TlsServer, authorities: Sequence[Authority]) -> bool:
        """Return whether the server for the authorities of a domain can be used without `prepare`."""
        return _key(server, authorities) in self._servers

    def get(self, server: TlsServer, authorities: Sequence[Authority]) -> TrustingServer | None:
        """Return the server for the authorities of a domain. Return None if it was not prepared or cannot be made; then
        EAP-TLS is not offered."""
        return self._servers.get(_key(server, authorities))

    async def prepare(self, server: TlsServer, authorities: Sequence[Authority]) -> None:
        """Make the server for the authorities of a domain. Logins of a tenant do not delay those of others: one server
        is made at a time, and the tenants take turns. Calls for the same server share the work."""
        key = _key(server, authorities)
        while key in self._pending:
            await self._pending[key].wait()
        if key in self._servers:
            return
        made = self._pending[key] = trio.Event()
        try:
            async with self._turns.slot(key[1]):
                found = await trio.to_thread.run_sync(partial(_made, server, authorities))
            self._servers.put(key, found, key[1])
        finally:
            del self._pending[key]
            made.set()

    def forget(self, servers: Container[TlsServer] | None) -> None:
        """Drop the trust anchors of TLS servers that are no longer used, because a certificate or a list of the
        installation has changed. servers: None for all servers."""
        for key in [each for each in self._servers if servers is None or each[0] in servers]:
            self._servers.pop(key)


def _key(server: TlsServer, authorities: Sequence[Authority]) -> Key:
    return server, authorities[0].tenant_id, frozenset(each.certificates for each in authorities)


def _made(server: TlsServer, authorities: Sequence[Authority]) -> TrustingServer | None:
    try:
        bundles = [x509.load_pem_x509_certificates(each.certificates.encode()) for each in authorities]
        anchors = [anchor for each in bundles for anchor in each]
        intermediates = frozenset[x509.Certificate]().union(*map(intermediates_of, bundles))
        return TrustingServer(server, Trust(anchors, _revoked(server, anchors), intermediates))
    except (ConfigError, StartError, ValueError) as error:
        names = [each.name for each in authorities]
        log.error("eap_authorities_unusable", authorities=names, error=str(error))  # noqa: TRY400
        return None


def _revoked(server: TlsServer, anchors: Sequence[x509.Certificate]) -> frozenset[tuple[str, int]]:
    """Return the certificates that the lists of the installation have revoked, if a domain trusts an authority of the
    installation. Raises StartError if a file cannot be read."""
    ca, crl = server.configuration.ca_file, server.configuration.crl_file
    if ca is None:
        return frozenset()
    keys = {key_of(each) for each in anchors}
    shared = [each for each in read_certificates(ca) if key_of(each) in keys]
    if not shared:
        return frozenset()
    return revoked_by([each for file in (ca, crl) if file is not None for each in read_lists(file)], shared)
