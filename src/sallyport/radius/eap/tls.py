"""EAP-TLS (RFC 5216, RFC 9190): a client certificate authenticates the user. TLS verifies it in the handshake."""

from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes

from sallyport.radius.eap.certificate import UNREADABLE, UserNames, check_size
from sallyport.radius.eap.model import Certificate, Check, Failed, Failure, Next, Passed, Step, Verdict
from sallyport.radius.eap.resumption import SessionUser
from sallyport.radius.eap.trust import Trust, kept_issuers
from sallyport.radius.eap.tunnel import Tunnel

PROTECTED_SUCCESS: Final = b"\0"
"""The octet inside the tunnel that announces success in TLS 1.3 (RFC 9190 section 2.1.1). For the client, an
EAP-Success
before this octet is forged."""


MIN_CHAIN: Final = 2
"""Minimum number of certificates in a verified chain: that of the client, and a trust anchor."""


class TlsPhase:
    """The inner phase of EAP-TLS, after the TLS handshake.

    names: the fields of a certificate that may contain the user's name. trust: the domain's own trust anchors; None if
    the domain trusts the authorities of the installation. issuers: the issuers in the verified chain, to keep them with
    the TLS session; None if the session must not be kept.
    """

    inner = ""

    def __init__(self, tunnel: Tunnel, names: UserNames, trust: Trust | None = None) -> None:
        self._tunnel = tunnel
        self._names = names
        self._trust = trust
        self._name = b""
        self.issuers: tuple[x509.Certificate, ...] | None = ()

    def established(self, holder: SessionUser | None) -> Step:
        """Return the question whether the certificate's user may log in. In a resumed session, the certificate is from
        the full handshake."""
        try:
            certificate = self._tunnel.certificate
            if certificate is None:
                return Failed("the client has sent no certificate", Failure.CERTIFICATE)
            check_size(certificate)
            if self._trust is not None:
                return self._chain_question(self._trust, certificate, holder)
            named = self._names.of(certificate)
        except UNREADABLE as error:
            return Failed(f"the client's certificate cannot be read: {error}", Failure.CERTIFICATE)
        if not self._tunnel.has_verified and holder is None:
            return Failed("the client's certificate was not verified", Failure.TLS)
        if not named.name:
            return Failed("the client's certificate names no user", Failure.CERTIFICATE)
        self._name = named.name.encode()
        fingerprint = certificate.fingerprint(hashes.SHA256()).hex()
        return Check(Certificate(self._name, fingerprint, named.by, certificate))

    def _chain_question(self, trust: Trust, certificate: x509.Certificate, holder: SessionUser | None) -> Step:
        """Return the question about a certificate of one of the domain's own authorities. In a resumed session, the
        chain is that of the full handshake."""
        chain = self._tunnel.verified_chain if holder is None else [certificate, *holder.issuers]
        if len(chain) < MIN_CHAIN or chain[0] != certificate:
            return Failed("the client's certificate was not verified", Failure.TLS)
        for issuer in chain[1:-1] if holder is None else ():  # without the anchor: old roots have the number 0
            check_size(issuer)
        whole = trust.completed(chain)
        self.issuers = kept_issuers(chain)
        anchor, fingerprint = trust.anchor_of(chain), certificate.fingerprint(hashes.SHA256()).hex()
        return Check(
            Certificate(
                b"",
                fingerprint,
                certificate=certificate,
                chain=whole,
                anchor=anchor,
                is_revoked=trust.has_revoked(whole),
            )
        )

    def respond(self, clear: bytes) -> Step:
        """Process the last acknowledgement of the client."""
        if clear or not self._name:
            return Failed("data inside EAP-TLS")
        return Passed(self._name)

    def answer(self, verdict: Verdict) -> Step:
        """Return the last message inside the tunnel if the user may log in. Otherwise return the failure."""
        if not verdict.right:
            return Failed(verdict.reason, Failure.REFUSED)
        self._name = verdict.user or self._name
        return Next(PROTECTED_SUCCESS if self._tunnel.is_tls13 else b"")
