"""Copies of the traffic of another server: requests of RADIUS clients that are marked as shadow.

The listener passes such a datagram on before it parses it, so it never reaches a login: it is not answered, counted,
deduplicated or listed as a sender. The queue has a fair share for each tenant; a copy above it is dropped.

The copy has no answer. It gets one in one of three ways:

- it was made after authentication, and its Reply-Message is `Access-Accept` or `Access-Reject`;
- an Accounting-Request that starts a session of the same user, station and NAS shows that the login was accepted;
- a log of the other server has the login.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog
import trio

from sallyport.areas.clients.client import Client
from sallyport.areas.domains.domain import DomainTable
from sallyport.areas.login.identity import default_domain
from sallyport.areas.policy.attempt import Arrival
from sallyport.areas.policy.bypass.match import requested_station
from sallyport.areas.preview.tally import TimeSlice
from sallyport.areas.shadow.attributes import ShadowAttributes
from sallyport.areas.shadow.repo import NewShadow
from sallyport.areas.shadow.service import ShadowLogins
from sallyport.areas.shadow.shadow_login import MAX_TEXT, Kind, OldAnswer
from sallyport.base.bounded import BoundedMap
from sallyport.base.clock import SECOND
from sallyport.base.errors import NotFound, PacketError, StoreError
from sallyport.base.fair import FairShares
from sallyport.radius.attributes import (
    ACCT_STATUS_TYPE,
    REPLY_MESSAGE,
    STATE,
    USER_NAME,
)
from sallyport.radius.duplicates import Source
from sallyport.radius.packet import ACCESS_REQUEST, ACCOUNTING_REQUEST, Request, as_name, decode
from sallyport.radius.password import Method, method_of

MAX_WAITING: Final = 5_000
AT_ONCE: Final = 200
PAUSE_S: Final = 0.5
TOLD_US: Final = 60 * SECOND
"""Minimum time between two log events about the same client, in microseconds."""
MAX_TOLD: Final = 1024
_START: Final = 1
_ANSWERS: Final = {b"Access-Accept": OldAnswer.ACCEPT, b"Access-Reject": OldAnswer.REJECT}
HEADER: Final = 20

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Copy:
    """A datagram from a shadow client. at: the time of arrival, in microseconds."""

    datagram: bytes
    client: Client
    source: Source
    at: int


class Copies:
    """The copies that wait to be recorded. `run` must be running."""

    def __init__(
        self,
        service: ShadowLogins,
        attributes: ShadowAttributes,
        domains: Callable[[], DomainTable],
    ) -> None:
        self._service = service
        self._attributes = attributes
        self._domains = domains
        self._waiting = FairShares[int, int, Copy](MAX_WAITING)
        self._told = BoundedMap[tuple[int, str], int](MAX_TOLD)
        self._arrived = trio.Event()

    def receive(self, datagram: bytes, client: Client, source: Source, at: int) -> None:
        """Keep a copy until it is recorded. If the tenant has used up its share, the copy is dropped."""
        if self._waiting.put(client.tenant_id, client.id, Copy(datagram, client, source, at)):
            self._arrived.set()
        else:
            self._tell(client, "too many copies", at)

    async def run(self) -> None:
        """Record copies, until cancelled. They are collected for PAUSE_S, so that many share a transaction."""
        while True:
            await self._arrived.wait()
            await trio.sleep(PAUSE_S)
            self._arrived = trio.Event()
            await self.flush()

    async def flush(self) -> None:
        """Record all copies that wait."""
        while self._waiting:
            await self._record()

    async def _record(self) -> None:
        """Record up to AT_ONCE waiting copies. If the store fails, they are lost."""
        by_domain: dict[int, list[NewShadow]] = {}
        time_slice = TimeSlice()
        for _ in range(min(AT_ONCE, len(self._waiting))):
            copy = self._waiting.take()
            domain = default_domain(copy.client, self._domains())
            try:
                login = self._read(copy) if domain is not None else None
            except PacketError as error:
                self._tell(copy.client, error.reason, copy.at)
                continue
            if domain is None:
                self._tell(copy.client, "no_domain", copy.at)
            elif login is not None:
                by_domain.setdefault(domain.id, []).append(login)
            await time_slice()
        for domain_id, logins in by_domain.items():
            try:
                await self._service.record(domain_id, logins)
            except NotFound:
                continue  # the domain was removed meanwhile
            except StoreError as error:
                log.warning("shadow_copies_not_recorded", copies=len(logins), error=str(error))

    def _read(self, copy: Copy) -> NewShadow | None:
        """Return what is recorded of a copy, or None for a copy that is no login: a further round of EAP, another kind
        of accounting, Status-Server. Raises PacketError."""
        request = decode(copy.datagram, copy.client.secret)
        kind, answer = _kind(request)
        name = as_name(request.first.get(USER_NAME, b""))[:MAX_TEXT]
        if kind is None or not name:
            return None
        facts = self._attributes.of_request(request.data[HEADER:])
        return NewShadow(
            at=copy.at,
            kind=kind,
            client=copy.client.name,
            user_name=name,
            station=facts.station,
            nas=facts.nas or copy.source[0],
            method="" if kind is Kind.START else _method(request, copy),
            attributes=facts.octets,
            answer=answer,
            place=f"copy from {copy.client.name}"[:MAX_TEXT],
            mark=b"%d %d %d " % (copy.client.id, request.code, request.identifier) + request.authenticator,
        )

    def _tell(self, client: Client, reason: str, at: int) -> None:
        """Log that a copy was dropped, at most once a minute for each client and reason."""
        told = self._told.get((client.id, reason))
        if told is None or at - told >= TOLD_US:
            self._told.put((client.id, reason), at, client.tenant_id)
            log.warning("shadow_copy_dropped", client=client.name, reason=reason)


def _kind(request: Request) -> tuple[Kind | None, OldAnswer]:
    first = request.first
    if request.code == ACCOUNTING_REQUEST:
        return (Kind.START if request.integer(ACCT_STATUS_TYPE) == _START else None), OldAnswer.ACCEPT
    if request.code != ACCESS_REQUEST:
        return None, OldAnswer.NONE
    answer = _ANSWERS.get(first.get(REPLY_MESSAGE, b""))
    if answer is not None:
        return Kind.ANSWERED, answer
    return (None if STATE in first else Kind.COPY), OldAnswer.NONE


def _method(request: Request, copy: Copy) -> str:
    """Return the authentication method. A request for MAC authentication bypass is recognised by its password, which
    is not stored."""
    method = method_of(request)
    is_station = requested_station(Arrival(request, copy.client, copy.source, copy.at), method)
    return Method.MAB if is_station else method
