"""The SQL of endpoint users for admins. `users.repo` seals and stores their secrets."""

from collections.abc import Sequence
from dataclasses import replace

from sallyport.areas.users import repo as secrets
from sallyport.areas.users.accounts.account import (
    DIRECT,
    DIRECTORY,
    DIRECTORY_USER,
    DISCOVERED,
    FOUND,
    LISTED_LOCAL,
    LOCAL,
    NOT_PRIVILEGED,
    PASSWORD,
    THROUGH_GROUP,
    Account,
    UserChange,
    UserInstance,
    UserQuery,
)
from sallyport.areas.users.user import name_key
from sallyport.base.errors import Conflict, FieldError, Invalid
from sallyport.base.text import fold
from sallyport.store import counters
from sallyport.store.counters import whole_page
from sallyport.store.model import LISTED, LISTED_TEXTS, ListQuery, Tx, Value, columns_of, listed, without_case
from sallyport.store.search import SearchIndex
from sallyport.store.search import page as page_of
from sallyport.store.vault import Vault

COUNTER = "endpoint_users"
# Users with the usual value of a column are counted by a counter. Users with other values are few, and are counted on
# request.
_USUAL = {"user_type": LOCAL, "credential_type": PASSWORD, "source": LOCAL, "assigned": "1"}
TAKEN = "the domain already has a user with this name: choose another name"
NO_STEP = -1
"""The last accepted time step of a seed that an admin has set. The value means that no code of the seed was accepted
yet."""
_SEARCH = SearchIndex("endpoint_users_search")
_ADDED = ("has_password", "has_totp", "instances", "groups", "credential")
_STORED = ", ".join(each for each in columns_of(Account) if each not in _ADDED)
_SELECT = f"select {_STORED}, password is not null as has_password, motp is not null as has_totp from endpoint_users"
_EVERY = "select id from endpoint_users where domain_id = :d"
_INSTANCES = "select id from endpoint_instances where domain_id = :d"
_GRANTING = (
    "select g.id from endpoint_groups g where g.domain_id = :d and g.active = 1 and exists "
    "(select 1 from endpoint_instance_groups i where i.group_id = g.id)"
)
"""SQL that selects the active groups of a domain that are assigned to at least one instance."""
_GRANTED = f"select user_id as id from endpoint_group_users where group_id in ({_GRANTING})"
_OF_GROUP = (
    "select user_id as id from endpoint_group_users where group_id in "
    "(select id from endpoint_groups where domain_id = :d and id = :value)"
)
_SOURCES = f"""
select user_id, instance_id, {DIRECT} as source from endpoint_instance_users where user_id in ({{ids}})
union all
select u.user_id, i.instance_id, {THROUGH_GROUP} from endpoint_group_users u join endpoint_groups g on g.id = u.group_id
join endpoint_instance_groups i on i.group_id = g.id where g.active = 1 and u.user_id in ({{ids}})
union all
select d.user_id, d.instance_id, {FOUND} from agent_discovered d join endpoint_users u on u.id = d.user_id
where u.source = '{DISCOVERED}' and d.user_id in ({{ids}})
"""
"""SQL that selects the instances of users. An instance has one row for each source (DIRECT, THROUGH_GROUP, FOUND)."""
MAX_LISTED = 200_000
"""Maximum number of instances that the users on one page have in total. The same limit applies to their groups."""


def page(tx: Tx, query: UserQuery) -> tuple[list[Account], int]:
    """Return one page of a domain's users, ordered by id, and the number of matching users."""
    stretch = ListQuery(query.domain_id, query.offset, query.limit)
    if query.column == "name" and query.instance_ids is None:
        return _SEARCH.page(tx, Account, _SELECT, stretch, query.value)
    parts, parameters = _filter(tx, query)
    if query.instance_ids is not None:
        marks, of_instances = _marks(query.instance_ids)
        parts.append(_users_where(f"instance_id in ({marks})"))
        parameters |= of_instances
    if not parts:
        return whole_page(tx, Account, _SELECT, "endpoint_users", stretch, counter=COUNTER)
    # A single part is not nested in another query, so that the branches of its union are merged in order, row by row.
    ids = parts[0] if len(parts) == 1 else " intersect ".join(f"select id from ({part}) as part" for part in parts)
    if ":d" in ids:
        parameters["d"] = query.domain_id
    counter, searched = _counter(tx, query), query.column == "name"
    return page_of(tx, Account, _SELECT, ids, stretch, counter=counter, searched=searched, **parameters)


