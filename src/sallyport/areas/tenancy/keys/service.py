"""The service for API keys. It creates, exchanges, renews and revokes keys, and authenticates each request of an
agent."""

from collections.abc import Callable
from dataclasses import replace

from sallyport.areas.tenancy.authentication import MAX_LENGTH, RecordCache
from sallyport.areas.tenancy.guesses import Guesses
from sallyport.areas.tenancy.keys import repo
from sallyport.areas.tenancy.keys.key import ENROLMENT_US, KEEP_US, OWN_US, Agent, KeyKind, KeyRecord, NewKey
from sallyport.base.clock import SECOND, Clock, iso
from sallyport.base.errors import (
    INVALID_TOKEN,
    Conflict,
    FieldError,
    Forbidden,
    Invalid,
    NotFound,
    TooMany,
    Unauthenticated,
    invalid_field,
)
from sallyport.base.secret import new_key, token_hash
from sallyport.base.wire import JSON
from sallyport.store import audit, counters
from sallyport.store.model import ListQuery, Store, Tx
from sallyport.web.scope import ENROLMENTS, Caller, Role, not_allowed

MAX_KEYS = 50_000
"""Maximum number of keys of a domain."""
SEEN_US = 3600 * SECOND
"""Resolution of the time of a key's last use. With a finer resolution, every request would write to the store."""
_LAST_TIME = 253_402_300_799 * SECOND  # the end of the year 9999
_NO_INSTANCE = "instance not found"
_OWN_ROLES = {Agent.ENDPOINT: Role.AGENT, Agent.DIRECTORY: Role.DIRECTORY}

HasInstance = Callable[[Tx, int, int], bool]
"""A function that returns whether a domain has an instance: (transaction, domain id, instance id) -> bool."""


