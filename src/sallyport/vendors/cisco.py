"""Cisco: ASA and FTD, IOS and IOS-XE switches, the AireOS WLC, and the Catalyst 9800 controller.

ASA, FTD        tunnel group (3076/146) and client type (3076/150); AV pairs (9/1) mdm-tlv=, ip:source-ip=,
                coa-push=true (P)
Catalyst 9800   AV pairs cisco-wlan-ssid=, wlan-profile-name=; NAS-Port-Id capwap_ and 8 hex digits (P)
WLC             Airespace-Wlan-Id (14179/1) without those of a 9800; Acct-Session-Id with a MAC in it (P)
IOS, IOS-XE     AV pairs audit-session-id=, method=, service-type= (P), which Meraki and others send as well; older ones
                send no vendor attribute, only NAS-Port-Id as IOS writes its interfaces (P), as others do too

ISE leaves no published trace as a proxy: State 37CPMSessionID= and Class CACS: say who authorized, not who forwards.
"""

import re
from typing import Final

from sallyport.radius.attributes import ACCT_SESSION_ID, NAS_PORT_ID, NAS_PORT_TYPE
from sallyport.vendors.model import Clue, Rank, Vendor
from sallyport.vendors.sight import Sight

_CISCO: Final = 9
_AV_PAIR: Final = 1
_VPN3000: Final = 3076
_TUNNEL_GROUP: Final = 146
_CLIENT_TYPE: Final = 150
_AIRESPACE: Final = 14179
_WLAN_ID: Final = 1

_CAPWAP: Final = re.compile(rb"capwap_[0-9a-f]{8}")
_AIREOS_SESSION: Final = re.compile(rb"[0-9a-f]{8}/(?:[0-9a-f]{2}:){5}[0-9a-f]{2}(?:/\d+)?")
_INTERFACE: Final = re.compile(
    rb"(?:(?:Fast|Gigabit|TwoGigabit|FiveGigabit|TenGigabit|FortyGigabit)?Ethernet|TwentyFiveGigE|HundredGigE)"
    rb"\d{1,3}(?:/\d{1,3}){1,3}"
)


def _asa(sight: Sight) -> tuple[str, ...]:
    return sight.has(_VPN3000, _TUNNEL_GROUP, _CLIENT_TYPE) + sight.begins(
        _CISCO, _AV_PAIR, b"mdm-tlv=", b"ip:source-ip=", b"coa-push=true"
    )


def _catalyst_9800(sight: Sight) -> tuple[str, ...]:
    pairs = sight.begins(_CISCO, _AV_PAIR, b"cisco-wlan-ssid=", b"wlan-profile-name=")
    wlan, port = sight.has(_AIRESPACE, _WLAN_ID), _capwap_port(sight)
    return pairs + wlan + port if pairs or (wlan and port) else ()


def _capwap_port(sight: Sight) -> tuple[str, ...]:
    return sight.matches(NAS_PORT_ID, "NAS-Port-Id", _CAPWAP)


def _wlc(sight: Sight) -> tuple[str, ...]:
    wlan = sight.has(_AIRESPACE, _WLAN_ID)
    if not wlan or _catalyst_9800(sight):
        return ()
    session = _AIREOS_SESSION.fullmatch(sight.octets(ACCT_SESSION_ID))
    return (*wlan, "Acct-Session-Id with a MAC") if session else wlan


def _ios(sight: Sight) -> tuple[str, ...]:
    return sight.begins(_CISCO, _AV_PAIR, b"audit-session-id=", b"method=", b"service-type=")


def _ios_port(sight: Sight) -> tuple[str, ...]:
    if sight.integer(NAS_PORT_TYPE) != 15:
        return ()
    return sight.matches(NAS_PORT_ID, "NAS-Port-Id", _INTERFACE)


VENDOR: Final = Vendor(
    nas=(
        Clue("Cisco ASA", Rank.VENDOR_ATTRIBUTE, _asa),
        Clue("Cisco Catalyst 9800", Rank.VENDOR_ATTRIBUTE, _catalyst_9800),
        Clue("Cisco WLC", Rank.VENDOR_ATTRIBUTE, _wlc),
        Clue("Cisco IOS", Rank.SHARED_ATTRIBUTE, _ios),
        Clue("Cisco Catalyst 9800", Rank.FORMAT, _capwap_port),
        Clue("Cisco IOS", Rank.FORMAT, _ios_port),
    ),
)
