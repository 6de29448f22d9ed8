"""The table of products, with one row for each way to recognize a product.

To add a product, add its rows here (for a proxy in `forwarders`), and a packet in tests/radius/vendors/packets.

Each row has a source, which begins with a letter: P for a real packet or debug log, S for source code, D for
documentation of the vendor, M for memory (not confirmed yet). Within a rank, the first matching row counts. Products
that imitate another product's attributes are listed before the other product: Meraki, Ruckus and Aruba send Cisco's AV
pairs, so they come before Cisco. hostapd comes last, because many access points run it.

These attributes are not used as evidence, because other products or servers set them too:

- the MS-CHAP attributes (Microsoft 311/1, /11, /25), and a User-Name such as meraki_8021x_test;
- attributes that belong in answers, or that a server adds on the way: Fortinet-Group-Name (12356/1), Aruba's role
  (14823/23), the State 37CPMSessionID= and the Class CACS: of Cisco ISE;
- Connect-Info `test` of Fortinet, which every vendor uses.
"""

import re
from typing import Final

from sallyport.radius.attributes import (
    ACCT_SESSION_ID,
    CALLED_STATION_ID,
    CALLING_STATION_ID,
    CONNECT_INFO,
    FRAMED_PROTOCOL,
    NAS_IDENTIFIER,
    NAS_PORT,
    NAS_PORT_ID,
    NAS_PORT_TYPE,
    SERVICE_TYPE,
    TUNNEL_CLIENT_ENDPOINT,
)
from sallyport.radius.vendors.evidence import (
    Attributes,
    Certainty,
    Fingerprint,
    Rank,
    all_of,
    any_of,
    first_of,
    integers,
    pattern,
    prefix,
    present,
    says,
    supported,
    text,
    unless,
    vendor,
    vendor_integer,
    vendor_prefix,
    when,
)
from sallyport.radius.vendors.forwarders import FORWARDERS


def _own_vendor(product: str, number: int, *kinds: int, source: str) -> Fingerprint:
    return Fingerprint(product, Rank.VENDOR_ATTRIBUTE, vendor(number, *kinds), source)


# Cisco. The Catalyst 9800 also sends the attribute of the older WLC.
_WLAN_ID: Final = vendor(14179, 1)
_CAPWAP_PORT: Final = pattern(NAS_PORT_ID, rb"capwap_[0-9a-f]{8}", name="NAS-Port-Id")
_WLAN_PROFILE: Final = vendor_prefix(9, 1, b"cisco-wlan-ssid=", b"wlan-profile-name=")
_CATALYST_9800: Final = first_of(supported(_WLAN_PROFILE, _WLAN_ID, _CAPWAP_PORT), all_of(_WLAN_ID, _CAPWAP_PORT))
_MAC_IN_SESSION: Final = pattern(
    ACCT_SESSION_ID,
    rb"[0-9a-f]{8}/(?:[0-9a-f]{2}:){5}[0-9a-f]{2}(?:/\d+)?",
    evidence="Acct-Session-Id with a MAC",
)
_IOS_INTERFACE: Final = pattern(
    NAS_PORT_ID,
    rb"(?:(?:Fast|Gigabit|TwoGigabit|FiveGigabit|TenGigabit|FortyGigabit)?Ethernet|TwentyFiveGigE|HundredGigE)"
    rb"\d{1,3}(?:/\d{1,3}){1,3}",
    name="NAS-Port-Id",
)

