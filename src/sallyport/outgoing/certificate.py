"""Find the reason why TLS rejected a server's certificate, in words for an admin.

The certificate may have expired, may be for another name, or may have an unknown issuer. `ssl` reports an error code
without the certificate. Therefore a second connection reads the certificate. This connection verifies nothing and sends
no request.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Final

import trio

from sallyport.outgoing.tls import secured, unverified_context

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cryptography import x509

# X509_V_ERR_... of OpenSSL's x509_vfy.h.
_NOT_YET_VALID: Final = 9
_EXPIRED: Final = 10
_OTHER_NAME: Final = frozenset({62, 64})
ISSUER_UNKNOWN: Final = frozenset({18, 19, 20, 21})
_MAX_LENGTH: Final = 200
_NAMES: Final = 5
SYSTEM: Final = "the system's certificates (update-ca-certificates), then restart the service"
"""The text that tells an admin where the trusted certificates are, if no setting contains them."""


def verification_error(error: BaseException) -> ssl.SSLCertVerificationError | None:
    """Return the certificate error among the causes of an error, or None if there is none."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__cause__ or cause.__context__
    return cause


async def why_refused(
    error: ssl.SSLCertVerificationError,
    host: str,
    connect: Callable[[], Awaitable[trio.SocketStream]],
    threads: trio.CapacityLimiter,
    *,
    trusted: str = SYSTEM,
) -> str:
    """Return the reason why TLS rejected the certificate of a host, as a text for an admin.

    connect: a function that opens a stream on which TLS can start. threads: the limit of the tenant's concurrent
    handshakes. trusted: tells the admin where the trusted certificates are configured.
    """
    leaf: bytes | None = None
    try:
        stream = await connect()
        try:
            tls = await secured(stream, unverified_context(), host, threads)
            leaf = tls.getpeercert(binary_form=True)
        finally:
            await trio.aclose_forcefully(stream)
    except (OSError, trio.BrokenResourceError):
        pass  # without the certificate, the error can be described only by its code
    why = None
    if leaf is not None:
        why = await trio.to_thread.run_sync(_described, error.verify_code, leaf, host, trusted)
    return f"its certificate is not trusted: {why or error.verify_message}"


def _described(code: int, leaf: bytes, host: str, trusted: str) -> str | None:
    """Return the reason why a certificate was rejected. Return None if the certificate does not show the reason.

    code: the error code of the verification. leaf: the certificate in DER.
    """
    from cryptography import x509

    try:
        certificate = x509.load_der_x509_certificate(leaf)
        issuer = _cut(certificate.issuer.rfc4514_string())
        if code == _EXPIRED:
            return (
                f"it expired on {certificate.not_valid_after_utc:%Y-%m-%d}; renew it on the server (issuer: {issuer})"
            )
        if code == _NOT_YET_VALID:
            since = f"{certificate.not_valid_before_utc:%Y-%m-%d %H:%M}"
            return f"it is not valid before {since} UTC; check the clocks of both machines (issuer: {issuer})"
        if code in _OTHER_NAME:
            names = ", ".join(_names(certificate)) or "no name"
            return f"Hostname mismatch: the certificate is for {names}, and not for {host}; configure one of its names"
        if code in ISSUER_UNKNOWN:
            own = "it signed itself" if certificate.issuer == certificate.subject else "its issuer is unknown"
            return f"{own}: {issuer}; trust it by {trusted}"
    except ValueError:
        pass
    return None


def _names(certificate: x509.Certificate) -> list[str]:
    """Return at most five names of a certificate. DNS names precede IP addresses."""
    from cryptography import x509

    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    names = [*found.get_values_for_type(x509.DNSName), *map(str, found.get_values_for_type(x509.IPAddress))]
    return [_cut(name) for name in names[:_NAMES]]


def _cut(text: str) -> str:
    return "".join(each for each in text if each.isprintable())[:_MAX_LENGTH]
