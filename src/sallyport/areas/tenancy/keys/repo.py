"""SQL for API keys, as functions of a transaction."""

from collections.abc import Sequence

from sallyport.areas.tenancy.keys.key import KeyKind, KeyRecord, NewKey
from sallyport.store import counters
from sallyport.store.model import LISTED, ListQuery, Tx, listed
from sallyport.store.search import page as page_of
from sallyport.store.slices import delete_slice

COUNTER = "api_keys"
_SELECT = """
select k.id, d.tenant_id, t.organization_id as organization, t.number as tenant_number, k.domain_id, k.instance_id,
    k.kind, k.agent, k.name, k.uses, k.used, k.created_at, k.expires_at, k.revoked_at, k.seen_at, k.successor_of
from api_keys k join domains d on d.id = k.domain_id join tenants t on t.id = d.tenant_id
"""
_SWEEP = 100
_ENDED = "(case when revoked_at < expires_at then revoked_at else expires_at end)"
"""The time at which a key has ended or will end. An index has this expression."""
_ALL = "select id from api_keys where domain_id = :d"


def add(
    tx: Tx, new: NewKey, kind: KeyKind, *, hashed: str, at: int, until: int, successor_of: int | None = None
) -> int:
    """Insert a key's hash. Return the key's id, or 0 if the hash exists already."""
    key_id = tx.value(
        int,
        "insert into api_keys (domain_id, instance_id, kind, agent, name, hash, uses, successor_of, created_at, "
        "expires_at) values (:d, :instance, :kind, :agent, :name, :hash, :uses, :successor_of, :at, :until) "
        "on conflict (hash) do nothing returning id",
        d=new.domain_id,
        instance=new.instance_id,
        kind=kind.value,
        agent=new.agent.value,
        name=new.name,
        hash=hashed,
        uses=new.uses,
        successor_of=successor_of,
        at=at,
        until=until,
    )
    if key_id is None:
        return 0
    counters.add(tx, new.domain_id, COUNTER, 1)
    return key_id


def by_hash(tx: Tx, hashed: str) -> KeyRecord | None:
    """Return the record of a key, also of an expired or a revoked key. hashed: the hash of the key.

    Return None if no key has this hash, or if the domain of the key was removed.
    """
    return tx.one(KeyRecord, f"{_SELECT} where k.hash = :hash and d.removed_at is null", hash=hashed)


def by_id(tx: Tx, key_id: int) -> KeyRecord | None:
    """Return the record of a key, also of an expired or a revoked key. Return None if no key has this id."""
    return tx.one(KeyRecord, f"{_SELECT} where k.id = :id", id=key_id)


def page(tx: Tx, stretch: ListQuery) -> tuple[list[KeyRecord], int]:
    """Return one page of a domain's keys, ordered by id. Also return the number of all keys of the domain."""
    select = f"select * from ({_SELECT}) as keys"
    return page_of(tx, KeyRecord, select, _ALL, stretch, counter=COUNTER, d=stretch.domain_id)


def active_of_instance(tx: Tx, instance_id: int, at: int) -> list[KeyRecord]:
    """Return the active keys with which an instance's agent authenticates."""
    sql = f"{_SELECT} where k.instance_id = :id and k.kind = 'own' and k.revoked_at is null and k.expires_at > :at"
    return tx.all(KeyRecord, sql, id=instance_id, at=at)


def spend(tx: Tx, key_id: int, machine: str) -> bool:
    """Record that a machine has used an enrolment key. Return False if the limit of uses is reached.

    If the same machine has used the key before, this use does not count.
    """
    sql = "insert into api_key_machines (key_id, machine) values (:id, :machine) on conflict do nothing"
    if not tx.execute(sql, id=key_id, machine=machine):
        return True
    sql = "update api_keys set used = used + 1 where id = :id and (uses is null or used < uses)"
    return tx.execute(sql, id=key_id) > 0


def spent_on(tx: Tx, key_id: int, machine: str) -> bool:
    """Return whether an enrolment key was used for a machine before."""
    sql = "select 1 from api_key_machines where key_id = :id and machine = :machine"
    return tx.value(int, sql, id=key_id, machine=machine) is not None


