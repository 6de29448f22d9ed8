"""End and change sessions. The service finds the NAS, identifies the session to the NAS (RFC 5176 section 3), and
records the result. If the NAS does not know the session, the session has ended."""

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import structlog
import trio

from sallyport.areas.clients.client import Client
from sallyport.areas.domains.domain import Domain, DomainTable
from sallyport.areas.dynamic import repo
from sallyport.areas.dynamic.repo import Target
from sallyport.areas.dynamic.sender import Nas, NasAnswer, RequestOutcome, Sender
from sallyport.areas.login.identity import qualified
from sallyport.areas.policy.rules.rule import Reply
from sallyport.areas.policy.rules.translation import Translation
from sallyport.areas.sessions.repo import end_unknown
from sallyport.areas.sessions.session import SessionState
from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import Conflict, FieldError, Invalid, NotFound, invalid_field
from sallyport.base.mac import station_key
from sallyport.base.wire import JSON
from sallyport.metrics import DynamicMetrics
from sallyport.radius.attributes import (
    ACCT_SESSION_ID,
    CALLING_STATION_ID,
    CHARGEABLE_USER_IDENTITY,
    FRAMED_INTERFACE_ID,
    FRAMED_IP_ADDRESS,
    FRAMED_IPV6_PREFIX,
    NAS_IDENTIFIER,
    NAS_IP_ADDRESS,
    NAS_IPV6_ADDRESS,
    NAS_PORT,
    USER_NAME,
    pull_attributes,
    push_attribute,
)
from sallyport.radius.dynamic import NOT_FOUND, ROOM, RequestKind
from sallyport.store import audit
from sallyport.store.model import Store, Tx

MAX_SESSIONS: Final = 100
"""Maximum number of sessions in one call."""
AT_ONCE: Final = 128  # by tenant, so that silent NASes of one tenant do not delay other tenants
NO_SESSION: Final = "session not found"
NO_CLIENT: Final = "no RADIUS client that accepts requests has this address; requests go by UDP, never over RadSec"
OVER_TLS: Final = "sent by UDP with the client's secret, because requests never go over a RadSec connection"
MAX_VALUE = 253
NAMING = frozenset({USER_NAME, FRAMED_IP_ADDRESS, CHARGEABLE_USER_IDENTITY, FRAMED_INTERFACE_ID, FRAMED_IPV6_PREFIX})
"""Attributes that identify the session in a CoA-Request (RFC 5176 section 3.6, note 1). In an Access-Accept they set a
value, but a CoA-Request cannot change them."""
_MAC: Final = re.compile("[0-9a-f]{12}")

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Result:
    """The result for one session. error: the name of the Error-Cause, or the reason why no answer came."""

    target: Target
    answer: NasAnswer
    error: str


@dataclass(frozen=True, slots=True)
class Results:
    """The results of a call. more: true if more than MAX_SESSIONS sessions were live; some then got no request."""

    results: list[Result]
    more: bool = False


