"""Senders of datagrams that are unknown or not proven, counted by address in a table of bounded size.

The last datagram of each is kept unparsed until an admin asks for it, so a flood costs nothing but its entry in the
table. Its attributes are not authentic: they help an admin to recognise a device, and no decision uses them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sallyport.base.bounded import BoundedMap
from sallyport.base.clock import iso
from sallyport.base.errors import PacketError
from sallyport.base.wire import Row
from sallyport.radius.attributes import NAS_IDENTIFIER
from sallyport.radius.packet import CODE_NAMES, Request, peek
from sallyport.vendors import identify

MAX_SENDERS = 1024
STRANGERS: Final = 0
"""The owner of the addresses that no RADIUS client has."""
GARBLED: Final = "garbled_password"
"""The reason of an unsigned login whose password was hidden under another secret, as it seems."""
UNKNOWN: Final = "unknown_client"
_WRONG_SECRET: Final = frozenset({"bad_authenticator", "bad_message_authenticator", GARBLED})
_UNPROVEN: Final = "unverified"


class Verdict(StrEnum):
    """What an admin should make of a sender."""

    STRANGER = "no RADIUS client has this address"
    WRONG_SECRET = "wrong secret"  # noqa: S105  a verdict
    REFUSED = "a known client whose packets are refused"
    UNPROVEN = "unsigned logins that failed"
    NOISE = "noise: no RADIUS request"


@dataclass(slots=True)
class Sender:
    """An address that sent. Times in microseconds. reason: why its last datagram was of no use. client: the RADIUS
    client that has the address; empty for none. datagram: the last one, as it came."""

    host: str
    packets: int
    first_at: int
    last_at: int
    reason: str
    client: str = ""
    datagram: bytes = b""

    def request(self) -> Request | None:
        """The last datagram as a request; None where it is none."""
        try:
            return peek(self.datagram)
        except PacketError:
            return None

    def verdict(self) -> Verdict:
        """What to make of it."""
        if self.reason in _WRONG_SECRET:
            return Verdict.WRONG_SECRET
        if self.reason == _UNPROVEN:
            return Verdict.UNPROVEN
        if self.request() is None:
            return Verdict.NOISE
        return Verdict.REFUSED if self.client else Verdict.STRANGER


@dataclass(frozen=True, slots=True)
class Sent:
    """What a sender's last datagram says of itself. product: what it looks like, empty where nothing tells."""

    packet: str = ""
    nas_identifier: str = ""
    product: str = ""
    signed: bool = False


def sent_by(sender: Sender) -> Sent:
    """Look into the last datagram of a sender."""
    request = sender.request()
    if request is None:
        return Sent()
    product = identify(request, source=sender.host).product
    name = "" if product is None else product.product
    return Sent(CODE_NAMES[request.code], request.text(NAS_IDENTIFIER), name, request.signed)


class Senders:
    """The addresses. The RADIUS clients of each tenant have a share of the table, and so have all unknown addresses
    together. In a full table, the address of the largest share that has been silent longest makes room."""

    def __init__(self, *, max_senders: int = MAX_SENDERS) -> None:
        self._senders = BoundedMap[str, Sender](max_senders)

    def note(
        self, host: str, reason: str, at: int, *, client: str = "", tenant_id: int = STRANGERS, datagram: bytes = b""
    ) -> bool:
        """Count a datagram. tenant_id: of the client. True: the address is new, or its last one was of no use for
        another reason."""
        sender = self._senders.get(host)
        is_new = sender is None or sender.reason != reason
        if sender is None:
            sender = Sender(host, 0, at, at, reason)
        sender.packets += 1
        sender.last_at = at
        sender.reason, sender.client, sender.datagram = reason, client, datagram
        self._senders.put(host, sender, tenant_id)
        return is_new

    def forget(self, host: str) -> None:
        """An address that has become a RADIUS client's is no longer among them."""
        self._senders.pop(host)

    def all(self) -> list[Sender]:
        """Those who sent last come first."""
        return self._senders.values()[::-1]


def listed(senders: Senders, is_client: Callable[[str], bool]) -> list[Row]:
    """Return the senders for the command line. is_client: whether a RADIUS client has an address by now; its packets
    as a stranger are forgotten."""
    for each in senders.all():
        if each.reason == UNKNOWN and is_client(each.host):
            senders.forget(each.host)
    return [_row(each) for each in senders.all()]


def _row(sender: Sender) -> Row:
    sent = sent_by(sender)
    return {
        "address": sender.host,
        "packets": sender.packets,
        "reason": sender.reason,
        "verdict": sender.verdict().value,
        "client": sender.client,
        "packet": sent.packet,
        "nas_identifier": sent.nas_identifier,
        "product": sent.product,
        "signed": sent.signed,
        "first": iso(sender.first_at),
        "last": iso(sender.last_at),
    }
