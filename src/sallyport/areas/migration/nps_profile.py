"""The profile of an NPS network policy: constraints on a login, and attributes of the answer.

The attributes of the answer are those of RADIUS (RFC 2865, 2868, 2548) under the names of Active Directory's schema.
`msRADIUSAnyVSA` has the attribute of any vendor: two digits for the form (01: text), eight digits for the vendor, two
for the type, two for the length, and the value, as text or in hexadecimal digits.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from sallyport.areas.migration.xml import Element

NO_GUID: Final = "{00000000-0000-0000-0000-000000000000}"
_VLAN: Final = {"msRADIUSTunnelType": "13", "msRADIUSTunnelMediumType": "6"}
_REPLIES: Final = {
    "msRADIUSServiceType": "Service-Type",
    "msRADIUSFramedProtocol": "Framed-Protocol",
    "msRADIUSFramedIPAddress": "Framed-IP-Address",
    "msRADIUSFramedIPNetmask": "Framed-IP-Netmask",
    "msRADIUSFramedRoute": "Framed-Route",
    "msRADIUSFramedRouting": "Framed-Routing",
    "msRADIUSFramedMTU": "Framed-MTU",
    "msRADIUSFramedCompression": "Framed-Compression",
    "msRADIUSFilterId": "Filter-Id",
    "msRADIUSClass": "Class",
    "msRADIUSReplyMessage": "Reply-Message",
    "msRADIUSSessionTimeout": "Session-Timeout",
    "msRADIUSIdleTimeout": "Idle-Timeout",
    "msRADIUSTerminationAction": "Termination-Action",
    "msRADIUSPortLimit": "Port-Limit",
    "msRADIUSLoginIPHost": "Login-IP-Host",
    "msRADIUSLoginService": "Login-Service",
    "msRADIUSLoginTCPPort": "Login-TCP-Port",
    "msRADIUSTunnelType": "Tunnel-Type",
    "msRADIUSTunnelMediumType": "Tunnel-Medium-Type",
    "msRADIUSTunnelPrivateGroupId": "Tunnel-Private-Group-Id",
    "msRADIUSTunnelAssignmentId": "Tunnel-Assignment-Id",
    "msRADIUSTunnelPreference": "Tunnel-Preference",
    "msRADIUSTunnelClientEndpt": "Tunnel-Client-Endpoint",
    "msRADIUSTunnelServerEndpt": "Tunnel-Server-Endpoint",
    "msRADIUSAcctInterimInterval": "Acct-Interim-Interval",
    "msCiscoAV": "Cisco-AVPair",
    "msRASMPPEEncryptionPolicy": "MS-MPPE-Encryption-Policy",
    "msRASMPPEEncryptionType": "MS-MPPE-Encryption-Types",
    "msRASBapRequired": "MS-BAP-Usage",
    "msRASBapLinednLimit": "MS-Link-Utilization-Threshold",
    "msRASBapLinednTime": "MS-Link-Drop-Time-Limit",
}
_TUNNEL: Final = ("Tunnel-Type", "Tunnel-Medium-Type", "Tunnel-Private-Group-Id")
_METHODS: Final = {1: "pap", 2: "chap", 3: "mschap", 4: "mschapv2"}
_CHANGES: Final = frozenset({9, 10})
"""The change of a password by MS-CHAP. Sallyport does not offer it."""
_EAP: Final = {4: "eap-md5", 13: "eap-tls", 21: "ttls", 25: "peap", 26: "eap-mschapv2"}
_NOT_ON_THE_WIRE: Final = frozenset({"Opaque_Data", "msEAPConfiguration", "msEAPTLVName", "msRADIUSTunnelTag"})
"""Settings of the console of NPS, and of the inner methods of PEAP, which the domain has."""
_WINDOWS: Final = "msNPTimeOfDay"
_LIMITS: Final = {
    "msNPCalledStationId": "Called-Station-Id",
    "msNPCallingStationId": "Calling-Station-Id",
    "msNPSavedCallingStationId": "Calling-Station-Id",
    "msNPAllowedPortTypes": "NAS-Port-Type",
}
_VSA: Final = re.compile(r"([0-9A-Fa-f]{2})([0-9A-Fa-f]{8})([0-9A-Fa-f]{2})([0-9A-Fa-f]{2})(.*)", re.DOTALL)


@dataclass(slots=True)
class Profile:
    """The profile of a policy.

    grants: whether it grants access. has_dial_in: whether the dial-in permission of a user's account decides first.
    methods: the permitted methods; None for all. limits: further constraints as (attribute, expression). windows: the
    texts of constraints on the time. problems: why a grant cannot be expressed.
    """

    grants: bool = False
    has_dial_in: bool = True
    methods: list[str] | None = None
    limits: list[tuple[str, str]] = field(default_factory=list)
    windows: list[str] = field(default_factory=list)
    vlan: str = ""
    replies: list[tuple[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def read_profile(properties: Element) -> Profile:
    """Return the profile in an element `Properties`."""
    found = Profile(grants=properties.value("msNPAllowDialin") not in ("0", "false"))
    found.has_dial_in = properties.value("msIgnoreUserDialinProperties") not in ("1", "true")
    _read_methods(properties, found)
    for tag, attribute in _LIMITS.items():
        if values := [re.escape(each.text) for each in properties.all(tag) if each.text]:
            found.limits.append((attribute, f"^({'|'.join(values)})$"))
    found.windows = [each.text for each in properties.all(_WINDOWS) if each.text]
    for each in properties.children:
        if not each.is_read:
            _read_reply(each, found)
    _find_vlan(found)
    return found


def methods_of(properties: Element) -> Sequence[str]:
    """Return the methods that the profile of a connection request policy permits."""
    found = Profile()
    _read_methods(properties, found)
    return found.methods or ()


def _read_methods(properties: Element, found: Profile) -> None:
    numbers = {int(each.text) for each in properties.all("msNPAuthenticationType2") if each.text.isdecimal()}
    types = [each for each in properties.all("msNPAllowedEapType") if each.text]
    if not numbers:
        return
    found.methods = [_METHODS[number] for number in sorted(numbers) if number in _METHODS]
    for each in types if numbers & {5, 11} else ():
        kind = int(each.text[:2], 16) if re.match("[0-9A-Fa-f]{2}", each.text) else 0
        if kind in _EAP:
            found.methods.append(_EAP[kind])
    if 5 in numbers and not types:
        found.methods.append("eap")
    found.methods = list(dict.fromkeys(found.methods))
    if 7 in numbers:
        found.problems.append("it admits logins without authentication (msNPAuthenticationType2 7)")
    if not found.methods:
        found.problems.append("it permits no authentication method that Sallyport has")


def _read_reply(element: Element, found: Profile) -> None:
    """Read an attribute of the answer."""
    tag, text = element.tag, element.text
    element.is_read = True
    if not text or tag in _NOT_ON_THE_WIRE or (tag.endswith("_Guid") and text == NO_GUID):
        return
    if tag in ("msRADIUSAnyVSA", "msRADIUSVendorSpecific"):
        reply = _vendor_attribute(text)
    else:
        reply = (_REPLIES[tag], text) if tag in _REPLIES else None
    if reply is None:
        found.problems.append(f"its setting {tag} (line {element.line}) cannot be expressed")
    else:
        found.replies.append(reply)


def _vendor_attribute(text: str) -> tuple[str, str] | None:
    """Return the name and the octets of a vendor's attribute, or None if its form is not known."""
    parts = _VSA.fullmatch(text)
    if parts is None:
        return None
    form, vendor, number, length, value = parts.groups()
    size = int(length, 16) - 2
    octets = value.encode()
    if (form != "01" or len(octets) != size) and re.fullmatch("(?:[0-9A-Fa-f]{2})+", value):
        octets = bytes.fromhex(value)
    if len(octets) != size or form not in ("00", "01", "03"):
        return None
    return f"Attr-26.{int(vendor, 16)}.{int(number, 16)}", f"0x{octets.hex()}"


def _find_vlan(found: Profile) -> None:
    """Take the three attributes of a VLAN together, if they are no more than that."""
    tunnel = [each for each in found.replies if each[0] in _TUNNEL]
    kinds = dict(tunnel)
    is_vlan = len(tunnel) == len(kinds) == len(_TUNNEL) and all(
        kinds[_REPLIES[tag]] == number for tag, number in _VLAN.items()
    )
    if is_vlan and kinds["Tunnel-Private-Group-Id"]:
        found.vlan = kinds["Tunnel-Private-Group-Id"]
        found.replies = [each for each in found.replies if each[0] not in _TUNNEL]