class DynamicAuthorization:
    """The service that ends and changes sessions of all domains.

    domains: a function that returns the current domains. find_client: a function that returns the RADIUS client of a
    source address. error_name: a function that returns the name of an Error-Cause.
    """

    def __init__(
        self,
        store: Store,
        sender: Sender,
        translation: Translation,
        metrics: DynamicMetrics,
        clock: Clock = now_us,
        *,
        domains: Callable[[], DomainTable],
        find_client: Callable[[str], Client | None],
        error_name: Callable[[int], str | None],
    ) -> None:
        self._store = store
        self._sender = sender
        self._translation = translation
        self._metrics = metrics
        self._clock = clock
        self._domains = domains
        self._find_client = find_client
        self._error_name = error_name
        self._turns: dict[int, trio.CapacityLimiter] = {}

    async def disconnect(self, session_id: int, domain_id: int | None = None) -> Results:
        """End one session. Raises NotFound if the session does not exist. Raises Conflict if the session is over.

        domain_id: the domain to which the session must belong, or None for any domain.
        """
        return Results(await self._ask(RequestKind.DISCONNECT, [await self._find(session_id, domain_id)]))

    async def end_session(self, domain_id: int, session_id: int) -> bool:
        """End one session, and return whether the device has ended it. Raises NotFound, Conflict."""
        asked = await self.disconnect(session_id, domain_id)
        return all(each.answer.outcome is RequestOutcome.ACK for each in asked.results)

    async def sessions_of_user(self, domain_id: int, user: str) -> list[Target]:
        """Return the live sessions of a user at the devices of a domain, at most MAX_SESSIONS."""
        names = [user, *qualified(user, self._domains().present(domain_id))]
        return await self._store.search(lambda tx: repo.targets_of_user(tx, domain_id, names, limit=MAX_SESSIONS))

    async def disconnect_user(self, domain_id: int, user: str) -> Results:
        """End the sessions of a user at the devices of a domain. The devices may have sent the user's name with or
        without a realm."""
        names = [user, *qualified(user, self._domains().present(domain_id))]
        return await self._disconnect(
            partial(repo.targets_of_user, domain_id=domain_id, names=names, limit=MAX_SESSIONS + 1)
        )

    async def disconnect_station(self, domain_id: int, station: str) -> Results:
        """End the sessions of a station at the devices of a domain. A MAC address may be in any notation."""
        key = station_key(station)
        mac = key if _MAC.fullmatch(key) else None
        find = partial(repo.of_station, domain_id=domain_id, station=station.strip(), mac=mac, limit=MAX_SESSIONS + 1)
        return await self._disconnect(find)

    async def _disconnect(self, find: Callable[[Tx], list[Target]]) -> Results:
        targets = await self._store.search(find)
        return Results(
            await self._ask(RequestKind.DISCONNECT, targets[:MAX_SESSIONS]), more=len(targets) > MAX_SESSIONS
        )

    async def disconnect_all(self, targets: Sequence[Target], reason: str) -> list[Result]:
        """End sessions. reason: a text for the audit trail."""
        return await self._ask(RequestKind.DISCONNECT, targets, changes={"reason": [None, reason]})

    async def ask_again(self, session_id: int, attributes: bytes, reason: str) -> Result | None:
        """Set attributes of a live session, or end it if there are none. Return None if the session is over.

        attributes: encoded attributes that no session is identified by. reason: a text for the audit trail.
        """
        target = await self._store.read(lambda tx: repo.one(tx, session_id))
        if target is None or target.state != SessionState.LIVE or target.domain_id not in self._domains().by_id:
            return None
        kind = RequestKind.CHANGE if attributes else RequestKind.DISCONNECT
        shown: JSON = list(self._translation.shown(attributes).splitlines())
        changes: dict[str, JSON] = {"reason": [None, reason], **({"replyAttributes": [None, shown]} if shown else {})}
        return (await self._ask(kind, [target], attributes, changes))[0]

    async def change(self, session_id: int, attributes: Sequence[Reply], domain_id: int | None = None) -> Results:
        """Change the attributes of one session.

        Raises NotFound if the session does not exist. Raises Conflict if the session is over. Raises Invalid if an
        attribute cannot be set. domain_id: the domain to which the session must belong, or None for any domain.
        """
        octets = self._translation.replies("", attributes)
        for index, (kind, _) in enumerate(pull_attributes(octets)):
            if kind in NAMING:
                message = "must not be an attribute that identifies the session"
                text = f"invalid replyAttributes: entry {index + 1} {message}"
                raise Invalid(text, (FieldError(f"replyAttributes.{index}.name", message),))
        target = await self._find(session_id, domain_id)
        if len(identify(target)) + len(octets) > ROOM:
            raise invalid_field("replyAttributes", f"must have attributes of at most {ROOM} octets in all")
        changes: dict[str, JSON] = {"replyAttributes": [None, [f"{each.name}={each.value}" for each in attributes]]}
        return Results(await self._ask(RequestKind.CHANGE, [target], octets, changes))

    async def _find(self, session_id: int, domain_id: int | None) -> Target:
        """Return a session that its NAS can still identify.

        Raises NotFound if the session does not exist. Raises Conflict if the device has reported its end, or if a later
        session has the same Acct-Session-Id.
        """
        target = await self._store.read(lambda tx: repo.one(tx, session_id))
        if target is None or domain_id not in (None, target.domain_id) or target.domain_id not in self._domains().by_id:
            raise NotFound(NO_SESSION)
        if target.state == SessionState.STOPPED or not target.newest:
            raise Conflict("the session is over")
        return target

    async def _ask(
        self,
        kind: RequestKind,
        targets: Sequence[Target],
        attributes: bytes = b"",
        changes: dict[str, JSON] | None = None,
    ) -> list[Result]:
        """Send a request for each session. The results are recorded even if the call is cancelled.

        No request is sent for the session of a removed domain. If a domain is removed during the call, the requests for
        its sessions continue.
        """
        domains = self._domains().by_id
        targets = [each for each in targets if each.domain_id in domains]
        stopped = NasAnswer(RequestOutcome.TIMEOUT, problem="the service was stopped")
        answers = {target.id: stopped for target in targets}

        async def ask(target: Target) -> None:
            tenant_id = domains[target.domain_id].tenant_id
            answers[target.id] = await self._answer(kind, target, tenant_id, attributes)

        try:
            async with trio.open_nursery() as nursery:
                for target in targets:
                    nursery.start_soon(ask, target)
        finally:
            results = [Result(each, answers[each.id], self._error(answers[each.id])) for each in targets]
            with trio.CancelScope(shield=True):
                await self._record(kind, results, changes or {}, domains)
        return results

    async def _answer(self, kind: RequestKind, target: Target, tenant_id: int, attributes: bytes) -> NasAnswer:
        found = self._nas(target, tenant_id)
        if found is None:
            return NasAnswer(RequestOutcome.UNKNOWN_CLIENT, problem=NO_CLIENT)
        nas, is_over_tls = found
        async with self._turns.setdefault(tenant_id, trio.CapacityLimiter(AT_ONCE)):
            answer = await self._sender.ask(nas, kind, identify(target) + attributes)
        if is_over_tls and answer.outcome in {RequestOutcome.TIMEOUT, RequestOutcome.UNREACHABLE}:
            return replace(answer, problem=f"{answer.problem} ({OVER_TLS})")
        return answer

    def _nas(self, target: Target, tenant_id: int) -> tuple[Nas, bool] | None:
        """Return the NAS to which the request is sent, and whether the logins of this NAS come over TLS. Return None if
        neither address of the session belongs to a RADIUS client of the tenant that accepts requests.

        A NAS may claim any address. So only a RADIUS client of the same tenant gets a request, signed with the secret
        of that client.
        """
        for address in filter(None, (target.ip_address, target.client_ip)):
            client = self._find_client(address)
            if client is not None and client.tenant_id == tenant_id and client.coa_port:
                return Nas(address, client.coa_port, client.secret), bool(client.tls_name or client.tls_fingerprint)
        return None

    def _error(self, answer: NasAnswer) -> str:
        cause = answer.error_cause
        return answer.problem if cause is None else self._error_name(cause) or str(cause)

    async def _record(
        self, kind: RequestKind, results: Sequence[Result], changes: dict[str, JSON], domains: Mapping[int, Domain]
    ) -> None:
        """Record results in the metrics, the log and the audit trail, and end the sessions that the NAS does not know.
        Raises StoreError. All entries of the audit trail are written in one transaction."""
        name, at = kind.name.lower(), self._clock()
        for each in results:
            self._metrics.requests.cell(name, each.answer.outcome).count += 1
            write = log.info if each.answer.outcome is RequestOutcome.ACK else log.warning
            write(f"session_{name}", session=each.target.id, outcome=each.answer.outcome.value, error=each.error)

        def transaction(tx: Tx) -> None:
            for each in results:
                domain = domains[each.target.domain_id]
                if each.answer.error_cause == NOT_FOUND and each.answer.outcome is RequestOutcome.NAK:
                    end_unknown(tx, each.target.id, domain.id, at)
                outcome: dict[str, JSON] = {"outcome": [None, each.answer.outcome.value]}
                audit.record(
                    tx,
                    f"session.{name}",
                    at=at,
                    tenant_id=domain.tenant_id,
                    domain_id=domain.id,
                    target=f"session {each.target.id} {each.target.user_name or ''}".rstrip(),
                    changes={**changes, **outcome, **({"error": [None, each.error]} if each.error else {})},
                )

        if results:
            await self._store.write(transaction)