_FORTINET_LOGIN: Final = text(
    CONNECT_INFO,
    "Connect-Info",
    *(b"vpn-ssl", b"vpn-ipsec", b"vpn-ikev2", b"vpn-l2tp", b"vpn-pptp", b"admin-login", b"web-auth"),
)
_JUNOS_INTERFACE: Final = pattern(
    NAS_PORT_ID, rb"(?:fe|ge|mge|xe|et)-\d{1,3}/\d{1,3}/\d{1,3}(?:\.\d{1,5})?", name="NAS-Port-Id"
)
_OPENVPN_SERVICE: Final = says(integers({SERVICE_TYPE: 5, FRAMED_PROTOCOL: 1}), "Service-Type 5", "Framed-Protocol 1")
_SOFTETHER: Final = any_of(vendor_prefix(311, 34, b"MSRASV"), prefix(NAS_IDENTIFIER, "NAS-Identifier", b"SoftEther"))
_RADIO: Final = any_of(
    says(present(186, 187, 188), "WLAN suites"),
    pattern(CONNECT_INFO, rb"CONNECT \d{1,5}Mbps 802\.11[a-z]{1,3}", evidence="Connect-Info CONNECT 802.11"),
)
_ENDPOINT: Final = rb"[0-9A-Fa-f.:]{2,45}\[\d{1,5}\]"
_STRONGSWAN_STATIONS: Final = when(
    lambda request: re.fullmatch(_ENDPOINT, request.octets(CALLING_STATION_ID)) is not None,
    when(integers({NAS_PORT_TYPE: 5}), pattern(CALLED_STATION_ID, _ENDPOINT, evidence="stations IP[port]")),
)


def _is_like_pam_radius(request: Attributes) -> bool:
    """Return whether the request may come from pam_radius: NAS-Port can be a process id, and no attribute is present
    that pam_radius never sends."""
    if any(kind in request.first for kind in (ACCT_SESSION_ID, CALLED_STATION_ID, NAS_PORT_ID)):
        return False
    return NAS_IDENTIFIER in request.first and 0 < (request.integer(NAS_PORT) or 0) <= 1 << 22


def _is_named_by_called_mac(request: Attributes) -> bool:
    """Return whether NAS-Identifier is the MAC address of Called-Station-Id, without separators."""
    name = request.octets(NAS_IDENTIFIER)
    station = request.octets(CALLED_STATION_ID)[:17].replace(b"-", b"").replace(b":", b"")
    return re.fullmatch(rb"[0-9a-fA-F]{12}", name) is not None and station.lower() == name.lower()


