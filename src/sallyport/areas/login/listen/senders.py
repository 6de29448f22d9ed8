"""Unknown and unproven senders of datagrams, counted by address and cause in a table of limited size.

The last datagram of each cause is stored. It is parsed only when an admin lists the senders. Therefore a flood of
datagrams costs little. The attributes of a stored datagram may be forged. They help an admin to recognize a device, but
no decision depends on them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

import structlog

from sallyport.areas.clients.client import Client
from sallyport.areas.login.listen.causes import (
    CERTIFICATE,
    OF_CONNECTIONS,
    UNKNOWN,
    UNPROVEN,
    Cause,
    cause_of,
    of_certificate,
)
from sallyport.base.bounded import BoundedMap
from sallyport.base.clock import SECOND, iso
from sallyport.base.errors import PacketError
from sallyport.base.wire import JSON, Row
from sallyport.radius.attributes import NAS_IDENTIFIER
from sallyport.radius.packet import CODE_NAMES, Request, peek
from sallyport.radius.vendors import identify

log = structlog.get_logger()

MAX_SENDERS = 1024
NO_TENANT: Final = 0
"""The tenant number under which addresses without a RADIUS client are counted."""
LOG_INTERVAL_US: Final = SECOND
"""Minimum time between two log entries about senders of one tenant, in microseconds."""


@dataclass(slots=True)
class Sender:
    """A source address whose datagrams got no answer for one reason.

    packets: the number of these datagrams. first_at, last_at: the times of the first and the last datagram, in
    microseconds. reason: the reason for dropping them. client: the RADIUS client that sent the last datagram, or None.
    datagram: the octets of the last datagram. option: the option of `client add` for the certificate of a RadSec peer,
    or empty. is_over: whether a later request of the same kind was answered.
    """

    host: str
    packets: int
    first_at: int
    last_at: int
    reason: str
    client: Client | None = None
    datagram: bytes = b""
    option: str = ""
    is_over: bool = False

    def request(self) -> Request | None:
        """Parse the last datagram. Return None if it is no RADIUS request."""
        try:
            return peek(self.datagram)
        except PacketError:
            return None


@dataclass(frozen=True, slots=True)
class Sent:
    """What the last datagram of a sender tells. packet: the name of the packet type. product: the likely product, or
    empty."""

    packet: str = ""
    nas_identifier: str = ""
    product: str = ""
    signed: bool = False


def sent_by(sender: Sender) -> Sent:
    """Return what the last datagram of a sender tells."""
    request = sender.request()
    if request is None:
        return Sent()
    product = identify(request, source=sender.host).product
    name = "" if product is None else product.product
    return Sent(CODE_NAMES[request.code], request.text(NAS_IDENTIFIER), name, request.signed)


@dataclass(slots=True)
class _Address:
    """The senders of one address by reason, the latest last. logged: the reason that was logged last."""

    by_reason: dict[str, Sender] = field(default_factory=dict)
    logged: str = ""


class Senders:
    """The table of senders.

    The RADIUS clients of a tenant together have a share of the table. All unknown addresses together have one share. If
    the table is full, one address is removed from the largest share: the address whose last datagram is the oldest.
    changes: the number of changes so far. lists_senders: whether a sender was listed. If not, the path of a login
    skips `answered`.
    """

    def __init__(self, *, max_senders: int = MAX_SENDERS) -> None:
        self._addresses = BoundedMap[str, _Address](max_senders)
        self._logged_at: dict[int, int] = {}  # by tenant
        self.changes = 0
        self.lists_senders = False

    def note(
        self, host: str, reason: str, at: int, *, client: Client | None = None, datagram: bytes = b"", option: str = ""
    ) -> Sender | None:
        """Count a datagram without an answer. Return its sender if the caller must log the sender, otherwise None.

        The caller must log the sender if its address or its reason is new. There are two exceptions. A failed login is
        not logged, and a tenant gets at most one log entry a second. client: the RADIUS client that sent the datagram,
        or None. option: see `Sender`.
        """
        address, tenant_id = self._addresses.get(host) or _Address(), NO_TENANT if client is None else client.tenant_id
        sender = address.by_reason.pop(reason, None) or Sender(host, 0, at, at, reason)
        address.by_reason[reason] = sender
        sender.packets += 1
        sender.last_at = at
        sender.client, sender.datagram, sender.option, sender.is_over = client, datagram, option, False
        self._addresses.put(host, address, tenant_id)
        self.changes += 1
        self.lists_senders = True
        since_us = abs(at - self._logged_at.get(tenant_id, -LOG_INTERVAL_US))
        if reason in (address.logged, UNPROVEN) or since_us < LOG_INTERVAL_US:
            return None
        address.logged, self._logged_at[tenant_id] = reason, at
        return sender

    def refused(self, host: str, reason: str, at: int, client: Client | None, datagram: bytes) -> None:
        """Count a datagram without an answer. If the cause is new for this sender, log it with its remedy."""
        sender = self.note(host, reason, at, client=client, datagram=datagram)
        if sender is not None:
            why = cause(sender, client)
            words = {"reason": reason, "verdict": why.verdict, "remedy": why.remedy}
            name = "" if client is None else client.name
            log.warning("radius_sender_refused", source=host, client=name, **words)

    def answered(self, host: str, code: int) -> None:
        """Record that a request was answered. code: its packet code. A cause of the address whose last dropped datagram
        had the same packet code is no longer listed.

        If several devices share the address, another datagram may be dropped later. Then the cause is listed again,
        with the number of all its dropped datagrams.
        """
        self._end(host, lambda sender: sender.datagram[:1] == bytes((code,)))

    def welcomed(self, host: str) -> None:
        """Record that a peer has connected by RadSec. A refused connection of the address is no longer listed."""
        self._end(host, lambda sender: sender.reason in OF_CONNECTIONS)

    def _end(self, host: str, is_over: Callable[[Sender], bool]) -> None:
        address = self._addresses.get(host)
        if address is None:
            return
        for sender in address.by_reason.values():
            if not sender.is_over and is_over(sender):
                sender.is_over, address.logged = True, ""
                self.changes += 1

    def forget(self, host: str) -> None:
        """Remove an unknown address, because it now belongs to a RADIUS client."""
        address = self._addresses.get(host)
        if address is not None and UNKNOWN in address.by_reason:
            del address.by_reason[UNKNOWN]
            if not address.by_reason:
                self._addresses.pop(host)
        self.changes += 1

    def all(self) -> list[Sender]:
        """Return the senders to list, the most recent address first, and of an address the most recent cause first.
        Senders whose cause is over are left out."""
        addresses = self._addresses.values()[::-1]
        return [each for address in addresses for each in [*address.by_reason.values()][::-1] if not each.is_over]


def listed(
    senders: Senders, find_client: Callable[[str], Client | None], node: str = "", most: int = MAX_SENDERS
) -> list[Row]:
    """Return the senders as rows for the command line, the most recent first, at most `most` rows.

    An unknown address that now belongs to a RADIUS client is removed from the table. find_client: a function that
    returns the RADIUS client of an address. node: the name of this node.
    """
    for each in senders.all():
        if each.reason == UNKNOWN and find_client(each.host) is not None:
            senders.forget(each.host)
    return [{**_row(each, find_client(each.host)), "node": node} for each in senders.all()[:most]]


def still_unknown(rows: Iterable[Row], find_client: Callable[[str], Client | None]) -> list[Row]:
    """Return the rows of other nodes, without unknown addresses that now belong to a RADIUS client. The other nodes
    write such an address until its next request is answered."""
    return [row for row in rows if row["reason"] != UNKNOWN or find_client(str(row["address"])) is None]


def merged(rows: Iterable[Row]) -> list[Row]:
    """Merge the rows that several workers or nodes have listed, the latest first. Several of them may list the same
    address and cause: datagrams from different ports of an address may go to different workers, and a device may change
    to another node. The row then has the names of all these nodes."""
    found: dict[tuple[JSON, JSON], Row] = {}
    for row in sorted(rows, key=lambda row: str(row["last"]), reverse=True):
        latest = found.setdefault((row["address"], row["reason"]), row)
        if latest is not row:
            latest["packets"] = int(str(latest["packets"])) + int(str(row["packets"]))
            latest["first"] = min(str(latest["first"]), str(row["first"]))
            latest["node"] = ", ".join(sorted({*str(latest["node"]).split(", "), str(row["node"])}))
    return list(found.values())


def cause(sender: Sender, client: Client | None) -> Cause:
    """Return why the datagrams of a sender got no answer. client: the RADIUS client that sent it, or None."""
    if sender.reason == CERTIFICATE:
        return of_certificate(sender.host, sender.option)
    return cause_of(sender.reason, sender.host, client, sender.request(), sent_by(sender).product)


def _row(sender: Sender, present: Client | None) -> Row:
    """Return the row of a sender for the command line. present: the RADIUS client that has its address now, or None."""
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
