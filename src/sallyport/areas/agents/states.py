"""Versions and signatures of desired states, and the polls of agents that wait for a new state."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import uniform
from typing import Final

import structlog
import trio

from sallyport.agentwire.envelope import UNCHANGED, content, envelope
from sallyport.areas.agents import grants, repo, signers
from sallyport.areas.agents.desired import Builder, DesiredState, PolicyRules, Unhashed, fingerprint, hash_identity
from sallyport.base.bounded import BoundedMap
from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.base.errors import SallyportError, StoreError
from sallyport.base.sha512crypt import matches, sha512_crypt
from sallyport.store.model import Store, Tx
from sallyport.store.slices import in_batches
from sallyport.store.vault import Vault
from sallyport.web.connections import parked

CHECK_S: Final = 0.25
SUPERSEDED_S: Final = 1.0
"""Delay in seconds before the answer to a poll that a newer poll of the same agent has replaced. Two machines may
use the same key, for example after a disk was cloned. Without this delay, they would end each other's polls in a
fast loop."""
SLICE: Final = 25
"""Number of machines whose fingerprints are read in one transaction. The transaction takes some milliseconds."""
DOMAIN_S: Final = 5.0
"""Time limit in seconds for reading the fingerprints of one domain's machines."""
MIN_WAIT_FRACTION: Final = 0.75
"""Minimum time that a poll waits, as a fraction of the requested time. The actual time is random between this minimum
and the requested time. Otherwise, agents that reconnected together after an outage would always poll together."""
MAX_WAITING: Final = 20_000
LEEWAY_US: Final = 86_400 * SECOND
"""Maximum time by which an agent's version may be in the future, in microseconds. A version is a time, so the service
cannot have issued a version that is further in the future."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Issued:
    """The desired state of a machine, with its version. fingerprint: the hash that `desired.fingerprint` returns."""

    domain_id: int
    desired: DesiredState
    version: int
    fingerprint: int


@dataclass(frozen=True, slots=True)
class _Unsettled:
    """The data that must be written before a desired state can be issued.

    Only one of the first three fields has a value, the others are empty. changes: pairs of the key of a grant, and True
    if the grant begins or False if it was removed. unhashed: the passwords to hash. digest: the digest of the new
    state. last: the highest version that the agent may have. The new version must be higher than `last`.
    """

    changes: Sequence[tuple[grants.Key, bool]] = ()
    unhashed: Sequence[Unhashed] = ()
    digest: str = ""
    last: int = 0


@dataclass(slots=True, eq=False)
class _Waiter:
    """A waiting poll of an agent. fingerprint: the hash that `desired.fingerprint` returned, or None while the state is
    being built. changes_at: the next time at which a grant ends, in microseconds. The state changes at this time."""

    domain_id: int
    fingerprint: int | None = None
    changes_at: int | None = None
    changed: trio.Event = field(default_factory=trio.Event)

    def is_due(self, at: int) -> bool:
        """Return whether a grant has ended by time `at`, so that the state has changed."""
        return self.changes_at is not None and self.changes_at <= at


class States:
    """The desired states of all machines. The task `run` must run, because it answers the polls of agents whose states
    change.

    most_waiting: the maximum number of waiting polls, shared fairly among the tenants. If a new poll displaces a
    waiting poll, the service answers the displaced poll with UNCHANGED.
    """

    def __init__(
        self,
        store: Store,
        vault: Vault,
        policies: PolicyRules,
        clock: Clock = now_us,
        *,
        most_waiting: int = MAX_WAITING,
    ) -> None:
        self._store = store
        self._vault = vault
        self._policies = policies
        self._clock = clock
        self._waiting = BoundedMap[int, _Waiter](most_waiting)
        self._arrivals = trio.lowlevel.ParkingLot()
        self._trail = 0
        self._closed = False
        self._hashing = trio.CapacityLimiter(1)

    @property
    def waiting(self) -> int:
        """The number of waiting polls."""
        return len(self._waiting)

    def waits(self, instance_id: int) -> bool:
        """Return whether a poll of the instance's agent is waiting."""
        return instance_id in self._waiting

    async def poll(
        self, tenant_id: int, domain_id: int, instance_id: int, version: int, wait_s: float, *, key: bytes = b""
    ) -> dict[str, object]:
        """Return the signed state as soon as its version differs from `version`, or UNCHANGED after `wait_s` seconds.

        version: the version of the state that the agent has. key: the public key with which the agent verifies states.
        A new poll for a machine ends the previous poll for the same machine. Raises NotFound if the instance has no
        agent. Raises StoreError, SecretError.
        """
        deadline = trio.current_time() + wait_s * uniform(MIN_WAIT_FRACTION, 1)  # noqa: S311  no secret
        self._end(instance_id)
        waiter = _Waiter(domain_id)
        displaced = self._waiting.put(instance_id, waiter, tenant_id)  # first, so that no change is missed
        if displaced is not None:
            displaced.changed.set()
        self._arrivals.unpark_all()
        try:
            while self._waiting.get(instance_id) is waiter:
                waiter.changed, waiter.fingerprint = trio.Event(), None
                issued = await self.current(instance_id, version)
                if issued.version != version:
                    return await self._signed(issued, key)
                waiter.fingerprint, waiter.changes_at = issued.fingerprint, issued.desired.changes_at
                if self._closed or trio.current_time() >= deadline:
                    break
                with parked(), trio.move_on_at(deadline):
                    await waiter.changed.wait()
            if self._waiting.get(instance_id) is not waiter and not self._closed:
                with parked():
                    await trio.sleep(SUPERSEDED_S)
            return dict(UNCHANGED)
        finally:
            if self._waiting.get(instance_id) is waiter:
                self._waiting.pop(instance_id)

    def _end(self, instance_id: int) -> None:
        waiter = self._waiting.pop(instance_id)
        if waiter is not None:
            waiter.changed.set()

    def touch(self, instance_id: int) -> None:
        """Make the waiting poll of a machine check whether the state has changed."""
        waiter = self._waiting.get(instance_id)
        if waiter is not None:
            waiter.changed.set()

    def close(self) -> None:
        """Answer all waiting polls because the service stops."""
        self._closed = True
        for instance_id in tuple(self._waiting):
            self._end(instance_id)

    def forget(self) -> None:
        """Make all waiting polls check whether their states have changed, because a restore has replaced the store."""
        self._trail = 0
        for instance_id in tuple(self._waiting):
            self.touch(instance_id)

    # --- versions -----------------------------------------------------------------------------------------------

    async def current(self, instance_id: int, known: int = 0) -> Issued:
        """Return the state that a machine should have now.

        known: the version of the state that the agent has. If the store was restored from a backup, this version may be
        newer than the stored one. Raises NotFound if the instance has no agent. Raises StoreError, SecretError.
        """
        while True:
            found = await self._store.read(partial(self._build, instance_id, known))
            if isinstance(found, Issued):
                return found
            await self._settle(instance_id, found)

    def _build(self, instance_id: int, known: int, tx: Tx) -> Issued | _Unsettled:
        """Return the state, or the data that must be written first.

        The state is built in a read transaction. During a write transaction, logins would have to wait.
        """
        agent, at = repo.found(tx, instance_id), self._clock()
        found, begun = grants.of_instance(tx, instance_id), grants.begun(tx, instance_id)
        keys = {grant.key for grant in found}
        if keys != begun.keys():
            return _Unsettled(changes=[(key, key in keys) for key in sorted(keys ^ begun.keys())])
        desired = Builder(tx, self._vault, self._policies, instance_id).build(grants.accesses(found, begun), at)
        if desired.unhashed:
            return _Unsettled(unhashed=desired.unhashed)
        digest, is_ahead = content(desired.state), agent.version < known <= at + LEEWAY_US
        if digest != agent.digest or is_ahead:
            return _Unsettled(digest=digest, last=known if is_ahead else agent.version)
        return Issued(agent.domain_id, desired, agent.version, fingerprint(tx, self._policies, instance_id))

    async def _settle(self, instance_id: int, unsettled: _Unsettled) -> None:
        """Write the data in `unsettled`, in short transactions. Afterwards, `current` builds the state again, so that
        the state includes changes that were made in the meantime."""
        at = self._clock()

        def change(tx: Tx, changes: Iterator[tuple[grants.Key, bool]]) -> None:
            repo.found(tx, instance_id)
            grants.change(tx, instance_id, changes, at)

        def issue(tx: Tx) -> None:
            last = max(unsettled.last, repo.found(tx, instance_id).version)
            repo.set_version(tx, instance_id, max(last + 1, at), unsettled.digest, at)

        if unsettled.changes:
            await in_batches(self._store, unsettled.changes, change)
        elif unsettled.unhashed:
            await self._hash(unsettled.unhashed)
        else:
            await self._store.write(issue)

    async def _hash(self, unhashed: Sequence[Unhashed]) -> None:
        """Hash passwords and store the hashes. Without stored hashes, a password would get a new salt, and so another
        hash, each time the state is built."""
        made = []
        for each in unhashed:
            hashed = await trio.to_thread.run_sync(_hashed, each, limiter=self._hashing)
            made.append((each, hashed.encode()))
        await in_batches(self._store, made, self._keep)

    def _keep(self, tx: Tx, made: Iterator[tuple[Unhashed, bytes]]) -> None:
        for each, hashed in made:
            tx.execute(
                "insert into agent_hashes (user_id, stamp, hash, made_at) select id, :stamp, :hash, :at "
                "from endpoint_users where id = :u on conflict (user_id) do update set stamp = excluded.stamp, "
                "hash = excluded.hash, "
                "made_at = case when :same = 1 then agent_hashes.made_at else excluded.made_at end "
                "where agent_hashes.stamp <> excluded.stamp",
                same=int(hashed.decode() == each.former),
                u=each.user_id,
                stamp=each.stamp,
                hash=self._vault.seal(hashed, hash_identity(each.user_id)),
                at=self._clock(),
            )

    async def _signed(self, issued: Issued, key: bytes) -> dict[str, object]:
        state = replace(issued.desired.state, version=issued.version, issued=self._clock())

        def query(tx: Tx) -> dict[str, str]:
            return envelope(partial(signers.sign, tx, self._vault, issued.domain_id, by=key), state)

        return dict(await self._store.read(query))

    # --- changes ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Wake the waiting polls of agents whose states have changed, periodically until cancelled."""
        while True:
            if not self._waiting:
                await self._arrivals.park()
            await trio.sleep(CHECK_S)
            try:
                await self.wake_changed()
            except SallyportError as error:
                log.warning("agent_state_changes_not_read", error=str(error))

    async def wake_changed(self) -> None:
        """Wake the waiting polls of agents whose states have changed since the last call. Raises StoreError,
        SecretError."""
        newest, domains = await self._store.read(partial(_changed_domains, since=self._trail))
        at, wanted = self._clock(), dict[int, list[int]]()
        for instance_id, waiter in self._waiting.items():
            if waiter.domain_id in domains or waiter.is_due(at):
                wanted.setdefault(waiter.domain_id, []).append(instance_id)
        async with trio.open_nursery() as nursery:
            for instance_ids in wanted.values():
                nursery.start_soon(self._wake_domain, instance_ids, at)
        self._trail = newest

    async def _wake_domain(self, instance_ids: Sequence[int], at: int) -> None:
        """Wake each waiting poll of one domain's agents if the fingerprint of the agent's state has changed, or if a
        grant has ended.

        If this takes longer than DOMAIN_S seconds, or if an error occurs, wake all remaining polls of the domain. So
        one domain does not delay the agents of other domains.
        """
        left = deque(instance_ids)
        try:
            with trio.move_on_after(DOMAIN_S):
                while left:
                    some = [left[number] for number in range(min(SLICE, len(left)))]
                    for found in await self._store.search(partial(self._fingerprints, some)):
                        waiter = self._waiting.get(left.popleft())
                        if waiter is not None and (waiter.is_due(at) or waiter.fingerprint != found):
                            waiter.changed.set()
        except StoreError as error:
            log.warning("agent_fingerprints_not_read", error=str(error))
        for instance_id in left:
            self.touch(instance_id)

    def _fingerprints(self, instance_ids: Sequence[int], tx: Tx) -> list[int]:
        return [fingerprint(tx, self._policies, each) for each in instance_ids]


def _hashed(unhashed: Unhashed) -> str:
    """Return the hash of a password. If the former hash belongs to the same password, return the former hash. This
    happens after a change of the master key: the same password was sealed again."""
    if unhashed.former and matches(unhashed.password, unhashed.former):
        return unhashed.former
    return sha512_crypt(unhashed.password)


def _changed_domains(tx: Tx, since: int) -> tuple[int, frozenset[int]]:
    """Return the id of the newest entry of the audit trail, and the ids of the domains to which the changes in newer
    entries than `since` may apply.

    No entry is missed. Only transactions of `Store.write` write to the trail, and all nodes together run only one such
    transaction at a time.
    """
    newest = tx.value(int, "select coalesce(max(id), 0) from audit_trail") or 0
    if newest == since:
        return newest, frozenset()
    everything = newest < since  # the store was replaced by one with an older trail
    sql = (
        "select d.id from domains d where exists (select 1 from audit_trail a where a.id > :since and "
        "(a.domain_id = d.id or (a.domain_id is null and a.tenant_id in (d.tenant_id, 0))))"
    )
    rows = tx.rows("select id from domains" if everything else sql, **({} if everything else {"since": since}))
    return newest, frozenset(int(each[0] or 0) for each in rows)
