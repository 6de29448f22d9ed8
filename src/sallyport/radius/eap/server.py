"""The TLS server for EAP: its certificate, the authorities of client certificates, and session resumption."""

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
"""Maximum length of an EAP packet in octets, if the NAS sends no Framed-MTU."""
RESUME_S: Final = 3600
# RFC 9325 section 4.2: cipher suites of TLS 1.2 with forward secrecy; CBC is last, for old supplicants
_CIPHERS: Final = b"ECDHE+AESGCM:ECDHE+CHACHA20:DHE+AESGCM:ECDHE+AES:!aNULL:!MD5:!DSS"
_CRL: Final = b"-----BEGIN X509 CRL-----"
_CLIENT_CERTIFICATE: Final = SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT


@dataclass(frozen=True, slots=True)
class TlsConfiguration:
    """The settings of the TLS server. All files are in PEM.

    certificate_file: the server's certificate and the intermediate certificates. ca_file: the authorities of client
    certificates, and optionally their revocation lists; None if EAP-TLS is not offered. crl_file: a separate file of
    revocation lists. If there is any revocation list, each authority needs one. minimum, maximum: TLS versions, as
    constants of pyOpenSSL. fragment_size: the maximum length of an EAP packet in octets. resume_s: the time in seconds
    after a full login in which its sessions can be resumed; 0 for no resumption. user_names: the fields of a
    certificate that may contain the user's name.
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
    """The TLS server for EAP. It creates the TLS connections. It reads the files only once, so create another
    `TlsServer` after a file has changed. Raises ConfigError if a file cannot be used.

    Each method has its own TLS contexts, so that a session can be resumed only by the method that established it.
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
        """Return a new connection for a method. kind: TLS, TTLS or PEAP. scope: the scope in which the sessions can be
        resumed."""
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
        raise ConfigError(
            f"{configuration.certificate_file}: the file contains no readable certificate in PEM"
        ) from None
    try:
        context.use_privatekey_file(str(configuration.key_file))
        context.check_privatekey()
    except SSL.Error:
        raise ConfigError(
            f"{configuration.key_file}: the file does not contain the key of the server's certificate"
        ) from None


def _load_authorities(context: SSL.Context, configuration: TlsConfiguration) -> None:
    authorities = str(configuration.ca_file)
    try:
        context.load_verify_locations(authorities)
        context.load_client_ca(authorities.encode())
    except SSL.Error:
        raise ConfigError(f"{authorities}: the file contains no readable certificate in PEM") from None
    store = context.get_cert_store()
    assert store is not None  # noqa: S101  a context has one
    if configuration.crl_file is not None:
        try:
            store.load_locations(str(configuration.crl_file))
        except crypto.Error:
            raise ConfigError(
                f"{configuration.crl_file}: the file contains no readable revocation list in PEM"
            ) from None
    if configuration.crl_file is not None or _CRL in Path(authorities).read_bytes():
        store.set_flags(crypto.X509StoreFlags.CRL_CHECK)
