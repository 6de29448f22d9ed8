"""The EAP methods that a domain offers, and the TLS servers that they need."""

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Final

from sallyport.areas.authorities.authority import Authority
from sallyport.areas.domains.domain import Domain
from sallyport.areas.login.eap.tls_servers import CertificatesOfDomain, TlsServers
from sallyport.areas.login.eap.trusts import TrustingServers
from sallyport.areas.login.eap.verifiers import Station, Verifier
from sallyport.areas.login.login import Login
from sallyport.base.bounded import BoundedMap
from sallyport.certs.credentials import Credentials
from sallyport.radius.attributes import FRAMED_MTU, USER_NAME
from sallyport.radius.eap.methods import Terms, offers
from sallyport.radius.eap.model import Offers
from sallyport.radius.eap.packet import MIN_FRAGMENT_SIZE
from sallyport.radius.eap.server import FRAGMENT_SIZE, TlsServer
from sallyport.radius.eap.server_certificate import ServerCertificate

MAX_OFFERS: Final = 1024
"""Maximum number of cached lists of offered methods. Each combination of domain and Framed-MTU takes one entry."""
MAX_FRAGMENT_SIZE: Final = 1300
"""Maximum length in octets of an EAP packet to a NAS that sends Framed-MTU. With the headers of RADIUS, UDP and IP, the
datagram stays below 1400 octets, and most tunnels can carry it. A chain of two certificates with 2048-bit keys then
takes two packets."""


class OfferedMethods:
    """The EAP methods of all domains, with their TLS servers. credentials, certificates, authorities: as in
    `EapServer`."""

    def __init__(
        self,
        credentials: Callable[[], Credentials | None],
        certificates: CertificatesOfDomain,
        authorities: Callable[[int], Sequence[Authority]],
    ) -> None:
        self._authorities = authorities
        self._offers = BoundedMap[Terms, Offers](MAX_OFFERS)
        self._trusts = TrustingServers()
        self._servers = TlsServers(credentials, certificates, self._drop)

    def forget(self, certificates: Iterable[ServerCertificate]) -> None:
        """Drop the TLS servers and offers of server certificates that were replaced or removed. Pending conversations
        keep their certificate."""
        self._servers.forget(certificates)

    def _drop(self, servers: Container[TlsServer] | None) -> None:
        """Drop the offers and trust anchors of TLS servers that are no longer used. servers: None for all servers."""
        for terms in [each for each in self._offers if servers is None or each.server in servers]:
            self._offers.pop(terms)
        self._trusts.forget(servers)

    def is_prepared(self, login: Login, domain: Domain) -> bool:
        """Return whether a conversation can begin without `prepare`."""
        identity = login.arrival.request.first.get(USER_NAME, b"")
        if not self._servers.has(domain, identity):
            return False
        own = self._authorities(domain.id)
        server = self._servers.server(domain, identity) if own else None
        return server is None or self._trusts.has(server, own)

    async def prepare(self, login: Login, domain: Domain) -> None:
        """Make what a conversation needs: the TLS server with its certificate, and that for the authorities of the
        domain."""
        identity = login.arrival.request.first.get(USER_NAME, b"")
        if not self._servers.has(domain, identity):
            await self._servers.prepare(domain, identity)
        own = self._authorities(domain.id)
        server = self._servers.server(domain, identity) if own else None
        if server is not None:
            await self._trusts.prepare(server, own)

    def of(self, login: Login, domain: Domain, verifier: Verifier, scope: str, order: tuple[int, ...]) -> Offers:
        """Return the methods to offer to a client. verifier: checks the credentials. scope: see `Terms`. order: the
        EAP methods, the preferred one first."""
        server = self._servers.server(domain, login.arrival.request.first.get(USER_NAME, b""))
        own = () if isinstance(verifier, Station) else self._authorities(domain.id)
        terms = Terms(
            server,
            verifier.checkable,
            order,
            fragment_size=_fragment_size(login),
            scope=scope,
            owner=domain.tenant_id,
            has_own=bool(own),
            trusting=self._trusts.get(server, own) if own and server is not None else None,
        )
        found = self._offers.get(terms)
        if found is None:
            found = offers(terms)
            self._offers.put(terms, found, terms.owner)
        return found


def _fragment_size(login: Login) -> int:
    """Return the maximum length of an EAP packet in octets. It follows Framed-MTU (RFC 3579 section 2.4), up to
    `MAX_FRAGMENT_SIZE`."""
    mtu = login.arrival.request.integer(FRAMED_MTU)
    return max(MIN_FRAGMENT_SIZE, min(FRAGMENT_SIZE if mtu is None else mtu, MAX_FRAGMENT_SIZE))
