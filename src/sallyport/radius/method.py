"""How the credentials of an Access-Request came, and the fields of PAP and CHAP (RFC 2865 sections 5.2 and 5.3)."""

from typing import Final

from sallyport.radius.attributes import (
    CHAP_CHALLENGE,
    CHAP_PASSWORD,
    EAP_MESSAGE,
    USER_PASSWORD,
    VENDOR_SPECIFIC,
)
from sallyport.radius.authenticator import SharedSecret
from sallyport.radius.mschap import (
    MICROSOFT,
    MS_CHAP2_CPW,
    MS_CHAP2_RESPONSE,
    MS_CHAP_CPW_1,
    MS_CHAP_CPW_2,
    MS_CHAP_RESPONSE,
)
from sallyport.radius.packet import Request
from sallyport.radius.password import reveal_password


class Method:
    """The authentication method of a login, as plain text, since every event is written with it."""

    PAP: Final = "pap"
    CHAP: Final = "chap"
    MSCHAP: Final = "mschap"
    MSCHAP2: Final = "mschapv2"
    EAP: Final = "eap"  # events name the inner method too: eap-peap-mschapv2
    EAP_TLS: Final = "eap-tls"
    PEAP_GTC: Final = "eap-peap-gtc"
    TTLS_GTC: Final = "eap-ttls-eap-gtc"
    MAB: Final = "mab"  # MAC authentication bypass
    NONE: Final = "none"


TYPED: Final = frozenset({Method.PAP, Method.CHAP, Method.PEAP_GTC, Method.TTLS_GTC})
"""The methods by which a user can answer a challenge with a code."""


def method_of(request: Request) -> str:
    """Return the method of an Access-Request, as `Method` names it."""
    first = request.first
    if USER_PASSWORD in first:
        return Method.PAP
    if CHAP_PASSWORD in first:
        return Method.CHAP
    if EAP_MESSAGE in first:
        return Method.EAP
    return _microsoft(request) if VENDOR_SPECIFIC in first else Method.NONE


def _microsoft(request: Request) -> str:
    values = request.vendor_values()
    if any((MICROSOFT, kind) in values for kind in (MS_CHAP2_RESPONSE, MS_CHAP2_CPW)):
        return Method.MSCHAP2
    if any((MICROSOFT, kind) in values for kind in (MS_CHAP_RESPONSE, MS_CHAP_CPW_1, MS_CHAP_CPW_2)):
        return Method.MSCHAP
    return Method.NONE


def sent_password(request: Request, secret: SharedSecret) -> bytes:
    """Return the User-Password of a PAP request in clear. PacketError: it is malformed."""
    return reveal_password(request.first[USER_PASSWORD], secret, request.authenticator)


def sent_chap(request: Request) -> tuple[bytes, bytes]:
    """Return the CHAP-Password of a request (identifier and response), and the challenge that it answers."""
    return request.first[CHAP_PASSWORD], request.first.get(CHAP_CHALLENGE, request.authenticator)
