"""Versions and signatures of states, and the agents that wait for another one."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import uniform
from typing import Final

import structlog
import trio

from sallyport.base.agentwire.envelope import UNCHANGED, content, envelope
from sallyport.base.bounded import BoundedMap
from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.base.errors import SallyportError, StoreError
from sallyport.base.sha512crypt import matches, sha512_crypt
from sallyport.endpoints.agents import repo, signers, ways
from sallyport.endpoints.agents.desired import Builder, PolicyRules, Unhashed, Wanted, fingerprint, hash_identity
from sallyport.store.model import Store, Tx
from sallyport.store.turns import in_turns
from sallyport.store.vault import Vault
from sallyport.web.peer import parked

LOOK_S: Final = 0.25
SUPERSEDED_S: Final = 1.0
"""Before a poll is answered that a newer one has taken the place of: two machines with one key, such as a copy of a
disk makes, would else ask in turns as fast as they can."""
SLICE: Final = 25
"""Machines that are looked at in one go: some milliseconds."""
DOMAIN_S: Final = 5.0
"""How long one look may take at the machines of a domain."""
SHORTEST_WAIT: Final = 0.75
"""Part of the wait that was asked for: agents that came together, after a restart or an outage, come apart by it."""
MOST_WAITING: Final = 20_000
LEEWAY_US: Final = 86_400 * SECOND
"""A version so far in the future is no version that was ever given."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Issued:
    """The state that a machine should have now, with its version. fingerprint: of what it is made of."""

    domain_id: int
    wanted: Wanted
    version: int
    fingerprint: int


@dataclass(frozen=True, slots=True)
class _Unsettled:
    """What has to be written before a state can be issued, the first of these: ways that begin (True) or have ended,
    passwords to hash, another digest. last: the version that the next one is above."""

    changes: Sequence[tuple[ways.Key, bool]] = ()
    unhashed: Sequence[Unhashed] = ()
    digest: str = ""
    last: int = 0


@dataclass(slots=True, eq=False)
class _Waiter:
    """An agent that waits. fingerprint: of what its state is made of; None while that is looked at."""

    domain_id: int
    fingerprint: int | None = None
    turns_at: int | None = None
    changed: trio.Event = field(default_factory=trio.Event)

    def turns(self, at: int) -> bool:
        """Whether the state has changed by itself at a time."""
        return self.turns_at is not None and self.turns_at <= at


