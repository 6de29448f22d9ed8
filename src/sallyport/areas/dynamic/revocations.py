"""End the live sessions of users who lose their access, in domains with `disconnectOnRevoke`. Also end single sessions
of users with too many parallel sessions.

The transaction that revokes the access also stores the revocation. So a crash before the sessions have ended loses
nothing. The sessions end right after the transaction. Some logins may be accepted just before the transaction, and
their accounting begins after it. A second search some seconds later finds their sessions. A NAS that does not answer
within the timers of RFC 5080 is reported, and gets no further request. In monitor mode login rules block no user, so a
user who loses a group keeps the sessions.

With several nodes, the node with the lease (the leader) ends the sessions. If the leader stops early, the next leader
continues with the stored revocations. It may ask a NAS to end a session that has already ended, and the NAS reports
this.

The order of the ids of revocations is the order of their commits. This holds because only transactions of `Store.write`
store revocations, and only one of them runs at a time.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

import structlog
import trio

from sallyport.areas.domains.domain import Domain, Mode
from sallyport.areas.domains.service import Domains
from sallyport.areas.dynamic import repo
from sallyport.areas.dynamic.repo import Revocation
from sallyport.areas.dynamic.service import MAX_SESSIONS, DynamicAuthorization
from sallyport.areas.login.identity import bearers, qualified
from sallyport.areas.policy.rules.match import DomainRules
from sallyport.areas.policy.rules.service import LoginRules
from sallyport.areas.sessions.session import SessionState
from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import LeaseLost, StoreError
from sallyport.base.text import fold
from sallyport.nodes.periodic import every, store_of_leader
from sallyport.nodes.service import Cluster
from sallyport.store.model import Store, Tx

LOOK_S: Final = 1.0
AGAIN_S: Final = 5.0
AT_ONCE: Final = 64
LATE_S: Final = 10.0

log = structlog.get_logger()


class Revocations:
    """The revocations of all domains. `run` must be running, because it ends the sessions."""

    def __init__(
        self,
        store: Store,
        cluster: Cluster,
        dynamic: DynamicAuthorization,
        domains: Domains,
        rules: LoginRules,
        clock: Clock = now_us,
        *,
        late_s: float = LATE_S,
    ) -> None:
        self._late_s = late_s
        self._store = store
        self._leader_store = store_of_leader(store, cluster)
        self._dynamic = dynamic
        self._domains = domains
        self._rules = rules
        self._clock = clock
        self._begun: set[int] = set()  # the ids of started revocations whose rows are not deleted yet
        self._seen = -1  # the store's `changes` at the last complete search
        self._waiting = Counter[int]()  # by tenant
        self._on_revoke: list[Callable[[Tx, int, Sequence[str]], None]] = []
        self._on_release: list[Callable[[Tx, int, str], None]] = []

    def on_revoke(self, forget: Callable[[Tx, int, Sequence[str]], None]) -> None:
        """Register a function that is called with the domain and the names of users that lose their access, in the
        transaction of this change."""
        self._on_revoke.append(forget)

    def on_release(self, forget: Callable[[Tx, int, str], None]) -> None:
        """Register a function that is called with the domain and the case-folded login name of a person whom a
        directory does not have any more, or has under another name, in the transaction of this change."""
        self._on_release.append(forget)

    # --- in the transaction of a change -------------------------------------------------------------------------

    def revoke(self, tx: Tx, domain_id: int, names: Sequence[str], reason: str) -> None:
        """Store that users of a domain have lost their access, if the domain has `disconnectOnRevoke`. The caller
        revokes the access in the same transaction. reason: a text for the audit trail.

        The functions of `on_revoke` are called for every domain.
        """
        for forget in self._on_revoke:
            forget(tx, domain_id, names)
        domain = self._domains.table.by_id.get(domain_id)
        if domain is not None and domain.disconnect_on_revoke:
            repo.add_revocations(tx, domain_id, names, reason, self._clock())

    def release(self, tx: Tx, domain_id: int, name: str) -> None:
        """Call the functions of `on_release`."""
        for forget in self._on_release:
            forget(tx, domain_id, name)

    def end_session(self, tx: Tx, domain_id: int, session_id: int, user: str, reason: str) -> None:
        """Store that one session must end, also in a domain without `disconnectOnRevoke`. domain_id: the domain of the
        device. user: the name of the user. reason: a text for the audit trail."""
        repo.add_revocations(tx, domain_id, [user], reason, self._clock(), session_id=session_id)

    async def revoke_certified(self, names: Sequence[tuple[str, int | None]]) -> None:
        """End the sessions of logins with revoked client certificates. Raises StoreError.

        names: for each certificate, its name and the tenant for which it was issued. If the tenant is None, sessions in
        all tenants end.
        """
        table = self._domains.table
        bearing = {each for name, tenant_id in names for each in bearers(name, table, tenant_id)}

        def transaction(tx: Tx) -> None:
            for domain_id, user in sorted(bearing):  # a computer's accounting may have the outer identity host/NAME
                self.revoke(tx, domain_id, [user, f"host/{user}"], "the client certificate was revoked")

        await self._store.write(transaction)

    def group_matters(self, domain_id: int, group: str) -> bool:
        """Return whether the live sessions of a user must end when the user loses this group.

        This is the case if an enabled login rule names the group, and the domain is in enforce mode with
        `disconnectOnRevoke`.
        """
        rules = self._rules_that_end(domain_id)
        return rules is not None and fold(group) in rules.groups

    def device_matters(self, domain_id: int) -> bool:
        """Return whether the live sessions of a device must end when its facts change, such as `compliant`. This is the
        case if an enabled login rule compares facts of devices; see `group_matters`."""
        rules = self._rules_that_end(domain_id)
        return rules is not None and rules.compares_devices

    def _rules_that_end(self, domain_id: int) -> DomainRules | None:
        """Return the rules of a domain in enforce mode with `disconnectOnRevoke`. Return None for other domains."""
        domain = self._domains.table.by_id.get(domain_id)
        if domain is None or not domain.disconnect_on_revoke or domain.applied_mode is Mode.MONITOR:
            return None
        return self._rules.of(domain_id)

    # --- after it -----------------------------------------------------------------------------------------------

    def forget(self) -> None:
        """Begin again with all stored revocations, because the store was replaced."""
        self._begun.clear()
        self._seen = -1

    async def run(self) -> None:
        """End the sessions of users with a stored revocation, until cancelled. One node does this for all nodes."""
        self.forget()  # another node may have ended some sessions in the meantime
        async with trio.open_nursery() as nursery:
            await every(LOOK_S, partial(self._look, nursery), failure="revocations_not_read")

    async def _look(self, nursery: trio.Nursery) -> None:
        changes = self._leader_store.changes
        if changes != self._seen and await self._begin(nursery):
            self._seen = changes

    async def _begin(self, nursery: trio.Nursery) -> bool:
        """Start a task for each new revocation. Return whether a task was started for every new revocation. Raises
        StoreError.

        The number of tasks for each tenant is limited. So a tenant with many revocations and silent devices does not
        delay others.
        """
        is_all = True
        for domain_id in await self._store.read(repo.revoked_domains):
            domain = self._domains.table.by_id.get(domain_id)
            tenant_id = 0 if domain is None else domain.tenant_id
            begun = frozenset(self._begun)  # its rows may be deleted while the rows are read
            rows = await self._store.read(partial(repo.revocations, domain_id=domain_id, limit=2 * AT_ONCE))
            room = AT_ONCE - self._waiting[tenant_id]
            found = [each for each in rows if each.id not in begun][:room]
            for each in found:
                self._begun.add(each.id)
                self._waiting[tenant_id] += 1
                nursery.start_soon(self._end_sessions, each, tenant_id)
            is_all = is_all and len(found) < room
        return is_all

    async def _end_sessions(self, revocation: Revocation, tenant_id: int) -> None:
        with suppress(LeaseLost):  # the other node ends the sessions
            try:
                last = await self._retry_disconnect(revocation)
            finally:
                self._waiting[tenant_id] -= 1
            self._begun.discard(revocation.id)
            if revocation.session_id:
                return
            await trio.sleep(self._late_s)
            await self._retry_disconnect(revocation, after=last)

    async def _retry_disconnect(self, revocation: Revocation, *, after: int = 0) -> int:
        """Call `_disconnect` until it succeeds. Raises LeaseLost if another node has become the leader."""
        while True:
            try:
                return await self._disconnect(revocation, after)
            except LeaseLost:
                raise
            except StoreError as error:
                log.warning("revocation_retried", revocation=revocation.id, error=str(error))
                await trio.sleep(AGAIN_S)

    async def _disconnect(self, revocation: Revocation, after: int) -> int:
        """End the session of the revocation, or the user's sessions with ids above `after` at all devices of the
        tenant. Then delete the revocation. Return the highest id of the user's sessions, or `after` if there were none.

        If it raises StoreError, the revocation is still stored, and the caller must try again.
        """
        domain = self._domains.table.by_id.get(revocation.domain_id)
        last = after
        if revocation.session_id:
            target = await self._store.read(partial(repo.one, session_id=revocation.session_id))
            if target is not None and target.state == SessionState.LIVE:
                await self._dynamic.disconnect_all([target], revocation.reason)
        elif domain is not None:
            user = _without_realm(revocation.user_name, domain)
            elsewhere = qualified(user, domain)
            for place in self._domains.of_tenant(
                domain.tenant_id
            ):  # a name without a realm is a user of the device's domain
                names = [user, *elsewhere] if place.id == domain.id else elsewhere
                last = max(last, await self._disconnect_at(place.id, names, revocation.reason, after))
        await self._leader_store.write(partial(repo.delete_revocation, revocation_id=revocation.id))
        return last

    async def _disconnect_at(self, domain_id: int, names: Sequence[str], reason: str, after: int) -> int:
        """End the sessions of a user at the devices of a domain. Return the highest session id. names: the user's
        names."""
        last = after
        while targets := await self._store.search(
            partial(repo.targets_of_user, domain_id=domain_id, names=names, after=last, limit=MAX_SESSIONS)
        ):
            last = targets[-1].id
            await self._dynamic.disconnect_all(targets, reason)
        return last


def _without_realm(name: str, domain: Domain) -> str:
    """Return a name without its realm, if the realm belongs to the domain. A person of a cloud directory has a login
    name with a realm, and the sessions of the person may have the name without it."""
    user, _, realm = name.rpartition("@")
    return user if user and fold(realm) in domain.realm_keys else name