def revoke(tx: Tx, key_id: int, at: int) -> bool:
    """Revoke a key, and make all nodes empty their caches. Return False if the key is revoked already."""
    sql = "update api_keys set revoked_at = :at where id = :id and revoked_at is null"
    changed = tx.execute(sql, id=key_id, at=at) > 0
    _drop_elsewhere(tx)
    return changed


def revoke_enrolments(tx: Tx, at: int) -> int:
    """Revoke all enrolment keys. Return the number of keys that this call has revoked."""
    return tx.execute("update api_keys set revoked_at = :at where kind = 'enrolment' and revoked_at is null", at=at)


def seen(tx: Tx, record: KeyRecord, at: int) -> None:
    """Store the time at which a key was used, and delete the older key that this key replaces.

    If the older key was revoked, it is not deleted, so that lists still show it.
    """
    tx.execute("update api_keys set seen_at = :at, successor_of = null where id = :id", id=record.id, at=at)
    former = None if record.successor_of is None else by_id(tx, record.successor_of)
    if former is not None and former.revoked_at is None:
        delete(tx, former.domain_id, [former.id])


def chain(tx: Tx, key_id: int) -> list[KeyRecord]:
    """Return all successors of a key, direct and indirect."""
    found = list[KeyRecord]()
    waiting = successors(tx, key_id)
    while waiting:
        found += waiting
        waiting = [later for each in waiting for later in successors(tx, each.id)]
    return found


def successors(tx: Tx, key_id: int) -> list[KeyRecord]:
    """Return the direct successors of a key."""
    return tx.all(KeyRecord, f"{_SELECT} where k.successor_of = :id", id=key_id)


def delete(tx: Tx, domain_id: int, key_ids: Sequence[int]) -> None:
    """Delete keys of a domain. Keys that do not exist any more are ignored."""
    gone = 0
    for key_id in key_ids:
        gone += tx.execute("delete from api_keys where id = :id", id=key_id)
    if gone:
        counters.add(tx, domain_id, COUNTER, -gone)
        _drop_elsewhere(tx)


def sweep(tx: Tx, domain_id: int, before: int) -> None:
    """Delete the keys that expired or were revoked before a time. Before a key is deleted, the records of the machines
    that enrolled with it are deleted.

    before: the time in microseconds. A call deletes only a limited number of rows.
    """
    sql = f"select id from api_keys where domain_id = :d and {_ENDED} < :before order by {_ENDED} limit :limit"
    ended = [int(str(row[0])) for row in tx.rows(sql, d=domain_id, before=before, limit=_SWEEP)]
    _remove(tx, domain_id, ended)


def _remove(tx: Tx, domain_id: int, key_ids: Sequence[int]) -> int:
    """Delete up to SLICE records of machines that enrolled with these keys. Then delete each of these keys that has no
    machines left.

    Return the number of deleted rows.
    """
    ids, some = listed(key_ids), f"in {LISTED}"
    machines = delete_slice(tx, "api_key_machines", "key_id, machine", f"key_id {some}", ids=ids)
    idle = f"id {some} and not exists (select 1 from api_key_machines m where m.key_id = api_keys.id)"
    keys = [int(str(row[0])) for row in tx.rows(f"select id from api_keys where {idle}", ids=ids)]
    delete(tx, domain_id, keys)
    return machines + len(keys)


def forget_instance(tx: Tx, instance_id: int) -> int:
    """Delete some of the keys of an instance, and return the number of deleted rows. The keys must be deleted before
    the instance."""
    keys = tx.all(
        KeyRecord, f"{_SELECT} where k.instance_id = :id order by k.id limit :limit", id=instance_id, limit=_SWEEP
    )
    return _remove(tx, keys[0].domain_id, [key.id for key in keys]) if keys else 0


def _drop_elsewhere(tx: Tx) -> None:
    """Make other nodes empty their caches, by increasing config_version."""
    tx.execute("update config_version set version = version + 1")
