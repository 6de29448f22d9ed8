"""What each product can do for a step-up: a second factor that a person proves on a page.

The page is brought to the person in one of two ways:

    challenge   the product shows the text of an Access-Challenge, and sends the typed answer
    waiting     the request waits while the person gets the page by mail; nothing can be typed

A proof is bound to its login by digits that the user types (`code`), or by the address of the station (`address`). For
this, the product must send it as Calling-Station-Id or Tunnel-Client-Endpoint. On Wi-Fi and on switch ports the station
is a MAC address and has no network yet, so only `unbound` is left.

The sources are those of `products`: P for a packet, S for source code, D for documentation, M for memory. A product
without a row is not known well enough to say anything about it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

CODE, ADDRESS, UNBOUND = "code", "address", "unbound"
"""The bindings of a proof to its login, as `areas.mfa.fields.Binding` has them."""


class Can(Enum):
    """Whether a product can do something. SOMETIMES: some of its clients, methods or settings can."""

    NO = "no"
    SOMETIMES = "sometimes"
    YES = "yes"


@dataclass(frozen=True, slots=True)
class StepUpSupport:
    """What a product can do. challenge: whether it shows a challenge. address: whether it sends the IP address of the
    station. note: what to know, for the guide. source: where this is from."""

    challenge: Can
    address: Can
    note: str
    source: str

    @property
    def by_challenge(self) -> tuple[str, ...]:
        """The bindings that are possible if the page is brought by a challenge."""
        if self.challenge is Can.NO:
            return ()
        return (CODE, ADDRESS, UNBOUND) if self.address is not Can.NO else (CODE, UNBOUND)

    @property
    def while_waiting(self) -> tuple[str, ...]:
        """The bindings that are possible if the page is brought by mail, while the request waits."""
        return (ADDRESS, UNBOUND) if self.address is not Can.NO else (UNBOUND,)

    def allows(self, binding: str, *, has_mail: bool) -> bool:
        """Return whether a binding is possible. has_mail: whether pages can be brought by mail."""
        return binding in self.by_challenge or (has_mail and binding in self.while_waiting)


_NETWORK: Final = StepUpSupport(Can.NO, Can.NO, "the station is a MAC address, and has no network yet", "P, D")
_PASSES: Final = StepUpSupport(Can.SOMETIMES, Can.SOMETIMES, "passes both on: the device behind it decides", "D, S")

SUPPORT: Final[Mapping[str, StepUpSupport]] = MappingProxyType(
    {
        "Cisco ASA": StepUpSupport(Can.YES, Can.YES, "", "P, D"),
        "F5 BIG-IP APM": StepUpSupport(Can.YES, Can.YES, "the address is Tunnel-Client-Endpoint", "S, M"),
        "Fortinet FortiGate": StepUpSupport(
            Can.SOMETIMES, Can.YES, "with IKEv2, FortiClient shows no challenge; SSL VPN and IKEv1 show it", "D, M"
        ),
        "Palo Alto PAN-OS": StepUpSupport(
            Can.SOMETIMES, Can.SOMETIMES, "GlobalProtect shows it; the address only where it is switched on", "D"
        ),
        "pam_radius": StepUpSupport(
            Can.YES, Can.SOMETIMES, "the address is that of the SSH client; Debian's version does not sign", "S"
        ),
        "strongSwan": StepUpSupport(Can.NO, Can.YES, "EAP only; the address is `IP[port]`", "S"),
        "Cisco IOS": StepUpSupport(
            Can.SOMETIMES, Can.SOMETIMES, "at the login of an administrator; on a switch port neither", "D"
        ),
        "MikroTik RouterOS": StepUpSupport(Can.NO, Can.SOMETIMES, "the address with L2TP and SSTP", "D, M"),
        "Microsoft RRAS": StepUpSupport(Can.NO, Can.YES, "the address is Tunnel-Client-Endpoint", "P, M"),
        "Microsoft RD Gateway": StepUpSupport(Can.NO, Can.NO, "sends no address of the client", "P"),
        "OpenVPN": StepUpSupport(Can.NO, Can.NO, "radiusplugin takes a challenge as a denial, and never signs", "S"),
        "pfSense": StepUpSupport(Can.NO, Can.NO, "the address is its own", "S"),
        "OPNsense": StepUpSupport(Can.NO, Can.NO, "sends no address of the client", "S"),
        **dict.fromkeys(("Aruba ClearPass", "Cisco ISE", "FreeRADIUS", "Microsoft NPS", "PacketFence"), _PASSES),
        **dict.fromkeys(
            (
                *("Aruba Wireless", "Cisco Catalyst 9800", "Cisco Meraki", "Cisco WLC", "HP ProCurve", "Huawei"),
                *("Juniper EX", "Ruckus", "Ubiquiti UniFi", "hostapd"),
            ),
            _NETWORK,
        ),
    }
)
"""What the products can do, by name. The other products are not known well enough."""


def unable(products: Iterable[str], binding: str, *, has_mail: bool) -> list[str]:
    """Return those of some products that cannot have a binding, sorted. Products that are not known are left out."""
    known = {each: SUPPORT[each] for each in products if each in SUPPORT}
    return sorted(name for name, support in known.items() if not support.allows(binding, has_mail=has_mail))


def is_impossible(products: Iterable[str], binding: str, *, has_mail: bool) -> bool:
    """Return whether no product can have a binding, although each of them is known."""
    found = set(products)
    return bool(found) and len(unable(found, binding, has_mail=has_mail)) == len(found)
