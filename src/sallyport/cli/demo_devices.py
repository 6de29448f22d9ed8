"""The simulated devices of the demo. They send the attributes that real products send (see `radius.vendors`), and the
logins of users.

A sender is an address of this machine that is registered as a RADIUS client. A sender may forward the logins of several
NAS.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from sallyport.cli.radius import NoAnswerError, RadiusAnswer, RadiusClient
from sallyport.radius.attributes import push_attribute, push_vendor_attribute
from sallyport.radius.dictionary import Dictionary, load
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT, CODE_NAMES

REALM = "EXAMPLE"
USERS = {
    "alice": b"correct horse battery",
    "bob": b"Tr0ub4dor&3",
    "carol": b"winter is coming",
    "dave": "grün wie Gras".encode(),
}


@dataclass(frozen=True)
class Login:
    """A login of the demo.

    user: the name as typed. password: the password as typed; None for the user's correct password.
    """

    user: str
    password: bytes | None = None
    chap: bool = False
    accepted: bool = True

    def octets(self) -> bytes:
        """Return the password to send."""
        return USERS[self.user.rpartition("\\")[2]] if self.password is None else self.password


@dataclass(frozen=True)
class Nas:
    """A device (NAS) on which users log in. product: the product that the inventory must detect."""

    product: str
    medium: str
    attributes: tuple[str, ...]
    logins: tuple[Login, ...]


@dataclass(frozen=True)
class Sender:
    """A host that sends RADIUS requests. product: the product that the inventory must detect for this host. It is empty
    if the host is the NAS itself."""

    name: str
    source: str
    nas: tuple[Nas, ...]
    product: str = ""
    signed: bool = True
    secret: bytes = field(default=b"", compare=False)

    def expected(self) -> list[tuple[str, str, str]]:
        """Return the values that the inventory must show for each device: (device_type, nas_device_type, medium)."""
        return [(self.product or nas.product, nas.product, nas.medium) for nas in self.nas]


@dataclass(frozen=True)
class Outcome:
    """The result of one login."""

    sender: Sender
    nas: Nas
    login: Login
    answer: RadiusAnswer | None
    trouble: str = ""

    @property
    def as_expected(self) -> bool:
        """Return whether the answer is authentic and has the expected code."""
        wanted = ACCESS_ACCEPT if self.login.accepted else ACCESS_REJECT
        return self.answer is not None and self.answer.code == wanted and self.answer.signed

    def answer_text(self) -> str:
        """Return the name of the answer's code. Return the error if there is no answer."""
        return CODE_NAMES[self.answer.code] if self.answer is not None else self.trouble