NAS: Final = (
    Fingerprint(
        "Microsoft RRAS",
        Rank.MICROSOFT_VALUE,
        unless(
            _SOFTETHER,
            all_of(
                vendor_integer(311, 9, 311),
                any_of(
                    vendor_integer(311, 47, 2),
                    vendor_prefix(311, 34, b"MSRAS-"),
                    vendor_prefix(311, 35, b"MSRASV"),
                ),
            ),
        ),
        "P: MS-RAS-Vendor with the server type 2, client name or client version; also Azure's VPN gateway. "
        "S: SoftEther sends the same, with a version as client name",
    ),
    Fingerprint(
        "Microsoft RD Gateway",
        Rank.MICROSOFT_VALUE,
        supported(vendor_integer(311, 47, 1), prefix(CALLED_STATION_ID, "Called-Station-Id", b"UserAuthType:")),
        "D, P: MS-Network-Access-Server-Type",
    ),
    Fingerprint(
        "Fortinet FortiGate",
        Rank.VENDOR_ATTRIBUTE,
        supported(vendor(12356, 3), _FORTINET_LOGIN),
        "D, S: Fortinet-Vdom-Name; FortiProxy sends the same",
    ),
    Fingerprint(
        "Fortinet FortiGate",
        Rank.CONNECT_INFO,
        _FORTINET_LOGIN,
        "D: Connect-Info is the kind of login; M: vpn-l2tp and vpn-pptp",
    ),
    _own_vendor(
        "Palo Alto PAN-OS", 25461, 7, 8, 9, 10, source="D: address, system, host name, version; off by default"
    ),
    _own_vendor("Cisco Meraki", 29671, 1, 2, 3, 4, source="P: device, network, access point, its tags"),
    Fingerprint(
        "Cisco Meraki",
        Rank.NAS_IDENTIFIER,
        text(NAS_IDENTIFIER, "NAS-Identifier", b"Cisco Meraki cloud RADIUS client"),
        "P: requests of Meraki's cloud for splash pages",
    ),
    Fingerprint(
        "Cisco Meraki",
        Rank.FORMAT,
        pattern(NAS_IDENTIFIER, rb"(?:[0-9A-F]{2}-){5}[0-9A-F]{2}:vap\d{1,2}", evidence="NAS-Identifier MAC:vap"),
        "P: the MAC address of the access point, and the number of the virtual access point",
    ),
    _own_vendor("Ruckus", 25053, 3, 134, 135, source="P: SSID and two other attributes"),
    _own_vendor("Aruba Wireless", 14823, 5, 6, 10, source="P: SSID, location, group of access points"),
    _own_vendor("HP ProCurve", 11, 255, source="P: HP-Capability-Advert"),
    Fingerprint(
        "HP ProCurve", Rank.MICROSOFT_VALUE, vendor_integer(311, 9, 11), "P: MS-RAS-Vendor with the number of HP"
    ),
    _own_vendor("Huawei", 2011, 26, 59, 60, 254, 255, source="P: connection, start-up, addresses, version, product"),
    Fingerprint(
        "Juniper EX",
        Rank.VENDOR_ATTRIBUTE,
        all_of(vendor(2636), _JUNOS_INTERFACE),
        "S: a vendor attribute and an interface such as ge-0/0/6.0",
    ),
    Fingerprint(
        "Juniper EX",
        Rank.VENDOR_ATTRIBUTE,
        vendor(2636),
        "S: other Junos devices send the vendor's attributes too",
        Certainty.PROBABLE,
    ),
    Fingerprint("Juniper EX", Rank.FORMAT, _JUNOS_INTERFACE, "S: an interface such as ge-0/0/6.0"),
    _own_vendor("MikroTik RouterOS", 14988, 9, 10, source="D: Mikrotik-Realm; P: Mikrotik-Host-IP"),
    Fingerprint(
        "MikroTik RouterOS",
        Rank.NAS_IDENTIFIER,
        text(NAS_IDENTIFIER, "NAS-Identifier", b"MikroTik"),
        "P: the default name",
    ),
    Fingerprint(
        "MikroTik RouterOS",
        Rank.FORMAT,
        all_of(
            vendor(14122, 3), says(lambda request: (request.integer(NAS_PORT) or 0) >= 1 << 31, "NAS-Port from 2^31")
        ),
        "P: WISPr-Logoff-URL, which other hotspots send too, and a large NAS-Port",
    ),
    Fingerprint(
        "Cisco ASA",
        Rank.VENDOR_ATTRIBUTE,
        any_of(
            vendor(3076, 146, 150),
            vendor_prefix(9, 1, b"mdm-tlv=", b"ip:source-ip=", b"coa-push=true"),
        ),
        "P: tunnel group, client type, AV pairs; FTD sends the same",
    ),
    Fingerprint("Cisco Catalyst 9800", Rank.VENDOR_ATTRIBUTE, _CATALYST_9800, "P: AV pairs of the WLAN, CAPWAP port"),
    Fingerprint(
        "Cisco WLC",
        Rank.VENDOR_ATTRIBUTE,
        unless(_CATALYST_9800, supported(_WLAN_ID, _MAC_IN_SESSION)),
        "P: Airespace-Wlan-Id (AireOS)",
    ),
    Fingerprint(
        "Cisco IOS",
        Rank.SHARED_ATTRIBUTE,
        vendor_prefix(9, 1, b"audit-session-id=", b"method=", b"service-type="),
        "P: AV pairs, which Meraki and others send too",
    ),
    Fingerprint("Cisco Catalyst 9800", Rank.FORMAT, _CAPWAP_PORT, "P: CAPWAP port"),
    Fingerprint(
        "Cisco IOS",
        Rank.FORMAT,
        when(integers({NAS_PORT_TYPE: 15}), _IOS_INTERFACE),
        "P: an interface as IOS writes it; older switches send no vendor attribute",
    ),
    Fingerprint(
        "pfSense",
        Rank.NAS_IDENTIFIER,
        text(NAS_IDENTIFIER, "NAS-Identifier", b"openVPN", b"xauthIPsec"),
        "S: the service's name; case matters, since OpenVPN's own plug-in writes OpenVpn",
    ),
    Fingerprint(
        "pfSense",
        Rank.NAS_IDENTIFIER,
        prefix(NAS_IDENTIFIER, "NAS-Identifier", b"webConfigurator-", b"CaptivePortal-"),
        "S: the page, then a name that the admin chose",
    ),
    Fingerprint(
        "OpenVPN",
        Rank.NAS_IDENTIFIER,
        supported(text(NAS_IDENTIFIER, "NAS-Identifier", b"OpenVpn"), _OPENVPN_SERVICE),
        "S: the example configuration of radiusplugin and openvpn-auth-radius",
    ),
    Fingerprint(
        "OpenVPN",
        Rank.NAS_IDENTIFIER,
        all_of(text(NAS_IDENTIFIER, "NAS-Identifier", b"OpenVPN"), _OPENVPN_SERVICE),
        "D: Debian's guide; the name alone is too common",
    ),
    Fingerprint(
        "strongSwan",
        Rank.NAS_IDENTIFIER,
        supported(text(NAS_IDENTIFIER, "NAS-Identifier", b"strongSwan"), _STRONGSWAN_STATIONS),
        "S: the default of the eap-radius plug-in",
    ),
    Fingerprint("strongSwan", Rank.FORMAT, _STRONGSWAN_STATIONS, "S: both stations as 192.0.2.1[4500]"),
    Fingerprint(
        "F5 BIG-IP APM",
        Rank.FORMAT,
        when(
            present(TUNNEL_CLIENT_ENDPOINT),
            says(integers({SERVICE_TYPE: 8}), "Service-Type 8", "Tunnel-Client-Endpoint"),
        ),
        "S: Authenticate-Only with a tunnel's endpoint",
    ),
    Fingerprint(
        "OPNsense",
        Rank.FORMAT,
        says(
            integers({SERVICE_TYPE: 1, FRAMED_PROTOCOL: 15, NAS_PORT: 0, NAS_PORT_TYPE: 15}),
            *("Service-Type 1", "Framed-Protocol 15", "NAS-Port 0"),
        ),
        "S: Framed-Protocol holds the number of Ethernet, which is no Framed-Protocol",
    ),
    Fingerprint(
        "pam_radius",
        Rank.FORMAT,
        when(
            integers({SERVICE_TYPE: 8, NAS_PORT_TYPE: 5}),
            says(_is_like_pam_radius, "Service-Type 8", "NAS-Port like a process id"),
        ),
        "S, P: NAS-Port is the process ID, NAS-Identifier the PAM service",
    ),
    Fingerprint(
        "PacketFence",
        Rank.SHARED_ATTRIBUTE,
        when(lambda request: not request.proxy_states, vendor(29464, 32, 33)),
        "P: its attributes without a Proxy-State",
    ),
    Fingerprint(
        "Ubiquiti UniFi",
        Rank.FORMAT,
        all_of(says(_is_named_by_called_mac, "NAS-Identifier is the called MAC"), _RADIO),
        "P: hostapd with a name of its own",
    ),
    Fingerprint(
        "hostapd",
        Rank.FORMAT,
        all_of(pattern(ACCT_SESSION_ID, rb"[0-9A-F]{16}", evidence="Acct-Session-Id of 16 hex digits"), _RADIO),
        "P: session ID, and the WLAN suites of RFC 7268 or Connect-Info `CONNECT 54Mbps 802.11a`",
    ),
)


NAMED_BY_REGISTRATION: Final = (
    "Aruba ClearPass",
    "Check Point",
    "Cisco ISE",
    "Citrix NetScaler",
    "Omnissa Horizon",
    "OpenVPN Access Server",
    "SonicWall",
    "Sophos",
    "WatchGuard",
)
"""Common products whose requests contain no known evidence. They can only be configured."""

PRODUCTS: Final = tuple(sorted({*NAMED_BY_REGISTRATION, *(row.product for row in (*NAS, *FORWARDERS))}))
"""The names of all products that an admin can configure for a RADIUS client."""
