"""The limit of parallel sessions that a login rule sets (`maxSessions`).

All steps of the pipeline come before it. A login that they admit, by a rule with a limit, gets a `SessionLimit`. The
journal calls it in the transaction of the login, where the count is exact (`sessions.parallel`). If the user has too
many sessions, it changes the decision, the answer and the event of the login before they are stored. So the answer
that is sent, the answer for retransmissions, and the event always agree. Logins without such a rule are not affected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from sallyport.areas.clients.client import is_check
from sallyport.areas.devices.device import Device
from sallyport.areas.domains.domain import Domain, DomainTable, Mode
from sallyport.areas.login.decision import over_limit, refusal
from sallyport.areas.login.identity import qualified
from sallyport.areas.login.login import Answer, Login, Verdict
from sallyport.areas.policy.rules.rule import OverLimit
from sallyport.areas.sessions.parallel import (
    AWAITED_US,
    MAX_NAMES,
    Admission,
    Parallel,
    Place,
    admit,
    count,
    delete_old,
)
from sallyport.base.text import counted, fold_name
from sallyport.nodes.periodic import every
from sallyport.radius.attributes import ACCT_INTERIM_INTERVAL, pull_attributes
from sallyport.radius.packet import ACCESS_REJECT, encode_reply
from sallyport.radius.password import Method

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sallyport.base.clock import Clock
    from sallyport.store.model import Store, Tx
    from sallyport.store.snapshot import Snapshot

PURGE_S: Final = 60.0
PURGED: Final = 1000
"""Maximum number of rows that one transaction deletes."""
REASON: Final = "too many parallel sessions"
NOT_APPLIED: Final = "the limit of parallel sessions is not applied, because the device sends no interim updates"


class EndsSessions(Protocol):
    """The service that asks devices to end sessions."""

    def end_session(self, tx: Tx, domain_id: int, session_id: int, user: str, reason: str) -> None:
        """Store that a session must end. It ends after the transaction. domain_id: the domain of its device."""


class SessionLimits:
    """The limits of parallel sessions of all domains. domains: the current domains. ending: the service that ends the
    oldest sessions."""

    def __init__(self, store: Store, domains: Snapshot[DomainTable], ending: EndsSessions, clock: Clock) -> None:
        self._store = store
        self._domains = domains
        self._ending = ending
        self._clock = clock

    def bind(self, login: Login) -> None:
        """Set `login.limit` if the login's rule has a limit for it. The login must be admitted, and its `answer` must
        be set. A station that is admitted by its address has no user whose sessions could be counted."""
        rule, domain = login.rule, login.domain
        if rule is None or domain is None or login.method == Method.MAB or not login.user:
            return
        if login.answer.decision.decision is not Verdict.REJECT:
            login.limit, login.is_long = SessionLimit(login, domain, self), True

    def admission(self, login: Login, domain: Domain, device: Device, attributes: bytes, at: int) -> Admission:
        """Return the question whether a login may be admitted by its rule. attributes: the encoded attributes of the
        answer."""
        assert login.rule is not None  # noqa: S101  the caller has checked it
        kept, name = login.rule.definition, fold_name(login.principal)
        places = places_of({fold_name(login.user), name, *login.names}, domain, self._domains.value)
        return Admission(
            domain.id,
            name,
            places,
            device.id or 0,
            login.station,
            kept.max_sessions,
            kept.over_limit is OverLimit.END_OLDEST,
            interim_us(attributes),
            at,
        )

    def end(self, tx: Tx, found: Parallel) -> None:
        """End the sessions that make room for a login, after the transaction."""
        for each in found.ended:
            self._ending.end_session(tx, each.domain_id, each.id, each.user_name or "", REASON)

    async def purge(self) -> None:
        """Delete the rows of users without a recent login, until cancelled."""
        await every(PURGE_S, self.delete_old, failure="session_limits_not_purged")

    async def delete_old(self) -> None:
        """Delete the rows of users without a recent login. Raises StoreError."""
        before = self._clock() - 2 * AWAITED_US
        while await self._store.write(lambda tx: delete_old(tx, before, PURGED)) == PURGED:
            pass


class SessionLimit:
    """The limit of one login. user_key: the order in which the logins of a transaction are counted."""

    __slots__ = ("_accepted", "_detail", "_domain", "_limits", "_login", "_reply", "user_key")

    def __init__(self, login: Login, domain: Domain, limits: SessionLimits) -> None:
        self._login = login
        self._domain = domain
        self._limits = limits
        self._accepted, self._reply, self._detail = login.answer, login.reply, login.detail
        self.user_key = (domain.id, fold_name(login.principal))

    def apply(self, tx: Tx, at: int) -> None:
        """Count the user's sessions, and set the decision, the answer and the detail of the login. If the engine undoes
        the transaction, this method runs again. at: the time in microseconds."""
        login, answer = self._login, self._accepted
        login.answer, login.reply = answer, self._reply
        decision = answer.decision
        is_monitored = decision.mode == Mode.MONITOR
        asked = self._limits.admission(login, self._domain, login.device, answer.attributes, at)
        is_test = is_check(login.arrival.request)  # it starts no session, so it counts as no session and ends none
        found = count(tx, asked) if is_test else admit(tx, asked, is_refused=not is_monitored)
        detail = explained(found, is_monitored=is_monitored)
        login.detail = "; ".join(filter(None, (self._detail, detail)))
        if not is_monitored and not is_test:
            self._limits.end(tx, found)
        if found.is_over and decision.decision is Verdict.ACCEPT:
            self._refuse(is_sent=not is_monitored)

    def _refuse(self, *, is_sent: bool) -> None:
        login, arrival, before = self._login, self._login.arrival, self._accepted
        decision, attributes = over_limit(before.decision), before.attributes
        if is_sent:
            attributes = refusal(login, decision.reason)
            login.reply = encode_reply(ACCESS_REJECT, arrival.request, arrival.client.secret, attributes)
        login.answer = Answer(decision, attributes, before.latency_us)


def places_of(names: Iterable[str], domain: Domain, domains: DomainTable) -> list[Place]:
    """Return the names in the accounting of a user's sessions, at most MAX_NAMES, each with the id of a domain with
    devices. A name without a realm belongs to the domain of the device.

    names: the names of the user without a realm, case-folded.
    """
    own = sorted(names)
    with_realm = [fold_name(each) for name in own for each in qualified(name, domain)]
    places = [(domain.id, name) for name in (*own, *with_realm)]
    for other in domains.by_tenant.get(domain.tenant_id, ()):
        if len(places) >= MAX_NAMES:
            break
        if other.id != domain.id:
            places += [(other.id, name) for name in with_realm]
    return places[:MAX_NAMES]


def interim_us(attributes: bytes) -> int:
    """Return the Acct-Interim-Interval in encoded attributes, in microseconds, or 0 if there is none."""
    for kind, value in pull_attributes(attributes):
        if kind == ACCT_INTERIM_INTERVAL and len(value) == 4:
            return int.from_bytes(value) * 1_000_000
    return 0


def explained(found: Parallel, *, is_monitored: bool) -> str:
    """Return the effect of a limit as a text for admins. It is empty if the limit has no effect."""
    if not found.is_applied:
        return NOT_APPLIED
    has = f"the user has {counted(found.count, 'parallel session')}, and the limit is {found.limit}"
    if found.is_over:
        return has
    if found.ended:
        verb = "would end" if is_monitored else "ends"
        return f"{has}: the login {verb} the oldest"
    return ""
