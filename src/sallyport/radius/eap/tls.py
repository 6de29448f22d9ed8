"""EAP-TLS (RFC 5216, RFC 9190): a client certificate authenticates the user. TLS verifies it in the handshake."""

from typing import Final

from cryptography.hazmat.primitives import hashes

from sallyport.radius.eap.certificate import UNREADABLE, UserNames
from sallyport.radius.eap.model import Certificate, Check, Failed, Failure, Next, Passed, Step, Verdict
from sallyport.radius.eap.resumption import SessionUser
from sallyport.radius.eap.tunnel import Tunnel

PROTECTED_SUCCESS: Final = b"\0"
"""The octet inside the tunnel that announces success in TLS 1.3 (RFC 9190 section 2.1.1). For the client, an
EAP-Success
before this octet is forged."""


class TlsPhase:
    """The inner phase of EAP-TLS, after the TLS handshake. names: the fields of a certificate that may contain the
    user's name."""

    inner = ""

    def __init__(self, tunnel: Tunnel, names: UserNames) -> None:
        self._tunnel = tunnel
        self._names = names
        self._name = b""

    def established(self, holder: SessionUser | None) -> Step:
        """Return the question whether the certificate's user may log in. In a resumed session, the certificate is from
        the full handshake."""
        try:
            certificate = self._tunnel.certificate
            if certificate is None:
                return Failed("the client has sent no certificate", Failure.CERTIFICATE)
            named, subject = self._names.of(certificate), certificate.subject.rfc4514_string()
        except UNREADABLE as error:
            return Failed(f"the client's certificate cannot be read: {error}", Failure.CERTIFICATE)
        if not self._tunnel.has_verified and holder is None:
            return Failed("the client's certificate was not verified", Failure.TLS)
        if not named.name:
            return Failed("the client's certificate names no user", Failure.CERTIFICATE)
        self._name = named.name.encode()
        fingerprint = certificate.fingerprint(hashes.SHA256()).hex()
        return Check(Certificate(self._name, subject, fingerprint, named.by, certificate))

    def respond(self, clear: bytes) -> Step:
        """Process the last acknowledgement of the client."""
        if clear or not self._name:
            return Failed("data inside EAP-TLS")
        return Passed(self._name)

    def answer(self, verdict: Verdict) -> Step:
        """Return the last message inside the tunnel if the user may log in. Otherwise return the failure."""
        if not verdict.right:
            return Failed(verdict.reason, Failure.REFUSED)
        return Next(PROTECTED_SUCCESS if self._tunnel.is_tls13 else b"")
