"""The SQL of endpoint groups and their credential policies."""

from collections.abc import Collection, Sequence

from sallyport.areas.users.groups.group import CredentialPolicy, Group, is_active
from sallyport.base.errors import Conflict, NotFound
from sallyport.base.text import fold
from sallyport.store import counters
from sallyport.store.model import LISTED, LISTED_TEXTS, ListQuery, Tx, Value, columns_of, listed
from sallyport.store.search import SearchIndex
from sallyport.store.search import page as page_of
from sallyport.store.slices import SLICE

COUNTER = "endpoint_groups"
TAKEN = "the domain already has a group with this name: choose another name"
_POLICY = f"select {', '.join(columns_of(CredentialPolicy))}"
_SEARCH = SearchIndex("endpoint_groups_search")
_SELECT = f"select {', '.join(columns_of(Group))} from endpoint_groups"


def page(tx: Tx, stretch: ListQuery, search: str = "", instance_id: int = 0) -> tuple[list[Group], int]:
    """Return one page of a domain's groups, ordered by id, and the number of matching groups. search: a part of the
    name, or empty for all groups. instance_id: the id of an instance, for its groups only; 0 for all groups."""
    if instance_id:
        ids = (
            "select id from endpoint_groups join endpoint_instance_groups on group_id = id "
            "where instance_id = :i and domain_id = :d"
        )
        parameters: dict[str, Value] = {"i": instance_id, "d": stretch.domain_id}
        if search:
            found, match = _SEARCH.find(tx, stretch.domain_id, search)
            ids, parameters = f"{ids} and +id in ({found})", parameters | match
        return page_of(tx, Group, _SELECT, ids, stretch, counter=None, searched=bool(search), **parameters)
    if search:
        return _SEARCH.page(tx, Group, _SELECT, stretch, search)
    ids = "select id from endpoint_groups where domain_id = :d"
    return page_of(tx, Group, _SELECT, ids, stretch, counter=COUNTER, d=stretch.domain_id)


def get(tx: Tx, domain_id: int, group_id: int) -> Group | None:
    """Return a group of the domain, or None if the domain has no group with this id."""
    return tx.one(Group, f"{_SELECT} where id = :id and domain_id = :d", id=group_id, d=domain_id)


def several(tx: Tx, domain_id: int, group_ids: Sequence[int]) -> list[Group]:
    """Return the groups of the domain that have these ids, ordered by id."""
    sql = f"{_SELECT} where domain_id = :d and id in {LISTED} order by id"
    return tx.all(Group, sql, d=domain_id, ids=listed(group_ids))


def of_domain(tx: Tx, domain_id: int) -> list[Group]:
    """Return all groups of a domain, ordered by id."""
    return tx.all(Group, f"{_SELECT} where domain_id = :d order by id", d=domain_id)


def ids_named(tx: Tx, domain_id: int, names: Collection[str]) -> list[int]:
    """Return the ids of a domain's groups with some names (case-insensitive). Raises NotFound."""
    keys = {fold(name): name for name in names}
    sql = f"select name_key, id from endpoint_groups where domain_id = :d and name_key in {LISTED_TEXTS}"
    found = {str(key): int(number or 0) for key, number in tx.rows(sql, d=domain_id, ids=listed([*keys]))}
    if missing := [name for key, name in keys.items() if key not in found]:
        raise NotFound(f"there is no group {missing[0]}")
    return list(found.values())


def named(tx: Tx, domain_id: int, name: str) -> Group | None:
    """Return the domain's group with this name (case-insensitive), or None."""
    return tx.one(Group, f"{_SELECT} where domain_id = :d and name_key = :key", d=domain_id, key=fold(name))


def add(tx: Tx, domain_id: int, new: Group, at: int) -> int:
    """Add a group, and return its id. Raises Conflict if the domain has a group with this name."""
    group_id = tx.value(
        int,
        "insert into endpoint_groups (domain_id, name, name_key, ou, cn, dc, auth_flow, status, active, created_at, "
        "updated_at) values (:d, :name, :key, :ou, :cn, :dc, :auth_flow, :status, :active, :at, :at) "
        "on conflict (domain_id, name_key) do nothing returning id",
        d=domain_id,
        **_columns(new, at),
    )
    if group_id is None:
        raise Conflict(TAKEN)
    _SEARCH.add(tx, domain_id, group_id, (fold(new.name),))
    counters.add(tx, domain_id, COUNTER, 1)
    return group_id


