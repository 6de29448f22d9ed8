"""The SQL of instances."""

from collections.abc import Collection

from sallyport.areas.users.instances.instance import Instance, InstanceQuery
from sallyport.base.errors import Conflict, NotFound
from sallyport.base.text import fold
from sallyport.store import counters
from sallyport.store.counters import whole_page
from sallyport.store.model import LISTED_TEXTS, ListQuery, Tx, Value, columns_of, listed
from sallyport.store.search import SearchIndex
from sallyport.store.search import page as page_of

COUNTER = "endpoint_instances"
_SEARCH = SearchIndex("endpoint_instances_search")
_SELECT = f"select {', '.join(columns_of(Instance))} from endpoint_instances"


def page(tx: Tx, query: InstanceQuery) -> tuple[list[Instance], int]:
    """Return one page of a domain's instances, ordered by id, and the number of matching instances."""
    stretch = ListQuery(query.domain_id, query.offset, query.limit)
    if not query.group_id:
        if query.search:
            return _SEARCH.page(tx, Instance, _SELECT, stretch, query.search)
        return whole_page(tx, Instance, _SELECT, "endpoint_instances", stretch, counter=COUNTER)
    ids = "select instance_id as id from endpoint_instance_groups where group_id = :g"
    parameters: dict[str, Value] = {"g": query.group_id}
    if query.search:
        found, match = _SEARCH.find(tx, query.domain_id, query.search)
        ids, parameters = f"{ids} and +instance_id in ({found})", parameters | match
    searched = bool(query.search)
    return page_of(tx, Instance, _SELECT, ids, stretch, counter=None, searched=searched, **parameters)


def get(tx: Tx, domain_id: int, instance_id: int) -> Instance | None:
    """Return an instance of the domain, or None if the domain has no instance with this id."""
    return tx.one(Instance, f"{_SELECT} where id = :id and domain_id = :d", id=instance_id, d=domain_id)


def of_domain(tx: Tx, domain_id: int) -> list[Instance]:
    """Return all instances of a domain, ordered by id."""
    return tx.all(Instance, f"{_SELECT} where domain_id = :d order by id", d=domain_id)


def ids_named(tx: Tx, domain_id: int, names: Collection[str]) -> list[int]:
    """Return the ids of a domain's instances with some names (case-insensitive). Raises NotFound."""
    keys = {fold(name): name for name in names}
    sql = f"select name_key, id from endpoint_instances where domain_id = :d and name_key in {LISTED_TEXTS}"
    found = {str(key): int(number or 0) for key, number in tx.rows(sql, d=domain_id, ids=listed([*keys]))}
    if missing := [name for key, name in keys.items() if key not in found]:
        raise NotFound(f"there is no instance {missing[0]}")
    return list(found.values())


def named(tx: Tx, domain_id: int, name: str) -> Instance | None:
    """Return the domain's instance with this name (case-insensitive), or None."""
    return tx.one(Instance, f"{_SELECT} where domain_id = :d and name_key = :key", d=domain_id, key=fold(name))


def of_group(tx: Tx, group_id: int, limit: int) -> list[Instance]:
    """Return at most `limit` instances of a group, ordered by id."""
    ids = "select instance_id from endpoint_instance_groups where group_id = :g order by instance_id limit :limit"
    return tx.all(Instance, f"{_SELECT} where id in ({ids}) order by id", g=group_id, limit=limit)


def add(tx: Tx, domain_id: int, new: Instance, at: int) -> int:
    """Add an instance, and return its id. Raises Conflict if the domain has an instance with this name."""
    instance_id = tx.value(
        int,
        "insert into endpoint_instances (domain_id, name, name_key, os_id, public_ip, private_ip, host_name, status, "
        "auth_type, created_at, updated_at) values (:d, :name, :key, :os_id, :public_ip, :private_ip, :host_name, "
        ":status, :auth_type, :at, :at) on conflict (domain_id, name_key) do nothing returning id",
        d=domain_id,
        key=fold(new.name),
        status=new.status,
        at=at,
        **new.settings,
    )
    if instance_id is None:
        raise Conflict("the domain already has an instance with this name: choose another name")
    _SEARCH.add(tx, domain_id, instance_id, _texts(new))
    counters.add_row(tx, domain_id, COUNTER, instance_id, 1)
    return instance_id


def update(tx: Tx, old: Instance, new: Instance, at: int) -> None:
    """Store the new values of an instance. The new name must be the old name, except for upper and lower case."""
    tx.execute(
        "update endpoint_instances set name = :name, os_id = :os_id, public_ip = :public_ip, "
        "private_ip = :private_ip, host_name = :host_name, auth_type = :auth_type, updated_at = :at where id = :id",
        id=old.id,
        at=at,
        **new.settings,
    )
    if _texts(new) != _texts(old):
        _SEARCH.remove(tx, old.domain_id, [old.id])
        _SEARCH.add(tx, old.domain_id, old.id, _texts(new))


def delete(tx: Tx, old: Instance) -> None:
    """Delete an instance. Its assignments must be deleted already."""
    _SEARCH.remove(tx, old.domain_id, [old.id])
    tx.execute("delete from endpoint_instances where id = :id", id=old.id)
    counters.add_row(tx, old.domain_id, COUNTER, old.id, -1)


def _texts(instance: Instance) -> tuple[str, ...]:
    """Return those texts of an instance that a search compares with the searched text."""
    return tuple(map(fold, (instance.name, instance.public_ip, instance.private_ip, instance.host_name)))


def exists(tx: Tx, tenant_id: int, instance_id: int) -> bool:
    """Return whether a tenant has this instance."""
    sql = (
        "select 1 from endpoint_instances i join domains d on d.id = i.domain_id "
        "where i.id = :id and d.tenant_id = :tenant and d.removed_at is null"
    )
    return tx.value(int, sql, id=instance_id, tenant=tenant_id) is not None
