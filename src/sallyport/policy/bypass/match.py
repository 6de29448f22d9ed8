"""Detect requests for MAC authentication bypass.

If a NAS finds no supplicant, it sends a request on behalf of the station. User-Name and Calling-Station-Id contain the
station's address. The password is the same address, or is absent. The notation and the Service-Type depend on the
product. Cisco sends Call-Check as Service-Type (RFC 2865 section 5.6). Other products send Framed, or no Service-Type.
Some products use EAP-MD5, with the address as identity and as password.
"""

from typing import Final

from sallyport.base.mac import mac_key
from sallyport.policy.attempt import Attempt
from sallyport.radius.attributes import CALLING_STATION_ID, USER_NAME
from sallyport.radius.packet import as_text
from sallyport.radius.password import Method, chap_holds, sent_chap, sent_password
from sallyport.vendors import medium

FRAMED: Final = 2
CALL_CHECK: Final = 10
_SERVICES: Final = frozenset({None, FRAMED, CALL_CHECK})
_MEDIA: Final = frozenset({"Ethernet", "Wireless", "Unknown"})


def requested_station(login: Attempt) -> str:
    """Return the station of a bypass request as 12 hex digits. Return an empty text if the login is no bypass request.

    If the request has no signature, the password must also be the address. Only a sender with the shared secret can
    encrypt the password. Raises PacketError if the password field is malformed.
    """
    station = _station(login)
    return station if station and _has_no_other_password(login, station) else ""


def requested_station_by_eap(login: Attempt) -> str:
    """Return the station of a bypass request by EAP as 12 hex digits. Return an empty text if the login is no such
    request.

    The caller must check that the address is also the password (EAP-MD5).
    """
    return _station(login) if login.method == Method.EAP and login.request.signed else ""


def _station(login: Attempt) -> str:
    first = login.request.first
    station = mac_key(as_text(first.get(CALLING_STATION_ID, b"")))
    if not station or mac_key(as_text(first.get(USER_NAME, b""))) != station:
        return ""
    return station if login.service_type in _SERVICES and medium(login.request) in _MEDIA else ""


def _has_no_other_password(login: Attempt, station: str) -> bool:
    """Return whether the password is the station's address. It may also be absent if the request is signed."""
    signed = login.request.signed
    if login.method == Method.PAP:
        password = sent_password(login.request, login.client.secret)
        return mac_key(as_text(password)) == station or (signed and not password)
    if login.method == Method.CHAP:
        value, challenge = sent_chap(login.request)
        name = login.request.first[USER_NAME]
        return signed and len(value) == 17 and (chap_holds(value, name, challenge) or chap_holds(value, b"", challenge))
    return signed and login.method == Method.NONE and login.service_type == CALL_CHECK
