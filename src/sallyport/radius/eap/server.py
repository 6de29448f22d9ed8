"""The TLS server for EAP: its certificate, the authorities of client certificates, and session resumption."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from OpenSSL import SSL, crypto
from OpenSSL._util import lib as openssl

from sallyport.base.errors import ConfigError
from sallyport.radius.eap.certificate import UserNames
from sallyport.radius.eap.packet import PEAP, TLS, TTLS
from sallyport.radius.eap.resumption import Resumptions
from sallyport.radius.eap.server_certificate import ServerCertificate
from sallyport.radius.eap.trust import MAX_DEPTH, Trust
from sallyport.radius.eap.tunnel import Contexts, Tunnel, openssl_reason, watch_certificate, watch_state

FRAGMENT_SIZE: Final = 1020
"""Maximum length of an EAP packet in octets, if the NAS sends no Framed-MTU."""
RESUME_S: Final = 3600
# RFC 9325 section 4.2: cipher suites of TLS 1.2 with forward secrecy; CBC is last, for old supplicants
_CIPHERS: Final = b"ECDHE+AESGCM:ECDHE+CHACHA20:DHE+AESGCM:ECDHE+AES:!aNULL:!MD5:!DSS"
_CRL: Final = b"-----BEGIN X509 CRL-----"
_MAX_NAMES_SIZE: Final = 2048
"""Maximum length in octets of the names of authorities that are sent to clients."""
_CLIENT_CERTIFICATE: Final = SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT
_NO_AUTO_CHAIN: Final = 0x8
"""SSL_MODE_NO_AUTO_CHAIN of OpenSSL, which pyOpenSSL does not name. Without it, OpenSSL completes a chain from the
authorities of client certificates, and sends their root too."""


@dataclass(frozen=True, slots=True)
class TlsConfiguration:
    """The settings of the TLS server. All files are in PEM.

    certificate: the server's certificate with its chain and key. ca_file: the authorities of client certificates, and
    optionally their revocation lists; None if EAP-TLS is not offered. crl_file: a separate file of revocation lists. If
    there is any revocation list, each authority needs one. minimum, maximum: TLS versions, as constants of pyOpenSSL.
    fragment_size: the maximum length of an EAP packet in octets. resume_s: the time in seconds after a full login in
    which its sessions can be resumed; 0 for no resumption. user_names: the fields of a certificate that may contain the
    user's name.
    """

    certificate: ServerCertificate
    ca_file: Path | None = None
    crl_file: Path | None = None
    minimum: int = SSL.TLS1_2_VERSION
    maximum: int = SSL.TLS1_3_VERSION
    fragment_size: int = FRAGMENT_SIZE
    resume_s: int = RESUME_S
    user_names: UserNames = field(default_factory=UserNames)


def new_resumptions(resume_s: float = RESUME_S) -> Mapping[int, Resumptions]:
    """Return an empty table of TLS sessions for each method. resume_s: as in `TlsConfiguration`."""
    return {kind: Resumptions(resume_s) for kind in (TTLS, PEAP, TLS)}


class ClientAuthorities:
    """The authorities of client certificates and their revocation lists, read once. Several servers may share them: a
    list with 100,000 entries takes 20 MiB, and 50 ms to read. Raises ConfigError if a file cannot be used.

    Create it in a worker thread. ca_file, crl_file: see `TlsConfiguration`.
    """

    def __init__(self, ca_file: Path, crl_file: Path | None) -> None:
        self._ca_file = ca_file
        self._store = crypto.X509Store()
        try:
            self._store.load_locations(str(ca_file))
        except crypto.Error:
            raise ConfigError(f"{ca_file}: the file contains no readable certificate in PEM") from None
        if crl_file is not None:
            try:
                self._store.load_locations(str(crl_file))
            except crypto.Error:
                raise ConfigError(f"{crl_file}: the file contains no readable revocation list in PEM") from None
        if crl_file is not None or _CRL in ca_file.read_bytes():
            self._store.set_flags(crypto.X509StoreFlags.CRL_CHECK)

    def use_in(self, context: SSL.Context) -> None:
        """Make a context trust the authorities, and name them to clients. Raises ConfigError.

        pyOpenSSL cannot share a store, so this calls OpenSSL. `SSL_CTX_set_cert_store` takes over the reference.
        """
        openssl.X509_STORE_up_ref(self._store._store)
        openssl.SSL_CTX_set_cert_store(context._context, self._store._store)
        try:
            context.load_client_ca(str(self._ca_file).encode())
        except SSL.Error:
            raise ConfigError(f"{self._ca_file}: the file contains no readable certificate in PEM") from None


class TlsServer:
    """The TLS server for EAP. It creates the TLS connections. It reads the files only once, so create another
    `TlsServer` after a file has changed. Raises ConfigError if a file cannot be used.

    Each method has its own TLS contexts, so that a session can be resumed only by the method that established it. The
    contexts of a method take 1 ms. Those for client certificates are created at once, or else those of PEAP, so that
    unusable files are noticed. Those of other methods are created for the first conversation that needs them.

    resumptions: the tables of TLS sessions by method, which several servers may share. A session can be resumed only by
    the server that established it, because only this server can decrypt the session's ticket. authorities: the content
    of `ca_file` and `crl_file`, which several servers may share; None to read the files.
    """

    def __init__(
        self,
        configuration: TlsConfiguration,
        resumptions: Mapping[int, Resumptions] | None = None,
        authorities: ClientAuthorities | None = None,
    ) -> None:
        self.configuration = configuration
        self.resumptions = resumptions or new_resumptions(configuration.resume_s)
        if authorities is None and configuration.ca_file is not None:
            authorities = ClientAuthorities(configuration.ca_file, configuration.crl_file)
        self._authorities = authorities
        first = TLS if self.takes_certificates else PEAP
        self._contexts: dict[int, Contexts] = {first: _contexts(configuration, first, authorities)}

    @property
    def takes_certificates(self) -> bool:
        """Return whether clients can log in with a certificate."""
        return self.configuration.ca_file is not None

    def tunnel(self, kind: int, scope: str) -> Tunnel:
        """Return a new connection for a method. kind: TLS, TTLS or PEAP. scope: the scope in which the sessions can be
        resumed."""
        contexts = self._contexts.get(kind)
        if contexts is None:
            contexts = self._contexts[kind] = _contexts(self.configuration, kind, self._authorities)
        return Tunnel(contexts, scope)


class TrustingServer:
    """The TLS server for EAP-TLS with the trust anchors of some domains, instead of those of the installation.

    It has TLS contexts of its own. So a session can be resumed only with the anchors with which it was established.
    Create it in a worker thread: that takes about a millisecond, and more with many anchors. Raises ConfigError if the
    certificate of the server cannot be used.
    """

    def __init__(self, server: TlsServer, trust: Trust) -> None:
        self.trust = trust
        self.resumptions = server.resumptions[TLS]
        self._contexts = _contexts(server.configuration, TLS, trust)

    def tunnel(self, scope: str) -> Tunnel:
        """Return a new connection. scope: the scope in which the sessions can be resumed."""
        return Tunnel(self._contexts, scope)


def _contexts(configuration: TlsConfiguration, kind: int, trust: ClientAuthorities | Trust | None) -> Contexts:
    watched = _context(configuration, kind, configuration.resume_s, trust)
    watched.set_info_callback(watch_state)
    plain = watched
    if configuration.minimum < SSL.TLS1_3_VERSION:
        plain = _context(configuration, kind, configuration.resume_s, trust)
        plain.set_max_proto_version(min(configuration.maximum, SSL.TLS1_2_VERSION))
    return Contexts(plain, watched, _context(configuration, kind, 0, trust))


def _context(
    configuration: TlsConfiguration, kind: int, resume_s: int, trust: ClientAuthorities | Trust | None
) -> SSL.Context:
    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    context.set_min_proto_version(configuration.minimum)
    context.set_max_proto_version(configuration.maximum)
    context.set_cipher_list(_CIPHERS)
    context.set_options(SSL.OP_NO_COMPRESSION | SSL.OP_NO_RENEGOTIATION | SSL.OP_CIPHER_SERVER_PREFERENCE)
    context.set_session_id(b"sallyport-%d" % kind)
    if resume_s > 0:
        context.set_session_cache_mode(SSL.SESS_CACHE_SERVER)
        context.set_timeout(resume_s)
    else:
        context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
        context.set_options(SSL.OP_NO_TICKET)
    _load(context, configuration.certificate)
    if kind == TLS:
        context.set_verify(_CLIENT_CERTIFICATE, watch_certificate)
        if isinstance(trust, ClientAuthorities):
            trust.use_in(context)
        elif trust is not None:
            _trust(context, trust)
    return context


def _trust(context: SSL.Context, trust: Trust) -> None:
    """Trust the anchors, also those that are not self-signed, and name all certificates to clients.

    A client chooses its certificate by these names. Many names would need more EAP packets, so they are then left out,
    and the client chooses by itself (RFC 5246 section 7.4.4).
    """
    context.set_verify_depth(MAX_DEPTH)
    kept = os.memfd_create("anchors", os.MFD_CLOEXEC)  # OpenSSL reads the mark of trust only from a file
    try:
        with open(kept, "wb", closefd=False) as file:
            file.write(trust.pem())
        context.load_verify_locations(f"/proc/self/fd/{kept}")
    except SSL.Error as error:
        raise ConfigError(f"TLS cannot use the authorities of a domain: {openssl_reason(error)}") from None
    finally:
        os.close(kept)
    names = dict.fromkeys(each.subject.public_bytes() for each in trust.anchors)
    if sum(map(len, names)) <= _MAX_NAMES_SIZE:
        for each in trust.anchors:
            context.add_client_ca(each)


def _load(context: SSL.Context, certificate: ServerCertificate) -> None:
    context.set_mode(_NO_AUTO_CHAIN)
    own, *chain = certificate.chain
    try:
        context.use_certificate(own)
        for each in chain:
            context.add_extra_chain_cert(each)
        context.use_privatekey(certificate.key)
        context.check_privatekey()
    except SSL.Error as error:
        raise ConfigError(f"TLS cannot use the server's certificate: {openssl_reason(error)}") from None