def _marks(ids: Sequence[int]) -> tuple[str, dict[str, Value]]:
    """Return SQL placeholders for ids, and their parameters."""
    parameters: dict[str, Value] = {f"i{number}": each for number, each in enumerate(ids)}
    return ", ".join(f":{name}" for name in parameters), parameters


def _users_where(condition: str) -> str:
    """Return SQL that selects the ids of the users that are assigned to instances, directly or through an active group.
    The SQL also selects the discovered users whose accounts were found on the instances. condition: an SQL condition on
    instance_id, which selects the instances."""
    return (
        f"select user_id as id from endpoint_instance_users where {condition} union "
        "select user_id as id from endpoint_group_users where group_id in (select i.group_id from "
        f"endpoint_instance_groups i join endpoint_groups g on g.id = i.group_id where g.active = 1 and {condition}) "
        "union select d.user_id as id from agent_discovered d join endpoint_users u on u.id = d.user_id "
        f"where u.source = '{DISCOVERED}' and {condition}"
    )


def _counter(tx: Tx, query: UserQuery) -> str | None:
    """Return the name of the stored counter that contains the number of users that match a query. Return None if there
    is no such counter."""
    if query.instance_ids is not None or (query.column == "assigned" and _has_granting_groups(tx, query.domain_id)):
        return None
    usual = _USUAL.get(query.column)
    listed = query.column == "user_type" and query.value.lower() == LISTED_LOCAL.lower()
    value = LOCAL if listed else query.value
    return None if usual is None or value.lower() != usual.lower() else f"{COUNTER}/{query.column}"


def _filter(tx: Tx, query: UserQuery) -> tuple[list[str], dict[str, Value]]:
    """Return (SQL texts, parameters) for the filter of a query. Each SQL text selects ids of users, and a user must be
    selected by all of them. If the query has no filter, there are no SQL texts."""
    column, value = query.column, query.value
    if not column:
        return [], {}
    if column == "name":
        ids, parameters = _SEARCH.find(tx, query.domain_id, value)
        return [ids], parameters
    if column in {"instance", "group"}:
        of_instance = _users_where(f"instance_id in ({_INSTANCES} and id = :value)")
        return [of_instance if column == "instance" else _OF_GROUP], {"value": int(value)}
    if column == "host":
        host, text = without_case("host_name", value)
        named = f"({host} = :host or (host_name = '' and name_key = :key))"
        return [_users_where(f"instance_id in ({_INSTANCES} and {named})")], {"host": text, "key": fold(value)}
    if column in {"id", "assigned"}:
        ids = f"{_EVERY} and {column} = :value"
        if column == "assigned" and _has_granting_groups(tx, query.domain_id):
            ids += f" {'union' if int(value) else 'except'} {_GRANTED}"
        return [ids], {"value": int(value)}
    if column == "user_type" and value.lower() == LISTED_LOCAL.lower():
        value = LOCAL
    compared, text = without_case(column, value)
    return [f"{_EVERY} and {compared} = :value"], {"value": text}


def _has_granting_groups(tx: Tx, domain_id: int) -> bool:
    """Return whether the domain has an active group that is assigned to an instance."""
    return tx.value(int, f"{_GRANTING} limit 1", d=domain_id) is not None


