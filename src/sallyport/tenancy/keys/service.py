"""The rules of API keys: creation, exchange, renewal, revocation, and the look-up for each request of an agent."""

from collections.abc import Callable
from dataclasses import replace

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
from sallyport.store.model import Store, Tx
from sallyport.store.search import Stretch
from sallyport.tenancy.authentication import LONGEST, Guesses, RecordCache
from sallyport.tenancy.keys import repo
from sallyport.tenancy.keys.key import ENROLMENT_US, KEEP_US, OWN_US, Agent, KeyKind, KeyRecord, NewKey
from sallyport.web.scope import Caller, Role

MAX_KEYS = 50_000
"""Keys of one domain."""
SEEN_US = 3600 * SECOND
"""Resolution of the last use of a key, which saves a write for each request."""
_LAST_TIME = 253_402_300_799 * SECOND  # the end of the year 9999
_NO_INSTANCE = "instance not found"
_OWN_ROLES = {Agent.ENDPOINT: Role.AGENT, Agent.DIRECTORY: Role.DIRECTORY}

HasInstance = Callable[[Tx, int, int], bool]
"""Whether a domain has an instance, by their ids."""


class Keys:
    """The API keys of all domains. Satisfies web.scope.Authenticator, for keys alone."""

    def __init__(self, store: Store, clock: Clock, *, has_instance: HasInstance) -> None:
        self._store = store
        self._clock = clock
        self._has_instance = has_instance
        self._known = RecordCache(store, repo.by_hash)
        self._guesses = Guesses()

    # --- authentication ---------------------------------------------------------------------------------------

    async def authenticate(self, token: str, source: str = "") -> Caller:
        """Return the caller of a key. Unauthenticated: unknown, expired or revoked; TooMany: unknown, and its source
        has sent too many unknown keys.

        A valid key is admitted from every source: others may share the address. The look-up is by a hash, so that its
        duration discloses nothing. An enrolment key without a use left passes: a machine that used it may ask again.
        """
        now = self._clock()
        hashed = token_hash(token[: LONGEST + 1])
        record = await self._known.find(hashed, source)
        if record is None:
            if self._guesses.too_many(source, now):
                raise TooMany("too many wrong API keys from this address: try again in a minute")
            self._guesses.fail(source, now)
            raise Unauthenticated(INVALID_TOKEN)
        if record.status(now) in ("expired", "revoked"):
            raise Unauthenticated(INVALID_TOKEN)
        if record.seen_at is None or now - record.seen_at >= SEEN_US:
            await self._see(hashed, record, now)
        return _caller(record)

    async def _see(self, hashed: str, record: KeyRecord, now: int) -> None:
        """Note that a key is in use; at its first use, the one before it ends."""
        await self._store.write(lambda tx: repo.seen(tx, record, now))
        self._known.update(hashed, record, replace(record, seen_at=now, successor_of=None))
        if record.successor_of is not None:
            self.forget()

    def forget(self) -> None:
        """Empty the cache: after a revocation, a restore, or another process's change."""
        self._known.forget()

    # --- what admins do ---------------------------------------------------------------------------------------

    async def create(self, new: NewKey) -> tuple[KeyRecord, str]:
        """Make an enrolment key: its record, and the key, which is shown only here.

        NotFound: no such instance in the domain; Invalid; Conflict: too many keys.
        """
        at = self._clock()
        until = at + ENROLMENT_US if new.expires_at is None else new.expires_at
        if not at < until <= _LAST_TIME:
            raise invalid_field("expiresAt", "a time in the future, up to the year 9999")
        if new.instance_id is not None and new.agent is Agent.DIRECTORY:
            raise invalid_field("instanceId", "a directory agent's key has none")
        key = new_key()

        def work(tx: Tx) -> KeyRecord:
            if new.instance_id is not None and not self._has_instance(tx, new.domain_id, new.instance_id):
                raise NotFound(_NO_INSTANCE)
            repo.sweep(tx, new.domain_id, at - KEEP_US)
            record = _add(tx, new, KeyKind.ENROLMENT, hashed=token_hash(key), at=at, until=until)
            _note(tx, "key.create", record, at, uses=record.uses)
            return record

        return await self._store.write(work), key

    async def page(self, stretch: Stretch) -> tuple[list[KeyRecord], int]:
        """One page of a domain's keys, ordered by id, and how many there are."""
        return await self._store.read(lambda tx: repo.page(tx, stretch))

    async def revoke(self, domain_id: int, key_id: int) -> KeyRecord:
        """Revoke a key; it is refused from the moment this returns. A repetition changes nothing. NotFound.

        Its successors, which a thief of the key may have made, are revoked with it. Agents' own keys from an enrolment
        key stay valid: each is revoked by itself.
        """
        at = self._clock()

        def work(tx: Tx) -> KeyRecord:
            found = repo.by_id(tx, key_id)
            if found is None or found.domain_id != domain_id:
                raise NotFound("API key not found")
            for each in (found, *repo.chain(tx, key_id)):
                if repo.revoke(tx, each.id, at):
                    _note(tx, "key.revoke", each, at)
            return replace(found, revoked_at=found.revoked_at or at)

        revoked = await self._store.write(work)
        self.forget()
        return revoked

    # --- what agents do ---------------------------------------------------------------------------------------

    def spend(self, tx: Tx, caller: Caller, instance_id: int) -> None:
        """Use an endpoint agent's enrolment key for an instance, in the transaction that registers it; the same
        instance again is no further use. Unauthenticated: revoked, or used up; Forbidden: another kind of key."""
        self._spend(tx, self._enrolment(tx, caller, Agent.ENDPOINT), _machine(instance_id))

    async def exchange(self, caller: Caller, key_hash: str, instance_id: int | None = None) -> KeyRecord:
        """`exchange_in` in a transaction of its own."""
        record = await self._store.write(lambda tx: self.exchange_in(tx, caller, key_hash, instance_id))
        self.forget()  # the instance's former keys are gone
        return record

    def exchange_in(self, tx: Tx, caller: Caller, key_hash: str, instance_id: int | None = None) -> KeyRecord:
        """Keep the hash of the key that an agent has made for itself; the same again is a success.

        caller: by an enrolment key. instance_id: an endpoint agent's machine; a key of the whole domain must have
        been used for it already (`spend`). Unauthenticated, Forbidden; NotFound: no such instance for this key;
        Conflict: the instance has an agent, or the hash is another key's.
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
            raise Conflict("the instance has an agent: an enrolment key of the instance can replace it")
        repo.delete(tx, new.domain_id, [each.id for each in former])
        record = _add(tx, new, KeyKind.OWN, hashed=key_hash, at=at, until=at + OWN_US)
        _note(tx, "key.exchange", record, at, enrolmentKey=enrolment.id)
        return record

    async def renew(self, caller: Caller, key_hash: str) -> KeyRecord:
        """Keep the hash of an agent's next key, which takes the place of the caller's when it is first used.

        The same again is a success; another takes the place of one that was never used. Conflict: the hash is another
        key's; Unauthenticated.
        """
        at = self._clock()

        def work(tx: Tx) -> KeyRecord:
            current = _active(repo.by_id(tx, caller.token_id), at)
            new = NewKey(current.domain_id, Agent(current.agent), current.instance_id, current.name)
            known = repo.by_hash(tx, key_hash)
            if known is not None:
                return _same(known, new, at)
            repo.delete(tx, new.domain_id, [each.id for each in repo.successors(tx, current.id)])
            record = _add(tx, new, KeyKind.OWN, hashed=key_hash, at=at, until=at + OWN_US, successor_of=current.id)
            _note(tx, "key.renew", record, at, formerKey=current.id)
            return record

        return await self._store.write(work)

    def _enrolment(self, tx: Tx, caller: Caller, agent: Agent | None = None) -> KeyRecord:
        """The enrolment key of a caller, as it is in this transaction."""
        key = repo.by_id(tx, caller.token_id) if caller.role is Role.ENROLMENT else None
        if caller.role is not Role.ENROLMENT or (key is not None and agent not in (None, key.agent)):
            raise Forbidden("role not allowed")
        return _active(key, self._clock())

    def _spend(self, tx: Tx, key: KeyRecord, machine: str) -> None:
        if not repo.spend(tx, key.id, machine):
            raise Unauthenticated(INVALID_TOKEN)

    def _instance(self, tx: Tx, key: KeyRecord, wanted: int | None) -> int:
        """The instance that an enrolment key is exchanged for. Invalid, NotFound."""
        if key.instance_id is None:
            if wanted is None:
                raise Invalid("missing instanceId", (FieldError("instanceId", "the machine's, by its registration"),))
            allowed = repo.spent_on(tx, key.id, _machine(wanted))
        else:
            wanted, allowed = key.instance_id, wanted in (None, key.instance_id)
        if not allowed or not self._has_instance(tx, key.domain_id, wanted):
            raise NotFound(_NO_INSTANCE)
        return wanted


def renew_at(record: KeyRecord) -> int:
    """When an agent makes its next key: with two thirds of the time of this one left."""
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
    """Return the key if it is active, or if only its uses are spent. Unauthenticated."""
    if key is None or key.status(now) in ("expired", "revoked"):
        raise Unauthenticated(INVALID_TOKEN)
    return key


def _same(known: KeyRecord, new: NewKey, now: int) -> KeyRecord:
    """The key whose hash is sent again, by the same agent. Conflict."""
    own = (known.kind, known.domain_id, known.agent, known.instance_id, known.status(now))
    if own != (KeyKind.OWN, new.domain_id, new.agent, new.instance_id, "active"):
        raise Conflict("this key is known already: make another")
    return known


def _add(
    tx: Tx, new: NewKey, kind: KeyKind, *, hashed: str, at: int, until: int, successor_of: int | None = None
) -> KeyRecord:
    if counters.total(tx, new.domain_id, repo.COUNTER) >= MAX_KEYS:
        raise Conflict(f"the domain has {MAX_KEYS} API keys")
    key_id = repo.add(tx, new, kind, hashed=hashed, at=at, until=until, successor_of=successor_of)
    record = repo.by_id(tx, key_id)
    if record is None:  # the insert above is in the same transaction
        raise LookupError("a key that was just made is gone")
    return record


def _note(tx: Tx, action: str, key: KeyRecord, at: int, **more: JSON) -> None:
    told: dict[str, JSON] = {"kind": key.kind, "agent": key.agent, "instanceId": key.instance_id, **more}
    changes = {} if action == "key.revoke" else audit.changed({}, {**told, "expires": iso(key.expires_at)})
    audit.record(
        tx, action, at=at, tenant_id=key.tenant_id, domain_id=key.domain_id, target=key.target, changes=changes
    )


def _machine(instance_id: int) -> str:
    return f"instance {instance_id}"