class Keys:
    """The API keys of all domains. The class implements web.scope.Authenticator for keys.

    guesses: the rate limit for the wrong keys of each source.
    """

    def __init__(self, store: Store, guesses: Guesses, clock: Clock, *, has_instance: HasInstance) -> None:
        self._store = store
        self._clock = clock
        self._has_instance = has_instance
        self._known = RecordCache(store, repo.by_hash)
        self._guesses = guesses

    # --- authentication ---------------------------------------------------------------------------------------

    async def authenticate(self, token: str, source: str = "") -> Caller:
        """Return the caller that a key identifies. source: the address of the client.

        Raises Unauthenticated if the key is unknown, expired or revoked. Raises TooMany if the key is unknown, and the
        source has sent too many unknown keys.

        A valid key is accepted from any source, because several hosts may share an address. The key is looked up by its
        hash, so the duration of the look-up reveals nothing about the key. An enrolment key is accepted even if its
        limit of uses is reached. A machine that has already used the key may repeat its request.
        """
        now = self._clock()
        hashed = token_hash(token[: MAX_LENGTH + 1])
        record = await self._known.find(hashed, source)
        if record is None:
            if self._guesses.too_many(source, now):
                raise TooMany("too many wrong API keys from this address: try again in a minute")
            self._guesses.fail(source, now)
            raise Unauthenticated(INVALID_TOKEN)
        if record.status(now) in ("expired", "revoked"):
            raise Unauthenticated(INVALID_TOKEN)
        if record.seen_at is None or now - record.seen_at >= SEEN_US:
            await self._store_use(hashed, record, now)
        return _caller(record)

    async def _store_use(self, hashed: str, record: KeyRecord, now: int) -> None:
        """Store the time at which a key was used. At the first use of the key, delete the older key that this key
        replaces."""
        await self._store.write(lambda tx: repo.seen(tx, record, now))
        self._known.update(hashed, record, replace(record, seen_at=now, successor_of=None))
        if record.successor_of is not None:
            self.forget()

    def forget(self) -> None:
        """Empty the cache. Call this after a revocation, a restore, or a change by another process."""
        self._known.forget()

    # --- for admins -------------------------------------------------------------------------------------------

    async def create(self, new: NewKey) -> tuple[KeyRecord, str]:
        """Create an enrolment key, and return its record and the key. The key itself is not stored and cannot be shown
        again.

        Raises NotFound if the domain has no such instance. Raises Conflict if the domain has too many keys. Raises
        Invalid if the expiry time is not in the future.
        """
        at = self._clock()
        until = at + ENROLMENT_US if new.expires_at is None else new.expires_at
        if not at < until <= _LAST_TIME:
            raise invalid_field("expiresAt", "must be a time in the future, up to the year 9999")
        if new.instance_id is not None and new.agent is Agent.DIRECTORY:
            raise Invalid.about("a key of a directory agent has no instance: omit instanceId", "instanceId")
        key = new_key()

        def transaction(tx: Tx) -> KeyRecord:
            if new.instance_id is not None and not self._has_instance(tx, new.domain_id, new.instance_id):
                raise NotFound(_NO_INSTANCE)
            repo.sweep(tx, new.domain_id, at - KEEP_US)
            record = _add(tx, new, KeyKind.ENROLMENT, hashed=token_hash(key), at=at, until=until)
            _audit(tx, "key.create", record, at, uses=record.uses)
            return record

        return await self._store.write(transaction), key

    async def page(self, stretch: ListQuery) -> tuple[list[KeyRecord], int]:
        """Return one page of a domain's keys, ordered by id. Also return the number of all keys of the domain."""
        return await self._store.read(lambda tx: repo.page(tx, stretch))

    async def revoke(self, domain_id: int, key_id: int) -> KeyRecord:
        """Revoke a key. When the call returns, the service rejects the key. A key that is revoked already stays
        unchanged.

        Keys that replaced this key by renewal are revoked too, because a thief of the key may have registered them. If
        the key is an enrolment key, the own keys of agents that have enrolled with it remain valid.

        Raises NotFound if the domain has no such key.
        """
        at = self._clock()

        def transaction(tx: Tx) -> KeyRecord:
            found = repo.by_id(tx, key_id)
            if found is None or found.domain_id != domain_id:
                raise NotFound("API key not found")
            for each in (found, *repo.chain(tx, key_id)):
                if repo.revoke(tx, each.id, at):
                    _audit(tx, "key.revoke", each, at)
            return replace(found, revoked_at=found.revoked_at or at)

        revoked = await self._store.write(transaction)
        self.forget()
        return revoked

    # --- for agents -------------------------------------------------------------------------------------------

    def spend(self, tx: Tx, caller: Caller, instance_id: int) -> None:
        """Record the use of an endpoint agent's enrolment key, in the transaction that registers the instance.

        If the key was used for the same instance before, this does not count as another use. Raises Unauthenticated if
        the key is expired, revoked or used up. Raises Forbidden if the caller has no enrolment key of an endpoint
        agent.
        """
        self._spend(tx, self._enrolment(tx, caller, Agent.ENDPOINT), _machine(instance_id))

    async def exchange(self, caller: Caller, key_hash: str, instance_id: int | None = None) -> KeyRecord:
        """Register an agent's own key in a new transaction; see `exchange_in`."""
        record = await self._store.write(lambda tx: self.exchange_in(tx, caller, key_hash, instance_id))
        self.forget()  # the former keys of the instance were deleted
        return record

    def exchange_in(self, tx: Tx, caller: Caller, key_hash: str, instance_id: int | None = None) -> KeyRecord:
        """Register the hash of the key that an agent has generated for itself. A repeated request succeeds.

        caller: a caller with an enrolment key. instance_id: the instance of an endpoint agent. If the enrolment key is
        for the whole domain, the key must have been used for this instance before (`spend`).

        Raises Unauthenticated, Forbidden, Invalid. Raises NotFound if the enrolment key is not for this instance.
        Raises Conflict if the instance already has an agent, or if another agent has registered the hash.
        """
        at, enrolment = self._clock(), self._enrolment(tx, caller)
        agent = Agent(enrolment.agent)
        instance_id = self._instance(tx, enrolment, instance_id) if agent is Agent.ENDPOINT else None
        new = NewKey(enrolment.domain_id, agent, instance_id, enrolment.name)
        known = repo.by_hash(tx, key_hash)
        if known is not None:
            return _same(known, new, at)
        self._spend(tx, enrolment, f"key {key_hash}" if instance_id is None else _machine(instance_id))
        former = [] if instance_id is None else repo.active_of_instance(tx, instance_id, at)
        if former and enrolment.instance_id is None:
            raise Conflict(
                "the instance already has an agent: to replace the agent, use an enrolment key of the instance"
            )
        repo.delete(tx, new.domain_id, [each.id for each in former])
        record = _add(tx, new, KeyKind.OWN, hashed=key_hash, at=at, until=at + OWN_US)
        _audit(tx, "key.exchange", record, at, enrolmentKey=enrolment.id)
        return record

    async def renew(self, caller: Caller, key_hash: str) -> KeyRecord:
        """Register the hash of an agent's next key. The next key replaces the caller's key when it is first used.

        A repeated request succeeds. If the agent has registered a next key before and has not used it yet, a request
        with another hash replaces that key.

        Raises Unauthenticated. Raises Conflict if another agent has registered the hash.
        """
        at = self._clock()

        def transaction(tx: Tx) -> KeyRecord:
            current = _active(repo.by_id(tx, caller.token_id), at)
            new = NewKey(current.domain_id, Agent(current.agent), current.instance_id, current.name)
            known = repo.by_hash(tx, key_hash)
            if known is not None:
                return _same(known, new, at)
            repo.delete(tx, new.domain_id, [each.id for each in repo.successors(tx, current.id)])
            record = _add(tx, new, KeyKind.OWN, hashed=key_hash, at=at, until=at + OWN_US, successor_of=current.id)
            _audit(tx, "key.renew", record, at, formerKey=current.id)
            return record

        return await self._store.write(transaction)

    def _enrolment(self, tx: Tx, caller: Caller, agent: Agent | None = None) -> KeyRecord:
        """Return the caller's enrolment key from the store. Raises Forbidden, Unauthenticated.

        agent: the kind of agent that must enrol with the key; None for any kind.
        """
        key = repo.by_id(tx, caller.token_id) if caller.role is Role.ENROLMENT else None
        if caller.role is not Role.ENROLMENT:
            raise not_allowed(caller.role, ENROLMENTS)
        if key is not None and agent not in (None, key.agent):
            raise Forbidden(f"role not allowed: this enrolment key is for an agent of the kind {key.agent}")
        return _active(key, self._clock())

    def _spend(self, tx: Tx, key: KeyRecord, machine: str) -> None:
        if not repo.spend(tx, key.id, machine):
            raise Unauthenticated(INVALID_TOKEN)

    def _instance(self, tx: Tx, key: KeyRecord, wanted: int | None) -> int:
        """Return the id of the instance that enrols with a key. Raises Invalid, NotFound."""
        if key.instance_id is None:
            if wanted is None:
                message = "is missing: give the id that the registration of the machine returned"
                raise Invalid("missing instanceId", (FieldError("instanceId", message),))
            allowed = repo.spent_on(tx, key.id, _machine(wanted))
        else:
            wanted, allowed = key.instance_id, wanted in (None, key.instance_id)
        if not allowed or not self._has_instance(tx, key.domain_id, wanted):
            raise NotFound(_NO_INSTANCE)
        return wanted