def instances(tx: Tx, user_ids: Sequence[int]) -> dict[int, list[UserInstance]]:
    """Return the instances of each user, ordered by instance id. The keys are user ids.

    The result contains the instances to which the user is assigned, directly or through an active group. For a user
    with the source `discovered`, the result also contains the instances on which an agent has found the user's account.
    Raises Invalid if there are more than MAX_LISTED instances.
    """
    if not user_ids:
        return {}
    marks, parameters = _marks(user_ids)
    sql = (
        "select w.user_id, i.id, i.name, i.host_name, min(w.source) as source "
        f"from ({_SOURCES.format(ids=marks)}) as w join endpoint_instances i on i.id = w.instance_id "
        "group by w.user_id, i.id, i.name, i.host_name order by w.user_id, i.id limit :most"
    )
    found = tx.all(UserInstance, sql, most=MAX_LISTED + 1, **parameters)
    _check_listed(len(found), "instances")
    by_user = dict[int, list[UserInstance]]()
    for instance in found:
        by_user.setdefault(instance.user_id, []).append(instance)
    return by_user


def groups(tx: Tx, user_ids: Sequence[int]) -> dict[int, list[str]]:
    """Return the names of all groups of each user, ordered by group id. The keys are user ids. Raises Invalid if there
    are more than MAX_LISTED names."""
    if not user_ids:
        return {}
    marks, parameters = _marks(user_ids)
    sql = (
        "select l.user_id, g.name from endpoint_group_users l join endpoint_groups g on g.id = l.group_id "
        f"where l.user_id in ({marks}) order by l.user_id, g.id limit :most"
    )
    found, by_user = tx.rows(sql, most=MAX_LISTED + 1, **parameters), dict[int, list[str]]()
    _check_listed(len(found), "groups")
    for user_id, name in found:
        by_user.setdefault(int(user_id or 0), []).append(str(name))
    return by_user


def _check_listed(count: int, kind: str) -> None:
    if count > MAX_LISTED:
        reason = f"the users of this page have more than {MAX_LISTED} {kind}: ask for a smaller page"
        raise Invalid("invalid pageSize", (FieldError("pageSize", reason),))


def get(tx: Tx, domain_id: int, user_id: int) -> Account | None:
    """Return a user of the domain, or None if the domain has no user with this id."""
    return tx.one(Account, f"{_SELECT} where id = :id and domain_id = :d", id=user_id, d=domain_id)


def of_domain(tx: Tx, domain_id: int, source: str) -> list[Account]:
    """Return the users of a domain that have this source, ordered by id."""
    return tx.all(
        Account, f"{_SELECT} where domain_id = :d and source = :source order by id", d=domain_id, source=source
    )


def several(tx: Tx, domain_id: int, user_ids: Sequence[int]) -> list[Account]:
    """Return the users of the domain that have these ids, ordered by id."""
    sql = f"{_SELECT} where domain_id = :d and id in {LISTED} order by id"
    return tx.all(Account, sql, d=domain_id, ids=listed(user_ids))


def ids_named(tx: Tx, domain_id: int, keys: Sequence[str]) -> dict[str, int]:
    """Return the ids of a domain's users by name. keys: the names as `name_key` returns them. Names that no user has
    are left out."""
    sql = f"select name_key, id from endpoint_users where domain_id = :d and name_key in {LISTED_TEXTS}"
    return {str(key): int(user_id or 0) for key, user_id in tx.rows(sql, d=domain_id, ids=listed(keys))}


def named(tx: Tx, domain_id: int, name: str) -> Account | None:
    """Return the domain's user with this name (case-insensitive), or None."""
    return tx.one(Account, f"{_SELECT} where domain_id = :d and name_key = :key", d=domain_id, key=name_key(name))


def add(tx: Tx, vault: Vault, domain_id: int, new: UserChange, at: int, source: str = LOCAL) -> int:
    """Add a user, and return the user's id. `new` must have a name.

    If the domain has a discovered user with this name, or a user of a directory, no second user is added, but this user
    gets the values in `new`. Raises Conflict if the user with this name is neither.
    """
    name = new.name or ""
    user_id = tx.value(
        int,
        "insert into endpoint_users (domain_id, name, name_key, user_type, credential_type, privileged_user, source, "
        "created_at, updated_at) values (:d, :name, :key, :type, :credential, :privileged, :source, :at, :at) "
        "on conflict (domain_id, name_key) do nothing returning id",
        d=domain_id,
        name=name,
        key=name_key(name),
        type=LOCAL,
        credential=PASSWORD,
        privileged=NOT_PRIVILEGED,
        source=source,
        at=at,
    )
    if user_id is None:
        return _adopt(tx, vault, domain_id, new, at)
    _SEARCH.add(tx, domain_id, user_id, (fold(name),))
    counters.add_row(tx, domain_id, COUNTER, user_id, 1)
    _store(tx, vault, user_id, new, at)
    _count(tx, domain_id, several(tx, domain_id, [user_id]), 1)
    return user_id


