"""Unknown and unproven senders of datagrams, counted by address in a table of bounded size.

The last datagram of each is kept unparsed until an admin asks for it, so a flood costs only its entry in the table. Its
attributes are not authentic: they help an admin to recognise a device, and no decision uses them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import structlog

from sallyport.base.bounded import BoundedMap
from sallyport.base.clock import SECOND, iso
from sallyport.base.errors import PacketError
from sallyport.base.wire import JSON, Row
from sallyport.inventory.clients.client import Client
from sallyport.listen.causes import UNKNOWN, UNPROVEN, Cause, cause_of
from sallyport.radius.attributes import NAS_IDENTIFIER
from sallyport.radius.packet import CODE_NAMES, Request, peek
from sallyport.vendors import identify

log = structlog.get_logger()

MAX_SENDERS = 1024
STRANGERS: Final = 0
"""The owner of the addresses that no RADIUS client has."""
LOG_INTERVAL_US: Final = SECOND
"""Between two log lines about the senders of one tenant."""


@dataclass(slots=True)
class Sender:
    """An address that sent. Times in microseconds. reason: why its last datagram was of no use. client: the RADIUS
    client that sent it; None for none. datagram: the last one, as it came. logged: the reason that the log has.
    is_over: whether a later request of the same kind had success.
    """

    host: str
    packets: int
    first_at: int
    last_at: int
    reason: str
    client: Client | None = None
    datagram: bytes = b""
    logged: str = ""
    is_over: bool = False

    def request(self) -> Request | None:
        """Return the last datagram as a request; None if it is none."""
        try:
            return peek(self.datagram)
        except PacketError:
            return None


@dataclass(frozen=True, slots=True)
class Sent:
    """What a sender's last datagram says about it. product: the likely product; empty if unknown."""

    packet: str = ""
    nas_identifier: str = ""
    product: str = ""
    signed: bool = False


def sent_by(sender: Sender) -> Sent:
    """Describe the last datagram of a sender."""
    request = sender.request()
    if request is None:
        return Sent()
    product = identify(request, source=sender.host).product
    name = "" if product is None else product.product
    return Sent(CODE_NAMES[request.code], request.text(NAS_IDENTIFIER), name, request.signed)


class Senders:
    """The addresses. The RADIUS clients of each tenant have a share of the table, and all unknown addresses together
    have one. If the table is full, the address of the largest share that has been silent longest is removed."""

    def __init__(self, *, max_senders: int = MAX_SENDERS) -> None:
        self._senders = BoundedMap[str, Sender](max_senders)
        self._logged_at: dict[int, int] = {}  # by tenant

    def note(
        self, host: str, reason: str, at: int, *, client: Client | None = None, datagram: bytes = b""
    ) -> Sender | None:
        """Count a datagram. client: the RADIUS client that sent it. Return the sender if the log should have a line
        about it: its address or its reason is new there, it is no failed login, and the last line about its tenant is a
        second old."""
        sender, tenant_id = self._senders.get(host), STRANGERS if client is None else client.tenant_id
        if sender is None:
            sender = Sender(host, 0, at, at, reason)
        sender.packets += 1
        sender.last_at = at
        sender.reason, sender.client, sender.datagram, sender.is_over = reason, client, datagram, False
        self._senders.put(host, sender, tenant_id)
        since_us = abs(at - self._logged_at.get(tenant_id, -LOG_INTERVAL_US))
        if reason in (sender.logged, UNPROVEN) or since_us < LOG_INTERVAL_US:
            return None
        sender.logged, self._logged_at[tenant_id] = reason, at
        return sender

    def refused(self, host: str, reason: str, at: int, client: Client | None, datagram: bytes) -> None:
        """Count a datagram without an answer, and log the cause and its remedy if they are new."""
        sender = self.note(host, reason, at, client=client, datagram=datagram)
        if sender is not None:
            why = cause(sender, client)
            words = {"reason": reason, "verdict": why.verdict, "remedy": why.remedy}
            name = "" if client is None else client.name
            log.warning("radius_sender_refused", source=host, client=name, **words)

    def answered(self, host: str, code: int) -> None:
        """Record a success of a request of this code: the cause of an earlier refusal is over.

        If several devices share the address, the next refusal brings the sender back, with all its packets.
        """
        sender = self._senders.get(host)
        if sender is not None and sender.datagram[:1] == bytes((code,)):
            sender.is_over, sender.logged = True, ""

    def forget(self, host: str) -> None:
        """Remove an address that now belongs to a RADIUS client."""
        self._senders.pop(host)

    def all(self) -> list[Sender]:
        """Return the senders whose cause is not over, the latest first."""
        return [each for each in self._senders.values()[::-1] if not each.is_over]


def listed(senders: Senders, find_client: Callable[[str], Client | None]) -> list[Row]:
    """Return the senders for the command line. find_client: the RADIUS client that has an address by now; its packets
    as a stranger are forgotten."""
    for each in senders.all():
        if each.reason == UNKNOWN and find_client(each.host) is not None:
            senders.forget(each.host)
    return [_row(each, find_client(each.host)) for each in senders.all()]


def merged(rows: Iterable[Row]) -> list[Row]:
    """Return the senders that several workers have listed, the latest first. An address with several ports may be in
    the lists of several workers."""
    found: dict[JSON, Row] = {}
    for row in sorted(rows, key=lambda row: str(row["last"]), reverse=True):
        latest = found.setdefault(row["address"], row)
        if latest is not row:
            latest["packets"] = int(str(latest["packets"])) + int(str(row["packets"]))
            latest["first"] = min(str(latest["first"]), str(row["first"]))
    return list(found.values())


def cause(sender: Sender, client: Client | None) -> Cause:
    """Return the reason why a sender got no answer to its last datagram. client: the RADIUS client that sent it."""
    return cause_of(sender.reason, sender.host, client, sender.request(), sent_by(sender).product)


def _row(sender: Sender, present: Client | None) -> Row:
    """Return a sender for the command line. present: the RADIUS client that now has its address."""
    client = sender.client  # over RadSec, no client has the address
    if present is not None and (client is None or present.id == client.id):
        client = present
    sent, why = sent_by(sender), cause(sender, client)
    return {
        "address": sender.host,
        "packets": sender.packets,
        "reason": sender.reason,
        "verdict": why.verdict,
        "remedy": why.remedy,
        "client": "" if sender.client is None else sender.client.name,
        "packet": sent.packet,
        "nas_identifier": sent.nas_identifier,
        "product": sent.product,
        "signed": sent.signed,
        "first": iso(sender.first_at),
        "last": iso(sender.last_at),
    }