NPS = Nas(
    product="Microsoft RRAS",
    medium="Virtual",
    attributes=(
        "NAS-IP-Address = 192.0.2.20",
        "Service-Type = Framed-User",
        "Framed-Protocol = PPP",
        "NAS-Port = 128",
        "NAS-Port-Type = Virtual",
        "Calling-Station-Id = 203.0.113.20",
        "MS-RAS-Vendor = 311",
        "MS-Network-Access-Server-Type = Remote-Access-Server",
        "MS-RAS-Client-Version = MSRASV5.20",
        "Proxy-State = 0xfe80000000000000b5f9a2c7d01e334600000007",
    ),
    logins=(Login(rf"{REALM}\alice"), Login(rf"{REALM}\bob"), Login(r"ELSEWHERE\bob", b"guess", accepted=False)),
)
SWITCH = Nas(
    product="Cisco IOS",
    medium="Ethernet",
    attributes=(
        "NAS-IP-Address = 192.0.2.93",
        "NAS-Identifier = access-sw-3",
        "NAS-Port-Type = Ethernet",
        "NAS-Port-Id = GigabitEthernet1/0/5",
        "NAS-Port = 50105",
        "Calling-Station-Id = 00-00-5E-00-53-01",
        "Cisco-AVPair = audit-session-id=C000025D0000001A8F156778",
        "Cisco-AVPair = method=webauth",
    ),
    logins=(Login("carol"), Login("carol", b"winter", accepted=False), Login("mallory", b"guess", accepted=False)),
)
FORTIGATE = Nas(
    product="Fortinet FortiGate",
    medium="Virtual",
    attributes=(
        "NAS-IP-Address = 192.0.2.40",
        "NAS-Identifier = fw1",
        "NAS-Port-Type = Virtual",
        "Called-Station-Id = 192.0.2.40",
        "Calling-Station-Id = 203.0.113.7",
        "Acct-Session-Id = 2ba9f0c3",
        "Connect-Info = vpn-ssl",
        "Fortinet-Vdom-Name = root",
    ),
    logins=(Login("alice"), Login("bob"), Login("bob", b"tr0ub4dor&3", accepted=False)),
)
ARUBA = Nas(
    product="Aruba Wireless",
    medium="Wireless",
    attributes=(
        "NAS-IP-Address = 192.0.2.60",
        "NAS-Identifier = wlc-hq",
        "NAS-Port-Type = Wireless-802.11",
        "Calling-Station-Id = f262e70000c6",
        "Called-Station-Id = d015a60000d0",
        "Aruba-Essid-Name = corp",
        "Aruba-Location-Id = AP-2-14",
        "Aruba-AP-Group = headquarters",
    ),
    logins=(Login("carol"), Login("dave", "grün wie Gras".encode("latin-1")), Login("alice")),
)
HOTSPOT = Nas(
    product="MikroTik RouterOS",
    medium="Wireless",
    attributes=(
        "NAS-IP-Address = 192.0.2.80",
        "NAS-Identifier = Lobby",
        "NAS-Port-Type = Wireless-802.11",
        "NAS-Port = 2148532244",
        "Calling-Station-Id = 00:00:5E:00:53:4D",
        "Called-Station-Id = hs-vlan888",
        "Mikrotik-Host-IP = 10.5.88.2",
    ),
    logins=(Login("bob", chap=True), Login("carol", chap=True), Login("carol", b"hotspot", chap=True, accepted=False)),
)
BRANCH_SWITCH = Nas(
    product="Juniper EX",
    medium="Ethernet",
    attributes=(
        "NAS-IP-Address = 192.0.2.71",
        "NAS-Identifier = ex7",
        "NAS-Port-Type = Ethernet",
        "NAS-Port-Id = ge-0/0/6.0",
        "Calling-Station-Id = 00-00-5e-00-53-71",
        "Attr-26.2636.52 = Juniper-Switching",
        "Proxy-State = 0x313831",
    ),
    logins=(Login("dave"),),
)
BRANCH_VPN = Nas(
    product="Palo Alto PAN-OS",
    medium="Unknown",
    attributes=(
        "NAS-IP-Address = 192.0.2.41",
        "NAS-Identifier = mfa-profile",
        "PaloAlto-Client-Source-IP = 203.0.113.9",
        "PaloAlto-Client-OS = Windows",
        "PaloAlto-Client-Hostname = LAPTOP7",
        "Proxy-State = 0x313832",
    ),
    logins=(Login("alice"), Login("dave", b"green as grass", accepted=False)),
)

SENDERS = (
    Sender("nps-01", "127.0.0.11", (NPS,), product="Microsoft NPS", signed=False),
    Sender("access-sw-3", "127.0.0.12", (SWITCH,)),
    Sender("fw1", "127.0.0.13", (FORTIGATE,)),
    Sender("wlc-hq", "127.0.0.14", (ARUBA,)),
    Sender("lobby", "127.0.0.15", (HOTSPOT,), signed=False),
    Sender("branch-radius", "127.0.0.16", (BRANCH_SWITCH, BRANCH_VPN), product="FreeRADIUS"),
)


def send(sender: Sender, server: tuple[str, int]) -> list[Outcome]:
    """Send all logins of a sender one after another. Return the results."""
    dictionary = load()
    with RadiusClient(server, sender.secret, source=sender.source) as client:
        return [
            outcome
            for nas in sender.nas
            for outcome in _logins(client, sender, nas, octets_of(dictionary, nas.attributes))
        ]


def _logins(client: RadiusClient, sender: Sender, nas: Nas, attributes: bytes) -> Iterator[Outcome]:
    for login in nas.logins:
        try:
            answer = client.login(
                login.user.encode(), login.octets(), attributes, chap=login.chap, signed=sender.signed
            )
            yield Outcome(sender, nas, login, answer)
        except NoAnswerError as error:
            yield Outcome(sender, nas, login, None, str(error))


def octets_of(dictionary: Dictionary, lines: tuple[str, ...]) -> bytes:
    """Encode attributes that are written as lines such as `NAS-Port = 7`."""
    octets = b""
    for line in lines:
        name, _, text = line.partition(" = ")
        attribute, value = dictionary.attribute(name), dictionary.encode(name, text)
        if attribute.vendor:
            octets += push_vendor_attribute(attribute.vendor, attribute.number, value)
        else:
            octets += push_attribute(attribute.number, value)
    return octets