def _adopt(tx: Tx, vault: Vault, domain_id: int, new: UserChange, at: int) -> int:
    """Turn a discovered user, or a user of a directory, into a user that an admin has added. Return the user's id.
    Raises Conflict if the user with this name is neither."""
    old = named(tx, domain_id, new.name or "")
    if old is None or old.source not in (DISCOVERED, DIRECTORY):
        raise Conflict(TAKEN)
    if new.user_type is None and old.user_type == DIRECTORY_USER:
        new = replace(new, user_type=LOCAL)
    update(tx, vault, old, new, at)
    set_source(tx, old, LOCAL)
    return old.id


def set_source(tx: Tx, old: Account, source: str) -> None:
    """Change the source of a user."""
    _count(tx, old.domain_id, several(tx, old.domain_id, [old.id]), -1)
    tx.execute("update endpoint_users set source = :source where id = :id", source=source, id=old.id)
    _count(tx, old.domain_id, several(tx, old.domain_id, [old.id]), 1)


def _count(tx: Tx, domain_id: int, accounts: Sequence[Account], change: int) -> None:
    """Add accounts to the stored counters of frequent values in columns, or subtract the accounts. `membership` updates
    the counter of assigned users. change: 1 to add the accounts, -1 to subtract them."""
    for column, usual in _USUAL.items():
        own = sum(getattr(each, column).lower() == usual.lower() for each in accounts if column != "assigned")
        if own:
            counters.add(tx, domain_id, f"{COUNTER}/{column}", change * own)


def check_free(tx: Tx, old: Account, new: UserChange) -> None:
    """Raise Conflict if another user of the domain has the new name. old: the user to rename."""
    other = None if new.name in {None, old.name} else named(tx, old.domain_id, new.name or "")
    if other is not None and other.id != old.id:
        raise Conflict(TAKEN)


def update(tx: Tx, vault: Vault, old: Account, new: UserChange, at: int) -> None:
    """Store changes of a user. The caller must have checked with `check_free` that the new name is not taken."""
    if new.name is not None and new.name != old.name:
        tx.execute("update endpoint_users set name_key = :key where id = :id", key=name_key(new.name), id=old.id)
        _SEARCH.remove(tx, old.domain_id, [old.id])
        _SEARCH.add(tx, old.domain_id, old.id, (fold(new.name),))
    _count(tx, old.domain_id, several(tx, old.domain_id, [old.id]), -1)
    _store(tx, vault, old.id, new, at)
    _count(tx, old.domain_id, several(tx, old.domain_id, [old.id]), 1)


def _store(tx: Tx, vault: Vault, user_id: int, new: UserChange, at: int) -> None:
    columns = new.columns()
    marks = "".join(f"{column} = :{column}, " for column in columns)
    tx.execute(f"update endpoint_users set {marks}updated_at = :at where id = :id", id=user_id, at=at, **columns)
    if new.password is not None:
        secrets.set_password(tx, vault, user_id, new.password, at)
    if new.motp:
        secrets.set_seed(tx, vault, user_id, new.motp, NO_STEP, at)
        secrets.end_enrolment(tx, user_id)
    elif new.motp is not None:
        secrets.clear_seed(tx, user_id, at)


def delete(tx: Tx, domain_id: int, old: Sequence[Account]) -> None:
    """Delete users of a domain. Their assignments and pending enrolments must be deleted already."""
    ids = [account.id for account in old]
    _count(tx, domain_id, old, -1)
    _SEARCH.remove(tx, domain_id, ids)
    tx.execute(f"delete from endpoint_users where id in {LISTED}", ids=listed(ids))
    counters.add_rows(tx, domain_id, COUNTER, ids, -1)