def check_free(tx: Tx, old: Group, name: str) -> None:
    """Raise Conflict if another group of the domain has this name. old: the group that is about to get this name."""
    other = named(tx, old.domain_id, name)
    if other is not None and other.id != old.id:
        raise Conflict(TAKEN)


def update(tx: Tx, old: Group, new: Group, at: int) -> None:
    """Store the new values of a group. The caller must have checked with `check_free` that the new name is not
    taken."""
    tx.execute(
        "update endpoint_groups set name = :name, name_key = :key, ou = :ou, cn = :cn, dc = :dc, "
        "auth_flow = :auth_flow, status = :status, active = :active, updated_at = :at where id = :id",
        id=old.id,
        **_columns(new, at),
    )
    if fold(new.name) != fold(old.name):
        _SEARCH.remove(tx, old.domain_id, [old.id])
        _SEARCH.add(tx, old.domain_id, old.id, (fold(new.name),))


def delete(tx: Tx, domain_id: int, old: Sequence[Group]) -> None:
    """Delete groups of a domain, with their credential policies. The assignments of the groups must be deleted
    already."""
    ids = [group.id for group in old]
    _SEARCH.remove(tx, domain_id, ids)
    tx.execute(f"delete from endpoint_credential_policies where group_id in {LISTED}", ids=listed(ids))
    tx.execute(f"delete from endpoint_groups where id in {LISTED}", ids=listed(ids))
    counters.add(tx, domain_id, COUNTER, -len(ids))


def credential_policy(tx: Tx, group_id: int) -> CredentialPolicy | None:
    """Return the credential policy of a group, or None if the group has none."""
    return tx.one(
        CredentialPolicy, f"{_POLICY} from endpoint_credential_policies where group_id = :group", group=group_id
    )


def credential_policies(tx: Tx, group_ids: Sequence[int]) -> dict[int, CredentialPolicy]:
    """Return the credential policies of groups, by group id. Groups without a policy are left out."""
    sql = f"{_POLICY}, group_id from endpoint_credential_policies where group_id in {LISTED}"
    return dict(tx.all(_with_group, sql, ids=listed(group_ids)))


def _with_group(*, group_id: int, **columns: int) -> tuple[int, CredentialPolicy]:
    return group_id, CredentialPolicy(**columns)  # type: ignore[arg-type]


def set_credential_policy(tx: Tx, group_id: int, policy: CredentialPolicy) -> int:
    """Store the credential policy of a group, and return the id of the policy. If the group has a policy already, the
    new policy replaces the old one and gets the same id."""
    kept = tx.value(
        int,
        "insert into endpoint_credential_policies (group_id, ttl_user, privileged_user, policy_id, home_dir) "
        "values (:group, :ttl, :privileged, :policy, :home) on conflict (group_id) do update set "
        "ttl_user = excluded.ttl_user, privileged_user = excluded.privileged_user, policy_id = excluded.policy_id, "
        "home_dir = excluded.home_dir returning id",
        group=group_id,
        ttl=policy.ttl_user,
        privileged=policy.privileged_user,
        policy=policy.policy_id,
        home=policy.home_dir,
    )
    assert kept is not None  # noqa: S101  an upsert returns its row
    return kept


def delete_credential_policy(tx: Tx, group_id: int) -> None:
    """Delete a group's credential policy."""
    tx.execute("delete from endpoint_credential_policies where group_id = :group", group=group_id)


def forget_policies(tx: Tx, policy_ids: Sequence[int]) -> int:
    """Remove password policies from the credential policies that refer to them, before the password policies are
    deleted.

    One call changes at most SLICE credential policies and returns their number, so call it until it returns 0.
    """
    some = f"select id from endpoint_credential_policies where policy_id in {LISTED} limit {SLICE}"
    sql = f"update endpoint_credential_policies set policy_id = null where id in ({some})"
    return tx.execute(sql, ids=listed(policy_ids))


def _columns(new: Group, at: int) -> dict[str, Value]:
    return {**new.settings, "key": fold(new.name), "active": int(is_active(new.status)), "at": at}
