"""Example Tools, a fictitious company that moves from NPS: its export, its people, and the log of a week.

The log is decided by the policies of the export, as NPS decides. Three things differ from what an import makes of the
company, until they are mended:

1. The policy "Contractors" cannot be expressed. An admin who skips it admits contractors to the VPN.
2. The client "Warehouse" has a host name as its address, and is left out.
3. Frida has an account in Active Directory, and none in the domain.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from tests.areas.migration import STAFF, client, export, policy, profile
from tests.areas.shadow.files import Packet

GROUP = "staff"
CONTRACTOR, FRIDA = "ext-7", "frida"
SECRET = "a secret of Example Tools"
VPN, WIFI, SWITCH, WAREHOUSE = "127.0.0.1", "192.0.2.2", "198.51.100.4", "192.0.2.9"
DECISIONS = ("--decide", "Contractors=skip", "--group", f"{STAFF}={GROUP}", "--timezone", "UTC")
WEEK = timedelta(days=7)
START = datetime(2026, 11, 16)
_ROUND = 100
"""The logins of a round, each of which has all kinds of logins."""


def people(number: int) -> list[str]:
    """Return the names of the people of the domain who are in the group of the staff: the contractor, and others."""
    return [CONTRACTOR, *(f"user{each}" for each in range(number))]


def exported() -> str:
    """Return the export of its NPS."""
    group = f'NTGROUPS("{STAFF}")'
    port = 'MATCH("NAS-Port-Type=^{}$")'.format
    policies = [
        policy("Contractors", 1, ['MATCH("User-Name=^ext-[0-9]+$")', port(5)]),
        policy("Staff VPN", 2, [group, port(5)]),
        policy("Staff Wi-Fi", 3, [group, port(19), 'MATCH("Called-Station-Id=.*:Tools$")']),
        policy("Staff LAN", 4, [group, port(15)]),
    ]
    methods = {"msNPAuthenticationType2": [1, 4]}
    answers = {
        "msRADIUSTunnelType": 13, "msRADIUSTunnelMediumType": 6, "msRADIUSTunnelPrivateGroupId": "20",
        "msRADIUSFilterId": "staff",
    }  # fmt: skip
    profiles = [
        profile("Contractors", grants=False), profile("Staff VPN", **methods, msRADIUSClass="vpn"),
        profile("Staff Wi-Fi", **methods, **answers), profile("Staff LAN", **methods, **answers),
    ]  # fmt: skip
    clients = [
        client("VPN gateway", VPN, SECRET), client("Wi-Fi", WIFI, SECRET),
        client("Switches", "198.51.100.0/24", SECRET),
        client("Warehouse", "warehouse.example", SECRET),
    ]  # fmt: skip
    return export(clients, policies, profiles)


def week(logins: int, users: int) -> Iterator[Packet]:
    """Yield the logins of a week. users: the number of people beside the contractor and Frida."""
    for number in range(logins):
        kind, user = number % _ROUND, f"user{number % users}"
        station = f"02-00-00-00-{number % users >> 8:02X}-{number % users & 255:02X}"
        packet = Packet(user, START + WEEK * number / logins, station, number=number)
        yield _decided(replace(packet, **_place(kind)), kind)


def _place(kind: int) -> dict[str, str | int]:
    if kind < 40:
        return {"nas": WIFI, "port_type": 19, "called": "02-AA-00-00-00-02:Tools"}
    if kind < 70:
        return {"nas": VPN, "port_type": 5}
    return {"nas": WAREHOUSE if kind == 99 else SWITCH, "port_type": 15}


def _decided(packet: Packet, kind: int) -> Packet:
    """Return a login with the answer of NPS."""
    name = {19: "Staff Wi-Fi", 5: "Staff VPN", 15: "Staff LAN"}[packet.port_type]
    if kind == 0:  # another network
        return replace(packet, called="02-AA-00-00-00-02:Guests", policy="", reason=48)
    if kind in (1, 41):  # a wrong password
        return replace(packet, policy=name, reason=16)
    if kind == 42:
        return replace(packet, user=CONTRACTOR, policy="Contractors", reason=65)
    if kind == 2:
        return replace(packet, user=FRIDA, policy=name)
    return replace(packet, policy=name)