def identify(target: Target) -> bytes:
    """Return the encoded attributes that identify a session and its NAS (RFC 5176 section 3).

    Only a few attributes are sent. A NAS refuses a request with an attribute that it does not support; for example,
    hostapd does not support NAS-Port. A NAS also refuses a request with a value that differs from its own value for the
    session. Acct-Session-Id is always sent. A session without a station is also identified by its port and address.
    """
    user = (target.user_name or "").encode()
    pairs = [*_nas_names(target), (USER_NAME, user), (ACCT_SESSION_ID, target.acct_session_id)]
    if target.station:
        pairs.append((CALLING_STATION_ID, target.station.encode()))
    else:
        pairs.append((NAS_PORT, b"" if target.nas_port is None else target.nas_port.to_bytes(4)))
        pairs.append((FRAMED_IP_ADDRESS, ipaddress.ip_address(target.framed_ip).packed if target.framed_ip else b""))
    return b"".join(push_attribute(kind, value) for kind, value in pairs if 0 < len(value) <= MAX_VALUE)


def _nas_names(target: Target) -> list[tuple[int, bytes]]:
    """Return the attributes that identify the NAS.

    If the stored NAS address equals the source address, the NAS may have sent no NAS-IP-Address. A NAS that sends no
    address must send a NAS-Identifier (RFC 2866 section 4.1). So, in this case, a known NAS-Identifier is returned
    without an address.
    """
    name = target.nas_identifier.encode()
    if name and target.client_ip == target.ip_address:
        return [(NAS_IDENTIFIER, name)]
    address = ipaddress.ip_address(target.client_ip)
    kind = NAS_IP_ADDRESS if address.version == 4 else NAS_IPV6_ADDRESS
    return [(kind, address.packed), (NAS_IDENTIFIER, name)]
