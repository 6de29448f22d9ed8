"""Detect requests for MAC authentication bypass.

If a NAS finds no supplicant, it sends a request on behalf of the station. User-Name and Calling-Station-Id contain the
station's address. The password is the same address, or is absent. The notation and the Service-Type depend on the
product. Cisco sends Call-Check as Service-Type (RFC 2865 section 5.6). Other products send Framed, or no Service-Type.
Some products use EAP-MD5, with the address as identity and as password.

Other forms look like the login of a person, so they are a setting of the RADIUS client (`MacForm`): the Service-Type
Login-User or Authenticate-Only, no Calling-Station-Id, and one password for all stations.
"""

from collections.abc import Mapping
from hmac import compare_digest
from typing import Final

from sallyport.areas.clients.client import MacForm
from sallyport.areas.policy.attempt import Arrival
from sallyport.base.mac import mac_key
from sallyport.radius.attributes import CALLING_STATION_ID, SERVICE_TYPE, USER_NAME
from sallyport.radius.packet import as_text
from sallyport.radius.password import Method, chap_holds, sent_chap, sent_password
from sallyport.radius.vendors import medium

FRAMED: Final = 2
LOGIN_USER: Final = 1
AUTHENTICATE_ONLY: Final = 8
CALL_CHECK: Final = 10
_SERVICES: Final = frozenset({None, FRAMED, CALL_CHECK})
_SERVICE_FORMS: Final[Mapping[int | None, MacForm]] = {
    LOGIN_USER: MacForm.LOGIN_USER,
    AUTHENTICATE_ONLY: MacForm.AUTHENTICATE_ONLY,
}
_MEDIA: Final = frozenset({"Ethernet", "Wireless", "Unknown"})


def requested_station(arrival: Arrival, method: str) -> str:
    """Return the station of a bypass request as 12 hex digits. Return an empty text if the login is no bypass request.

    If the request has no signature, the password must also be the address. Only a sender with the shared secret can
    encrypt the password. Raises PacketError if the password field is malformed.
    """
    station = _station(arrival)
    return station if station and _has_no_other_password(arrival, method, station) else ""


def requested_station_by_eap(arrival: Arrival, method: str) -> str:
    """Return the station of a bypass request by EAP as 12 hex digits. Return an empty text if the login is no such
    request.

    The caller must check that the address is also the password (EAP-MD5).
    """
    return _station(arrival) if method == Method.EAP and arrival.request.signed else ""


def _station(arrival: Arrival) -> str:
    first, forms = arrival.request.first, arrival.client.mac_forms
    station = mac_key(as_text(first.get(USER_NAME, b"")))
    if not station:
        return ""
    sent = first.get(CALLING_STATION_ID)
    if sent is None:
        if MacForm.NO_STATION not in forms:
            return ""
    elif mac_key(as_text(sent)) != station:
        return ""
    kind = arrival.request.integer(SERVICE_TYPE)
    is_usual = kind in _SERVICES or _SERVICE_FORMS.get(kind) in forms
    return station if is_usual and medium(arrival.request) in _MEDIA else ""


def _has_no_other_password(arrival: Arrival, method: str, station: str) -> bool:
    """Return whether the password is the station's address, or the client's password of all stations. It may also be
    absent. If it is not the address in PAP, the request must be signed."""
    signed, word = arrival.request.signed, arrival.client.mac_password
    if method == Method.PAP:
        password = sent_password(arrival.request, arrival.client.secret)
        if mac_key(as_text(password)) == station:
            return True
        return signed and (not password or (word is not None and compare_digest(password, word.reveal())))
    if method == Method.CHAP:
        value, challenge = sent_chap(arrival.request)
        passwords = [arrival.request.first[USER_NAME], b"", *([] if word is None else [word.reveal()])]
        return signed and len(value) == 17 and any(chap_holds(value, each, challenge) for each in passwords)
    return signed and method == Method.NONE and arrival.request.integer(SERVICE_TYPE) == CALL_CHECK
