"""The TLS servers for EAP: one with the certificate of the installation, and one for each other server certificate."""

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import structlog
import trio

from sallyport.areas.domains.domain import Domain
from sallyport.areas.login.identity import split_realm
from sallyport.base.bounded import BoundedMap
from sallyport.base.errors import ConfigError, StartError
from sallyport.base.fair import FairLimiter
from sallyport.base.text import fold
from sallyport.certs.credentials import Credentials
from sallyport.certs.folder import read_certificates
from sallyport.radius.eap.server import ClientAuthorities, TlsConfiguration, TlsServer, new_resumptions
from sallyport.radius.eap.server_certificate import ServerCertificate
from sallyport.radius.packet import as_name

MAX_SERVERS: Final = 256
"""Maximum number of TLS servers in memory. A server takes up to 250 KiB. It takes 2 ms to create it again."""
CertificatesOfDomain = Callable[[int], Mapping[str, ServerCertificate] | None]
"""A function that returns the server certificates of a domain by case-folded realm, or None if the domain has none. The
key of that for the whole domain is empty."""

log = structlog.get_logger()


class TlsServers:
    """The TLS servers of all domains. A server is created when a conversation needs it. They share the authorities of
    client certificates and their revocation lists.

    credentials: a function that returns the files of the installation's server certificate. certificates: a function
    that returns the certificates of a domain. on_change: called with the servers that are no longer used, or with None
    if these are all servers.
    """

    def __init__(
        self,
        credentials: Callable[[], Credentials | None],
        certificates: CertificatesOfDomain,
        on_change: Callable[[Container[TlsServer] | None], None],
    ) -> None:
        self._credentials = credentials
        self._certificates = certificates
        self._on_change = on_change
        self._loaded = _Loaded()
        self._servers = BoundedMap[ServerCertificate, TlsServer | None](MAX_SERVERS)
        self._resumptions = new_resumptions()
        self._turns = FairLimiter[int](1)

    def has(self, domain: Domain, identity: bytes) -> bool:
        """Return whether `server` needs no time, because the server exists."""
        if self._credentials() is not self._loaded.files:
            return False
        certificate = self._certificate(domain, identity)
        return certificate is None or certificate in self._servers

    async def prepare(self, domain: Domain, identity: bytes) -> None:
        """Create the server for a conversation in a worker thread, if it does not exist. One server is created at a
        time, and the tenants take turns."""
        async with self._turns.slot(domain.tenant_id):
            files = self._credentials()
            if files is not self._loaded.files:
                self._adopt(await trio.to_thread.run_sync(self._read, files))
            certificate = self._certificate(domain, identity)
            if certificate is not None and certificate not in self._servers:
                loaded = self._loaded
                server = await trio.to_thread.run_sync(self._made, loaded, certificate)
                if loaded is self._loaded:
                    self._keep(domain, certificate, server)

    def server(self, domain: Domain, identity: bytes) -> TlsServer | None:
        """Return the TLS server for a conversation that begins, or None if there is no certificate. If a certificate
        cannot be used, return the server of the installation, with its previous certificate if necessary.

        domain: the domain that the realm of the outer identity selects, or else the default domain of the RADIUS
        client. identity: the outer identity. Pending conversations keep the server with which they began. Call
        `prepare` before, unless `has` is true. Otherwise, the server is created now.
        """
        files = self._credentials()
        if files is not self._loaded.files:
            self._adopt(self._read(files))
        certificate = self._certificate(domain, identity)
        if certificate is None:
            return self._loaded.server
        if certificate not in self._servers:
            server = self._made(self._loaded, certificate)
            self._keep(domain, certificate, server)
            return server
        server = self._servers.get(certificate)
        self._servers.renew(certificate, server)
        return server

    def forget(self, certificates: Iterable[ServerCertificate]) -> None:
        """Drop the servers of certificates that were replaced or removed, with their keys."""
        self._drop([self._servers.pop(each) for each in certificates])

    def _certificate(self, domain: Domain, identity: bytes) -> ServerCertificate | None:
        of_domain = self._certificates(domain.id)
        return None if of_domain is None else _chosen(of_domain, identity)

    def _adopt(self, loaded: "_Loaded") -> None:
        self._loaded = loaded
        self._servers.clear()
        self._on_change(None)

    def _keep(self, domain: Domain, certificate: ServerCertificate, server: TlsServer | None) -> None:
        """Keep a server, unless its certificate was replaced meanwhile."""
        if certificate in (self._certificates(domain.id) or {}).values():
            self._drop([self._servers.put(certificate, server, domain.tenant_id)])

    def _drop(self, servers: Iterable[TlsServer | None]) -> None:
        dropped = {each for each in servers if each is not None and each is not self._loaded.server}
        if dropped:
            self._on_change(dropped)

    def _read(self, files: Credentials | None) -> "_Loaded":
        """Read the files of the installation. If one cannot be used, the previous server stays in use."""
        if files is None:
            return _Loaded()
        authorities = None
        try:
            if files.ca_file is not None:
                authorities = ClientAuthorities(files.ca_file, files.crl_file)
            certificate = _certificate_in(files)
        except (ConfigError, StartError, OSError) as error:
            log.error("eap_certificate_unusable", error=str(error))  # noqa: TRY400
            return _Loaded(files, authorities, self._loaded.server)
        return _Loaded(files, authorities, self._made(_Loaded(files, authorities, self._loaded.server), certificate))

    def _made(self, loaded: "_Loaded", certificate: ServerCertificate) -> TlsServer | None:
        """Return a new TLS server, or that of the installation if the certificate cannot be used."""
        ca, crl = (None, None) if loaded.files is None else (loaded.files.ca_file, loaded.files.crl_file)
        try:
            configuration = TlsConfiguration(certificate, ca_file=ca, crl_file=crl)
            return TlsServer(configuration, self._resumptions, loaded.authorities)
        except (ConfigError, OSError) as error:
            log.error("eap_certificate_unusable", error=str(error))  # noqa: TRY400
            return loaded.server


def check_files(files: Credentials) -> None:
    """Check that a TLS server can use these files. Raises ConfigError."""
    try:
        authorities = None if files.ca_file is None else ClientAuthorities(files.ca_file, files.crl_file)
        configuration = TlsConfiguration(_certificate_in(files), ca_file=files.ca_file, crl_file=files.crl_file)
        TlsServer(configuration, new_resumptions(), authorities)
    except ConfigError:
        raise
    except (StartError, OSError) as error:
        raise ConfigError(str(error)) from None


def _certificate_in(files: Credentials) -> ServerCertificate:
    """Return the certificate in files, with the intermediate certificates among its authorities. Raises StartError."""
    certificate = ServerCertificate.read(files.certificate_file, files.key_file)
    return certificate if files.ca_file is None else certificate.completed(read_certificates(files.ca_file))


@dataclass(frozen=True, slots=True)
class _Loaded:
    """The present files of the installation. authorities: None if there are none, or if they cannot be read. server:
    the server with the certificate in the files, or the previous one if it cannot be used."""

    files: Credentials | None = None
    authorities: ClientAuthorities | None = None
    server: TlsServer | None = None


def _chosen(certificates: Mapping[str, ServerCertificate], identity: bytes) -> ServerCertificate | None:
    """Return the certificate for the realm of an outer identity, or else that for the whole domain, or None."""
    of_all = certificates.get("")
    if of_all is not None and len(certificates) == 1:
        return of_all
    return certificates.get(fold(split_realm(as_name(identity))[1]), of_all)
