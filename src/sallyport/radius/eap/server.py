"""TLS of the server: its certificate, its authorities, and the sessions that can be resumed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from OpenSSL import SSL, crypto

from sallyport.base.errors import ConfigError
from sallyport.radius.eap.certificate import UserNames
from sallyport.radius.eap.packet import PEAP, TLS, TTLS
from sallyport.radius.eap.resumption import Resumptions
from sallyport.radius.eap.tunnel import Contexts, Tunnel, watch_certificate, watch_state

FRAGMENT_SIZE: Final = 1020
"""Octets of an EAP packet for a NAS that sends no Framed-MTU."""
RESUME_S: Final = 3600
# RFC 9325 section 4.2: for TLS 1.2 only forward secrecy with authenticated encryption; last CBC, for old supplicants
_CIPHERS: Final = b"ECDHE+AESGCM:ECDHE+CHACHA20:DHE+AESGCM:ECDHE+AES:!aNULL:!MD5:!DSS"
_CRL: Final = b"-----BEGIN X509 CRL-----"
_CLIENT_CERTIFICATE: Final = SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT


@dataclass(frozen=True, slots=True)
class TlsConfiguration:
    """The settings of TLS; files are in PEM.

    certificate_file: the server's certificate, and those between it and the root. ca_file: the authorities of client
    certificates, and their revocation lists, if any; None: no EAP-TLS. crl_file: a separate file of revocation lists.
    If there is any list, each authority needs one. minimum, maximum: versions of TLS, as pyOpenSSL names them.
    fragment_size: octets of an EAP packet. resume_s: seconds in which a login can be resumed; 0: never. user_names: the
    fields of a certificate that name its user.
    """

    certificate_file: Path
    key_file: Path
    ca_file: Path | None = None
    crl_file: Path | None = None
    minimum: int = SSL.TLS1_2_VERSION
    maximum: int = SSL.TLS1_3_VERSION
    fragment_size: int = FRAGMENT_SIZE
    resume_s: int = RESUME_S
    user_names: UserNames = field(default_factory=UserNames)


class TlsServer:
    """The maker of TLS connections. It reads the files once: after a change of a file, make another `TlsServer`.
    ConfigError: a file cannot be used.

    Each method has its own contexts, so that only the method of the first login can resume a session.
    """

    def __init__(self, configuration: TlsConfiguration) -> None:
        self.configuration = configuration
        kinds = (TTLS, PEAP) if configuration.ca_file is None else (TTLS, PEAP, TLS)
        self._contexts: Mapping[int, Contexts] = {kind: _contexts(configuration, kind) for kind in kinds}
        self.resumptions: Mapping[int, Resumptions] = {kind: Resumptions(configuration.resume_s) for kind in kinds}

    @property
    def takes_certificates(self) -> bool:
        """Return whether clients can log in with a certificate."""
        return TLS in self._contexts

    def tunnel(self, kind: int, scope: str) -> Tunnel:
        """Return a new connection for a method: TLS, TTLS or PEAP. scope: the scope in which sessions are resumed."""
        return Tunnel(self._contexts[kind], scope)


def _contexts(configuration: TlsConfiguration, kind: int) -> Contexts:
    watched = _context(configuration, kind, configuration.resume_s)
    watched.set_info_callback(watch_state)
    plain = watched
    if configuration.minimum < SSL.TLS1_3_VERSION:
        plain = _context(configuration, kind, configuration.resume_s)
        plain.set_max_proto_version(min(configuration.maximum, SSL.TLS1_2_VERSION))
    return Contexts(plain, watched, _context(configuration, kind, 0))


def _context(configuration: TlsConfiguration, kind: int, resume_s: int) -> SSL.Context:
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
    _load(context, configuration)
    if kind == TLS:
        context.set_verify(_CLIENT_CERTIFICATE, watch_certificate)
        _load_authorities(context, configuration)
    return context


def _load(context: SSL.Context, configuration: TlsConfiguration) -> None:
    try:
        context.use_certificate_chain_file(str(configuration.certificate_file))
    except SSL.Error:
        raise ConfigError(f"{configuration.certificate_file}: no certificate in PEM can be read from it") from None
    try:
        context.use_privatekey_file(str(configuration.key_file))
        context.check_privatekey()
    except SSL.Error:
        raise ConfigError(f"{configuration.key_file}: no key of the server's certificate") from None


def _load_authorities(context: SSL.Context, configuration: TlsConfiguration) -> None:
    authorities = str(configuration.ca_file)
    try:
        context.load_verify_locations(authorities)
        context.load_client_ca(authorities.encode())
    except SSL.Error:
        raise ConfigError(f"{authorities}: no certificate in PEM can be read from it") from None
    store = context.get_cert_store()
    assert store is not None  # noqa: S101  a context has one
    if configuration.crl_file is not None:
        try:
            store.load_locations(str(configuration.crl_file))
        except crypto.Error:
            raise ConfigError(f"{configuration.crl_file}: no revocation list in PEM can be read from it") from None
    if configuration.crl_file is not None or _CRL in Path(authorities).read_bytes():
        store.set_flags(crypto.X509StoreFlags.CRL_CHECK)