class States:
    """The states of all machines. `run` must run, for agents to hear of changes.

    most_waiting: the agents that wait. Each tenant has a share; one that makes room is answered at once.
    """

    def __init__(
        self,
        store: Store,
        vault: Vault,
        policies: PolicyRules,
        clock: Clock = now_us,
        *,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self._store = store
        self._vault = vault
        self._policies = policies
        self._clock = clock
        self._waiting = BoundedMap[int, _Waiter](most_waiting)
        self._somebody = trio.lowlevel.ParkingLot()
        self._trail = 0
        self._closed = False
        self._hashing = trio.CapacityLimiter(1)

    @property
    def waiting(self) -> int:
        """How many agents wait."""
        return len(self._waiting)

    def waits(self, instance_id: int) -> bool:
        """Whether the agent of an instance does."""
        return instance_id in self._waiting

    async def poll(
        self, tenant_id: int, domain_id: int, instance_id: int, version: int, wait_s: float, *, key: bytes = b""
    ) -> dict[str, object]:
        """The answer to a poll: the state, signed, as soon as it is another one than the agent's, or UNCHANGED.

        version: of the state that the agent has; key: by which it knows states. A newer poll of the same machine ends
        an older one. NotFound: there is no such agent; StoreError, SecretError.
        """
        deadline = trio.current_time() + wait_s * uniform(SHORTEST_WAIT, 1)  # noqa: S311  no secret
        self._end(instance_id)
        waiter = _Waiter(domain_id)
        displaced = self._waiting.put(instance_id, waiter, tenant_id)  # before the look: no change falls in between
        if displaced is not None:
            displaced.changed.set()
        self._somebody.unpark_all()
        try:
            while self._waiting.get(instance_id) is waiter:
                waiter.changed, waiter.fingerprint = trio.Event(), None
                issued = await self.current(instance_id, version)
                if issued.version != version:
                    return await self._signed(issued, key)
                waiter.fingerprint, waiter.turns_at = issued.fingerprint, issued.wanted.turns_at
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
        """The state of a machine may be another one now."""
        waiter = self._waiting.get(instance_id)
        if waiter is not None:
            waiter.changed.set()

    def close(self) -> None:
        """The service stops: whoever waits is answered, and nobody waits any more."""
        self._closed = True
        for instance_id in tuple(self._waiting):
            self._end(instance_id)

    def forget(self) -> None:
        """The store was replaced: all states may be others."""
        self._trail = 0
        for instance_id in tuple(self._waiting):
            self.touch(instance_id)

    # --- versions -----------------------------------------------------------------------------------------------

    async def current(self, instance_id: int, known: int = 0) -> Issued:
        """The state that a machine should have now. known: the version that its agent has, which may be newer than ours
        where the store was restored from a copy. NotFound: no such agent; StoreError, SecretError."""
        while True:
            seen = await self._store.read(partial(self._look, instance_id, known))
            if isinstance(seen, Issued):
                return seen
            await self._settle(instance_id, seen)

    def _look(self, instance_id: int, known: int, tx: Tx) -> Issued | _Unsettled:
        """The state, if nothing has to be written for it. It is made here alone: a login may wait for what writes."""
        agent, at = repo.found(tx, instance_id), self._clock()
        found, begun = ways.of_instance(tx, instance_id), ways.begun(tx, instance_id)
        keys = {way.key for way in found}
        if keys != begun.keys():
            return _Unsettled(changes=[(key, key in keys) for key in sorted(keys ^ begun.keys())])
        wanted = self._builder(tx, instance_id).build(ways.accesses(found, begun), at)
        if wanted.unhashed:
            return _Unsettled(unhashed=wanted.unhashed)
        digest, is_ahead = content(wanted.state), agent.version < known <= at + LEEWAY_US
        if digest != agent.digest or is_ahead:
            return _Unsettled(digest=digest, last=known if is_ahead else agent.version)
        return Issued(agent.domain_id, wanted, agent.version, fingerprint(tx, self._policies, instance_id))

    async def _settle(self, instance_id: int, unsettled: _Unsettled) -> None:
        """Write what is missing, in short transactions. What has changed meanwhile is seen by the next look."""
        at = self._clock()

        def change(tx: Tx, changes: Iterator[tuple[ways.Key, bool]]) -> None:
            repo.found(tx, instance_id)
            ways.change(tx, instance_id, changes, at)

        def issue(tx: Tx) -> None:
            last = max(unsettled.last, repo.found(tx, instance_id).version)
            repo.set_version(tx, instance_id, max(last + 1, at), unsettled.digest, at)

        if unsettled.changes:
            await in_turns(self._store, unsettled.changes, change)
        elif unsettled.unhashed:
            await self._hash(unsettled.unhashed)
        else:
            await self._store.write(issue)

    async def _hash(self, unhashed: Sequence[Unhashed]) -> None:
        """Make the hashes of passwords and keep them, so that they are the same in every state."""
        made = []
        for each in unhashed:
            hashed = await trio.to_thread.run_sync(_hashed, each, limiter=self._hashing)
            made.append((each, hashed.encode()))
        await in_turns(self._store, made, self._keep)

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

    def _builder(self, tx: Tx, instance_id: int) -> Builder:
        return Builder(tx, self._vault, self._policies, instance_id)

    async def _signed(self, issued: Issued, key: bytes) -> dict[str, object]:
        state = replace(issued.wanted.state, version=issued.version, issued=self._clock())

        def work(tx: Tx) -> dict[str, str]:
            return envelope(partial(signers.sign, tx, self._vault, issued.domain_id, by=key), state)

        return dict(await self._store.read(work))

    # --- changes ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Tell the agents that wait when their state is another one, until cancelled."""
        while True:
            if not self._waiting:
                await self._somebody.park()
            await trio.sleep(LOOK_S)
            try:
                await self.look()
            except SallyportError as error:
                log.warning("agents that wait are not looked after", error=str(error))

    async def look(self) -> None:
        """Look for changes once. StoreError, SecretError."""
        newest, domains = await self._store.read(partial(_changed_domains, since=self._trail))
        at, wanted = self._clock(), dict[int, list[int]]()
        for instance_id, waiter in self._waiting.items():
            if waiter.domain_id in domains or waiter.turns(at):
                wanted.setdefault(waiter.domain_id, []).append(instance_id)
        async with trio.open_nursery() as nursery:
            for instance_ids in wanted.values():
                nursery.start_soon(self._look_at, instance_ids, at)
        self._trail = newest

    async def _look_at(self, instance_ids: Sequence[int], at: int) -> None:
        """Look at the machines of one domain. Those that it is too late for, or that cannot be read, look for
        themselves: no domain has the agents of others wait."""
        left = deque(instance_ids)
        try:
            with trio.move_on_after(DOMAIN_S):
                while left:
                    few = [left[number] for number in range(min(SLICE, len(left)))]
                    seen = await self._store.search(partial(self._fingerprints, few))
                    for found in seen:
                        waiter = self._waiting.get(left.popleft())
                        if waiter is not None and (waiter.turns(at) or waiter.fingerprint != found):
                            waiter.changed.set()
        except StoreError as error:
            log.warning("agents of a domain are not looked after", error=str(error))
        for instance_id in left:
            self.touch(instance_id)

    def _fingerprints(self, instance_ids: Sequence[int], tx: Tx) -> list[int]:
        return [fingerprint(tx, self._policies, each) for each in instance_ids]


def _hashed(unhashed: Unhashed) -> str:
    """The former hash, if it is this password's: a new master key seals all passwords anew and changes none."""
    if unhashed.former and matches(unhashed.password, unhashed.former):
        return unhashed.former
    return sha512_crypt(unhashed.password)


def _changed_domains(tx: Tx, since: int) -> tuple[int, frozenset[int]]:
    """The newest entry of the audit trail, and the domains that the entries after one may be about."""
    newest = tx.value(int, "select coalesce(max(id), 0) from audit_trail") or 0
    if newest == since:
        return newest, frozenset()
    everything = newest < since  # the trail of another store
    sql = (
        "select d.id from domains d where exists (select 1 from audit_trail a where a.id > :since and "
        "(a.domain_id = d.id or (a.domain_id is null and a.tenant_id in (d.tenant_id, 0))))"
    )
    rows = tx.rows("select id from domains" if everything else sql, **({} if everything else {"since": since}))
    return newest, frozenset(int(each[0] or 0) for each in rows)
