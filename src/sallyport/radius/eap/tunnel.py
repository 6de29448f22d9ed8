"""The server side of TLS with pyOpenSSL, without a socket. A tunnel gets the client's octets, and returns octets for
the client."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from cryptography import x509
from OpenSSL import SSL, crypto

from sallyport.base.errors import PacketError
from sallyport.radius.eap.resumption import digest

_READ: Final = 16_384
"""Maximum number of octets in a record (RFC 8446 section 5.1), so that each call reads a whole record."""
_RECORD_HEADER: Final = 5
_MAX_CLEAR_SIZE: Final = 65_536
_HELLO_READ: Final = b"SSLv3/TLS read client hello"
_FINISHED_WRITTEN: Final = b"SSLv3/TLS write finished"
_TICKET_WRITTEN: Final = b"SSLv3/TLS write session ticket"
_SUPPORTED_VERSIONS: Final = b"\x00\x2b"  # RFC 8446 section 4.2.1
_SESSION_ID: Final = 43
"""Offset of the session ID in a ClientHello, after the record header, the handshake header, the version and the
random."""

# pyOpenSSL has no public call for X509_verify_cert_error_string; these are the errors that admins encounter.
_WHY_UNVERIFIED: Final = {
    2: "its issuer is unknown",
    3: "there is no revocation list of its issuer",
    7: "its signature is wrong",
    8: "the revocation list is not signed by its issuer",
    9: "it is not valid yet",
    10: "it has expired",
    11: "the revocation list is not valid yet: is the clock right?",
    12: "the revocation list has expired",
    18: "it is self-signed",
    19: "its authority is not trusted",
    20: "its issuer is unknown",
    21: "its issuer is unknown",
    23: "it is revoked",
    25: "the path length of its authority is exceeded",
    26: "it may not be used by clients (extended key usage)",
    34: "it has an unknown critical extension",
    36: "the revocation list has an unknown critical extension",
    44: "the revocation list is for other certificates",
    47: "the name constraints of its authority do not permit its name",
    48: "the name constraints of its authority exclude its name",
    66: "its key is too short",
    67: "its authority's key is too short",
    68: "it is signed with a weak hash",
}


@dataclass(frozen=True, slots=True)
class Contexts:
    """The TLS contexts of one method. All contexts except `plain` support all configured TLS versions.

    plain: a context without TLS 1.3 and without the callback `watch_state`. This callback takes a quarter of the time
    of a resumed handshake, and TLS 1.2 does not need it. watched: a context with the callback `watch_state`. forgetful:
    a context that resumes no sessions. If client certificates are verified, each context has the callback
    `watch_certificate`. The callbacks are set once for each context, because setting them for each connection would
    take more time.
    """

    plain: SSL.Context
    watched: SSL.Context
    forgetful: SSL.Context


class _Watch:
    """What the callbacks have recorded about a handshake.

    sessions: the digests of its sessions, in order. resumed: the digest of the session that the ClientHello resumes;
    None for no session. scope: the scope of the digests. verified: whether OpenSSL has checked a client certificate.
    refused: why the client certificate is not valid; empty if it is valid.
    """

    __slots__ = ("refused", "resumed", "scope", "sessions", "verified")

    def __init__(self, scope: str) -> None:
        self.scope = scope
        self.sessions: list[bytes] = []
        self.resumed: bytes | None = None
        self.verified = False
        self.refused = ""

    def note(self, connection: SSL.Connection) -> bytes | None:
        """Record and return the digest of the current session. Return None if there is no session yet."""
        try:
            secret = connection.master_key()
        except SSL.Error:
            return None
        if not secret:
            return None
        session = digest(secret, self.scope)
        if session not in self.sessions:
            self.sessions.append(session)
        return session


def watch_state(connection: SSL.Connection, where: int, _value: int) -> None:
    """Record the sessions of a handshake. This is OpenSSL's callback for changes of its state.

    When OpenSSL has read the ClientHello, the callback records the session to resume. In TLS 1.3, each ticket that
    OpenSSL sends is a session with its own secret, so the callback records each of these sessions.
    """
    if where != SSL.SSL_CB_ACCEPT_LOOP:
        return
    state = connection.get_state_string()
    if state == _TICKET_WRITTEN:
        _watch_of(connection).note(connection)
    elif state == _HELLO_READ:
        watch = _watch_of(connection)
        watch.resumed = watch.note(connection)


def watch_certificate(connection: SSL.Connection, _of: crypto.X509, error: int, _depth: int, good: int) -> bool:
    """Record and return OpenSSL's verdict on one certificate of the client's chain. This is OpenSSL's verify
    callback."""
    watch = _watch_of(connection)
    watch.verified = True
    if not good and not watch.refused:
        watch.refused = _WHY_UNVERIFIED.get(error, f"error {error}")
    return bool(good)


def openssl_reason(error: SSL.Error) -> str:
    """Return the last reason of OpenSSL in an error, such as `ee key too small`."""
    stack = error.args[0] if error.args and isinstance(error.args[0], list) else []
    reasons = [str(each[-1]) for each in stack if isinstance(each, tuple) and each and each[-1]]
    return reasons[-1] if reasons else type(error).__name__


def _watch_of(connection: SSL.Connection) -> _Watch:
    watch = connection.get_app_data()
    assert isinstance(watch, _Watch)  # noqa: S101  each tunnel has set it
    return watch


class Tunnel:
    """The server side of one TLS connection, from the ClientHello on. scope: the scope in which its sessions can be
    resumed (see `resumption.digest`)."""

    def __init__(self, contexts: Contexts, scope: str) -> None:
        self._contexts = contexts
        self._scope = scope
        self._hello = b""
        self._watch: _Watch
        self._connection: SSL.Connection
        self._clear = b""
        self.established = False
        self.trouble = ""
        """The error that ended the connection; empty if there was none."""

    def receive(self, octets: bytes) -> None:
        """Process a message of the client. An error is not raised, but stored in `trouble`; `take` may then return an
        alert for the client."""
        if self._hello:
            self._hear(octets)
        else:
            self._hello = octets
            self._begin(self._contexts.watched if _may_speak_tls13(octets) else self._contexts.plain)

    def begin_anew(self) -> None:
        """Process the ClientHello again, in a context that resumes no session. A full handshake follows. The caller
        must not have sent any octets of the first attempt to the client."""
        self._begin(self._contexts.forgetful)

    def _begin(self, context: SSL.Context) -> None:
        self.trouble = ""
        self._watch = _Watch(self._scope)
        self._connection = SSL.Connection(context, None)
        self._connection.set_app_data(self._watch)
        self._connection.set_accept_state()
        self._hear(self._hello)
        if context is self._contexts.plain and self._connection.get_state_string() == _FINISHED_WRITTEN:
            self._watch.resumed = self._watch.note(self._connection)

    def _hear(self, octets: bytes) -> None:
        if octets:
            self._connection.bio_write(octets)
        try:
            if not self.established:
                self._connection.do_handshake()
                self.established = True
                if self._watch.resumed is None:
                    self._watch.note(self._connection)  # in TLS 1.2 without a ticket, the session is known only now
            is_one_record = len(octets) == _RECORD_HEADER + int.from_bytes(octets[3:5])
            while len(self._clear) <= _MAX_CLEAR_SIZE:
                self._clear += self._connection.recv(_READ)
                if is_one_record:
                    return  # otherwise the next call would only raise WantReadError, which takes longer
            self.trouble = "too many octets inside TLS"
        except SSL.WantReadError:
            pass
        except SSL.ZeroReturnError:
            self.trouble = "the client has closed the TLS connection"
        except SSL.Error as error:
            self.trouble = self._described(error)

    def _described(self, error: SSL.Error) -> str:
        if self._watch.refused:
            return f"the client's certificate is refused: {self._watch.refused}"
        return f"TLS: {openssl_reason(error)}"

    def take(self) -> bytes:
        """Return the octets to send to the client. They may be empty."""
        octets = b""
        try:  # `suppress` would cost half a microsecond in every round
            while len(octets) % _READ == 0:
                octets += self._connection.bio_read(_READ)
        except SSL.WantReadError:
            pass
        return octets

    def read(self) -> bytes:
        """Return the decrypted octets that have arrived since the last call."""
        clear, self._clear = self._clear, b""
        return clear

    def write(self, clear: bytes) -> None:
        """Encrypt octets for the client; `take` returns the result. Raises PacketError if the client has closed the
        connection."""
        try:
            if clear:
                self._connection.send(clear)
        except SSL.Error as error:
            raise PacketError(self._described(error)) from None

    def export(self, label: bytes, size: int, context: bytes | None = None) -> bytes:
        """Return exported keying material of `size` octets (RFC 5705, RFC 8446 section 7.5)."""
        return self._connection.export_keying_material(label, size, context)

    @property
    def is_tls13(self) -> bool:
        """Return whether TLS 1.3 was negotiated. TLS 1.3 uses other labels for the exported keys than TLS 1.2, and
        EAP-TLS ends in another way."""
        return self._connection.get_protocol_version() >= SSL.TLS1_3_VERSION

    @property
    def resumed(self) -> bytes | None:
        """Return the digest of the resumed session. Return None if the session is new, or if this is not known yet."""
        return self._watch.resumed

    @property
    def sessions(self) -> tuple[bytes, ...]:
        """Return the digests of all sessions that the client can resume later."""
        return tuple(self._watch.sessions)

    @property
    def certificate(self) -> x509.Certificate | None:
        """Return the client's certificate. Return None if the client has sent none. In a resumed session, the
        certificate is from the full handshake."""
        return self._connection.get_peer_certificate(as_cryptography=True)

    @property
    def verified_chain(self) -> list[x509.Certificate]:
        """Return the client's certificate and its issuers up to a trust anchor, as OpenSSL has verified them in this
        handshake. Return an empty list in a resumed session."""
        return self._connection.get_verified_chain(as_cryptography=True) or []

    @property
    def certificate_left_s(self) -> float:
        """Return the seconds until the client's certificate expires. Return infinity if there is no certificate."""
        certificate = self.certificate
        return (
            math.inf if certificate is None else (certificate.not_valid_after_utc - datetime.now(UTC)).total_seconds()
        )

    @property
    def has_verified(self) -> bool:
        """Return whether a client certificate was checked in this handshake."""
        return self._watch.verified

    @property
    def has_refused(self) -> bool:
        """Return whether OpenSSL has rejected the client's certificate."""
        return bool(self._watch.refused)

    def keep(self) -> None:
        """Keep the session in OpenSSL's cache. Otherwise OpenSSL removes the session if the connection ends without a
        close_notify."""
        self._connection.set_shutdown(SSL.SENT_SHUTDOWN | SSL.RECEIVED_SHUTDOWN)


def _may_speak_tls13(hello: bytes) -> bool:
    """Return whether a ClientHello has the extension supported_versions. A ClientHello without this extension cannot
    offer TLS 1.3 (RFC 8446 sections 4.1.2, 4.2.1). Return False if the ClientHello is incomplete."""
    if _SUPPORTED_VERSIONS not in hello:
        return False
    at = _SESSION_ID
    at += 1 + int.from_bytes(hello[at : at + 1])
    at += 2 + int.from_bytes(hello[at : at + 2])  # cipher suites
    at += 1 + int.from_bytes(hello[at : at + 1])  # methods of compression
    at += 2
    while at < len(hello):
        if hello[at : at + 2] == _SUPPORTED_VERSIONS:
            return True
        at += 4 + int.from_bytes(hello[at + 2 : at + 4])
    return False