def renew_at(record: KeyRecord) -> int:
    """Return the time at which an agent should renew a key: after one third of the key's lifetime."""
    return record.created_at + (record.expires_at - record.created_at) // 3


def _caller(record: KeyRecord) -> Caller:
    return Caller(
        token_id=record.id,
        organization=record.organization,
        tenant_number=record.tenant_number,
        tenant_id=record.tenant_id,
        role=Role.ENROLMENT if record.kind == KeyKind.ENROLMENT else _OWN_ROLES[Agent(record.agent)],
        name=record.name or f"key {record.id}",
        domain_id=record.domain_id,
        instance_id=record.instance_id,
    )


def _active(key: KeyRecord | None, now: int) -> KeyRecord:
    """Return the key if it is active or used up. Raises Unauthenticated if the key does not exist, is expired or is
    revoked."""
    if key is None or key.status(now) in ("expired", "revoked"):
        raise Unauthenticated(INVALID_TOKEN)
    return key


def _same(known: KeyRecord, new: NewKey, now: int) -> KeyRecord:
    """Return a key that an earlier request of the same agent has registered.

    Raises Conflict if another agent has registered the key, or if the key is not active.
    """
    own = (known.kind, known.domain_id, known.agent, known.instance_id, known.status(now))
    if own != (KeyKind.OWN, new.domain_id, new.agent, new.instance_id, "active"):
        raise Conflict("this key is already registered: generate another one")
    return known


def _add(
    tx: Tx, new: NewKey, kind: KeyKind, *, hashed: str, at: int, until: int, successor_of: int | None = None
) -> KeyRecord:
    if counters.total(tx, new.domain_id, repo.COUNTER) >= MAX_KEYS:
        raise Conflict(f"the domain has {MAX_KEYS} API keys, which is the maximum: revoke some first")
    key_id = repo.add(tx, new, kind, hashed=hashed, at=at, until=until, successor_of=successor_of)
    record = repo.by_id(tx, key_id)
    if record is None:  # the insert is in the same transaction
        raise LookupError("a key that was just made is gone")
    return record


def _audit(tx: Tx, action: str, key: KeyRecord, at: int, **more: JSON) -> None:
    fields: dict[str, JSON] = {"kind": key.kind, "agent": key.agent, "instanceId": key.instance_id, **more}
    changes = {} if action == "key.revoke" else audit.changed({}, {**fields, "expires": iso(key.expires_at)})
    audit.record_in(tx, action, key.domain_id, key.target, changes, at=at)


def _machine(instance_id: int) -> str:
    return f"instance {instance_id}"
