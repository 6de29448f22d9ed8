"""Which requests ask for MAC authentication bypass.

A NAS that has seen no supplicant asks in the station's name: User-Name and Calling-Station-Id are the same address,
and the password is that address once more, or nothing. Products differ in how they write it, and in Service-Type: Cisco
sends Call-Check (RFC 2865 section 5.6), others Framed or none. Some ask by EAP-MD5, with the address as identity and as
password.
"""

from typing import Final

from sallyport.policy.attempt import Attempt
from sallyport.policy.bypass.model import mac_key
from sallyport.radius.attributes import CALLING_STATION_ID, USER_NAME
from sallyport.radius.method import Method, sent_chap, sent_password
from sallyport.radius.packet import as_text
from sallyport.radius.password import chap_holds
from sallyport.vendors import medium

FRAMED: Final = 2
CALL_CHECK: Final = 10
_SERVICES: Final = frozenset({None, FRAMED, CALL_CHECK})
_MEDIA: Final = frozenset({"Ethernet", "Wireless", "Unknown"})


def asking(login: Attempt) -> str:
    """The station that a request asks for, as 12 hex digits; empty where it asks for none.

    A request that is not signed counts where its password is the address: who has no secret of the RADIUS client
    cannot hide one in the packet. PacketError: the password is malformed.
    """
    station = _station(login)
    return station if station and _says_nothing_else(login, station) else ""


def asking_by_eap(login: Attempt) -> str:
    """The station that a request asks for by EAP, where its address is to be the password too (EAP-MD5); else empty."""
    return _station(login) if login.method == Method.EAP and login.request.signed else ""


def _station(login: Attempt) -> str:
    first = login.request.first
    station = mac_key(as_text(first.get(CALLING_STATION_ID, b"")))
    if not station or mac_key(as_text(first.get(USER_NAME, b""))) != station:
        return ""
    return station if login.service_type in _SERVICES and medium(login.request) in _MEDIA else ""


def _says_nothing_else(login: Attempt, station: str) -> bool:
    """Whether the password is no one's: the address, or left out."""
    signed = login.request.signed
    if login.method == Method.PAP:
        password = sent_password(login.request, login.client.secret)
        return mac_key(as_text(password)) == station or (signed and not password)
    if login.method == Method.CHAP:
        value, challenge = sent_chap(login.request)
        name = login.request.first[USER_NAME]
        return signed and len(value) == 17 and (chap_holds(value, name, challenge) or chap_holds(value, b"", challenge))
    return signed and login.method == Method.NONE and login.service_type == CALL_CHECK
