"""Unknown and unproven senders of datagrams. They are counted by address in a table of bounded size.

The last datagram of each sender is stored, and parsed only when an admin lists the senders, so a flood costs no more
than an entry in the table. The attributes of the datagram are not authentic: they help an admin to recognize a device,
but no decision uses them.
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
"""The owner of addresses that belong to no RADIUS client."""
LOG_INTERVAL_US: Final = SECOND
"""Minimum time between two log lines about the senders of one tenant, in microseconds."""


@dataclass(slots=True)
class Sender:
    """A source address. Times are in microseconds. reason: the discard reason of its last datagram. client: the RADIUS
    client of that datagram; None if there is none. datagram: the last datagram as received. logged: the reason that was
    logged last. is_over: whether a later request of the same kind was successful.
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
        """Return the last datagram as a request; None if it is not a RADIUS request."""
        try:
            return peek(self.datagram)
        except PacketError:
            return None


@dataclass(frozen=True, slots=True)
class Sent:
    """A description of a sender by its last datagram. packet: the name of the packet type. product: the likely product;
    empty if unknown."""

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
    """The bounded table of senders. The RADIUS clients of each tenant have a share of the table, and all unknown
    addresses together have one share. If the table is full, the longest silent address in the largest share is
    removed."""

    def __init__(self, *, max_senders: int = MAX_SENDERS) -> None:
        self._senders = BoundedMap[str, Sender](max_senders)
        self._logged_at: dict[int, int] = {}  # by tenant

    def note(
        self, host: str, reason: str, at: int, *, client: Client | None = None, datagram: bytes = b""
    ) -> Sender | None:
        """Count a datagram without an answer. client: the RADIUS client that sent it. Return the sender if it must be
        logged, else None. It must be logged if its address or reason is new, if it is not a failed login, and if the
        last log line about this tenant is at least a second old."""
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
        """Record a successful request. If the last refused datagram has the same packet code, its cause is over.

        If several devices share the address, the next refusal lists the sender again, with all its packets.
        """
        sender = self._senders.get(host)
        if sender is not None and sender.datagram[:1] == bytes((code,)):
            sender.is_over, sender.logged = True, ""

    def forget(self, host: str) -> None:
        """Remove an address because it now belongs to a RADIUS client."""
        self._senders.pop(host)

    def all(self) -> list[Sender]:
        """Return the senders whose cause is not over, the most recent first."""
        return [each for each in self._senders.values()[::-1] if not each.is_over]


def listed(senders: Senders, find_client: Callable[[str], Client | None]) -> list[Row]:
    """Return the senders for the command line. find_client: returns the RADIUS client that an address belongs to now.
    If it does, its packets as an unknown address are removed."""
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
    client = sender.client  # a RadSec client is not identified by its address
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
