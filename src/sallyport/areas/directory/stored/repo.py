"""The SQL of lists of people and groups, of nested members, and of principals at login."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sallyport.areas.directory.directory import CLOUD_USER_COUNT, GROUP_COUNT, USER_COUNT, Group, User
from sallyport.areas.directory.imports.job import ImportRun
from sallyport.areas.directory.mappings.mapping import MAX_MAPPED, attributes_in
from sallyport.areas.directory.stored.people import IDENTIFIER
from sallyport.base.errors import Conflict
from sallyport.base.text import fold
from sallyport.store.counters import whole_page
from sallyport.store.model import LISTED_TEXTS, ListQuery, Tx, Value, listed, without_case
from sallyport.store.search import SearchIndex
from sallyport.store.search import page as page_of

_USERS_SEARCH: Final = SearchIndex("directory_users_search")
_GROUPS_SEARCH: Final = SearchIndex("directory_groups_search")
_USER_SELECT: Final = (
    "select id, domain_id, directory_id, dn, login, name, display_name, email, upn, status, fields, source, "
    "directory_name from (select u.id, u.domain_id, u.directory_id, u.dn, u.login, u.name, u.display_name, u.email, "
    "u.upn, u.status, u.fields, d.kind as source, d.name as directory_name from directory_users u "
    "join directories d on d.id = u.directory_id) as found"
)
_GROUP_SELECT: Final = "select id, domain_id, directory_id, dn, name, members, mapping from directory_groups"
MAX_GROUPS: Final = 10_000
"""Maximum number of a person's groups. If a person has more groups, a login treats the groups as unknown."""

# All members of a group and of its nested groups. `union` drops repeated rows, so that cycles of groups end.
INSIDE: Final = (
    "with recursive inside (k) as (select dn_key from directory_groups where id = :g union "
    "select m.member_key from inside join directory_members m on m.directory_id = :dir and m.group_key = inside.k) "
)
_PEOPLE_INSIDE: Final = (
    "select u.id from inside join directory_users u on u.directory_id = :dir and u.dn_key = inside.k union "
    "select u.id from inside join directory_users u on u.directory_id = :dir and u.uid_key = inside.k"
)
# The groups of a person, and all groups that contain them.
_ABOVE: Final = (
    "with recursive above (k) as (select dn_key from directory_users where id = :user union "
    "select uid_key from directory_users where id = :user union "
    "select m.group_key from above join directory_members m on m.directory_id = :dir and m.member_key = above.k) "
)


_PRINCIPALS: Final = (
    "select u.id, u.directory_id, u.dn, u.status, u.name, u.cloud as is_cloud, d.read_at from directory_names n "
    "join directory_users u on u.id = n.user_id join directories d on d.id = u.directory_id "
    "where n.domain_id = :d and n.name_key = :key and n.is_alias = :alias order by u.id"
)


@dataclass(frozen=True, slots=True)
class Principal:
    """A person that a login name or an identifier refers to. is_cloud: 1 if the directory is a cloud directory.
    read_at: the time when the directory was last read, in microseconds."""

    id: int
    directory_id: int
    dn: str
    status: str
    name: str
    is_cloud: int
    read_at: int


def users(tx: Tx, list_query: ListQuery, search: str, *, cloud: bool = False) -> tuple[list[User], int]:
    """Return one page of a domain's people, sorted by id, and the number of matches. cloud: whether to return only
    people of cloud directories."""
    if not cloud:
        if search:
            return _USERS_SEARCH.page(tx, User, _USER_SELECT, list_query, search)
        return whole_page(tx, User, _USER_SELECT, "directory_users", list_query, counter=USER_COUNT)
    ids = "select id from directory_users where domain_id = :d and cloud = 1"
    parameters: dict[str, Value] = {"d": list_query.domain_id}
    if search:
        found, match = _USERS_SEARCH.find(tx, list_query.domain_id, search)
        ids, parameters = f"{ids} and +id in ({found})", parameters | match
    counter = None if search else CLOUD_USER_COUNT
    return page_of(tx, User, _USER_SELECT, ids, list_query, counter=counter, searched=bool(search), **parameters)


def groups(tx: Tx, list_query: ListQuery, search: str, directory_id: int = 0) -> tuple[list[Group], int]:
    """Return one page of a domain's groups, sorted by id, and the number of matches. directory_id: the directory of the
    groups; 0 for all directories of the domain."""
    if directory_id and search:
        only = "exists (select 1 from directory_groups g where g.id = {id} and g.directory_id = :dir)"
        return _GROUPS_SEARCH.page(tx, Group, _GROUP_SELECT, list_query, search, only, dir=directory_id)
    if directory_id:
        own = "select id from directories where id = :dir and domain_id = :d"
        ids = f"select id from directory_groups where directory_id = ({own})"
        given: dict[str, Value] = {"d": list_query.domain_id, "dir": directory_id}
        return page_of(tx, Group, _GROUP_SELECT, ids, list_query, counter=None, searched=True, **given)
    if search:
        return _GROUPS_SEARCH.page(tx, Group, _GROUP_SELECT, list_query, search)
    ids = "select id from directory_groups where domain_id = :d"
    return page_of(tx, Group, _GROUP_SELECT, ids, list_query, counter=GROUP_COUNT, d=list_query.domain_id)


def group(tx: Tx, group_id: int) -> Group | None:
    """Return a group, or None."""
    return tx.one(Group, f"{_GROUP_SELECT} where id = :id", id=group_id)


def groups_named(tx: Tx, directory_id: int, name: str) -> list[Group]:
    """Return the groups of a directory that have this name. The comparison is case-insensitive."""
    column, text = without_case("name", name)
    return tx.all(Group, f"{_GROUP_SELECT} where directory_id = :dir and {column} = :text", dir=directory_id, text=text)


def users_of_group(tx: Tx, of: Group, list_query: ListQuery, search: str) -> tuple[list[User], int]:
    """Return one page of the people in a group and its nested groups, sorted by id, and the number of matches."""
    ids = f"{INSIDE}select id from ({_PEOPLE_INSIDE}) as people"
    parameters: dict[str, Value] = {"g": of.id, "dir": of.directory_id}
    if search:
        found, match = _USERS_SEARCH.find(tx, of.domain_id, search)
        ids, parameters = f"{ids} where id in ({found})", parameters | match
    return page_of(tx, User, _USER_SELECT, ids, list_query, counter=None, searched=bool(search), **parameters)


def users_of_directory(tx: Tx, directory_id: int, limit: int) -> list[User]:
    """Return at most `limit` people of a directory, those with the lowest ids."""
    return tx.all(User, f"{_USER_SELECT} where directory_id = :dir order by id limit :n", dir=directory_id, n=limit)


def has_people(tx: Tx, directory_id: int) -> bool:
    """Return whether a directory has people."""
    return bool(tx.rows("select 1 from directory_users where directory_id = :dir limit 1", dir=directory_id))


def shows_nobody(tx: Tx, run: ImportRun) -> bool:
    """Return whether the import has found none of the people that the store has of the directory. Return False if the
    store has none."""
    seen = "select 1 from directory_users where directory_id = :dir and seen = :job limit 1"
    return has_people(tx, run.directory_id) and not tx.rows(seen, dir=run.directory_id, job=run.job_id)


@dataclass(frozen=True, slots=True)
class MissingEntries:
    """The number of stored entries before an import, and how many of them the import has not found."""

    missing: int
    known: int


_ENTRIES: Final = {
    "users": "directory_users where (cloud = 0 or login not like 'host/%') and",
    "devices": "directory_users where cloud = 1 and login like 'host/%' and",
    "groups": "directory_groups where",
}


def unseen_ids(tx: Tx, run: ImportRun, table: str, after: int) -> list[int]:
    """Return ids of entries of a table that a complete import has not seen, in order. after: only higher ids."""
    sql = f"select id from {table} where directory_id = :dir and id > :after and seen < :job order by id limit 1000"
    return [int(str(row[0])) for row in tx.rows(sql, dir=run.directory_id, after=after, job=run.job_id)]


def unseen_external_id(tx: Tx, run: ImportRun, table: str, row_id: int) -> str | None:
    """Return the external id of an entry if the import has still not seen it, otherwise None."""
    sql = f"select external_id from {table} where id = :id and directory_id = :dir and seen < :job"
    return tx.value(str, sql, id=row_id, dir=run.directory_id, job=run.job_id)


def missing(tx: Tx, run: ImportRun, kind: str) -> MissingEntries:
    """Count the stored entries that an import has not found. kind: users, devices or groups. Devices are those of a
    cloud directory."""
    found = tx.one(
        MissingEntries,
        "select count(case when seen < :job then 1 end) as missing, "
        "count(case when seen < :job or created_at < :started then 1 end) as known "
        f"from {_ENTRIES[kind]} directory_id = :dir",
        job=run.job_id,
        started=run.started_at,
        dir=run.directory_id,
    )
    return found or MissingEntries(0, 0)


def named_people(tx: Tx, group_id: int, directory_id: int) -> dict[int, list[str]]:
    """Return the case-folded names of all people in a group and its nested groups, by person id."""
    sql = (
        f"{INSIDE}select n.user_id, n.name_key from ({_PEOPLE_INSIDE}) as people "
        "join directory_names n on n.user_id = people.id and n.is_alias < 2"
    )
    found: dict[int, list[str]] = {}
    for user_id, name in tx.rows(sql, g=group_id, dir=directory_id):
        found.setdefault(int(str(user_id)), []).append(str(name))
    return found


def status_of(tx: Tx, user_id: int) -> str | None:
    """Return the status of a person, or None if the person does not exist."""
    return tx.value(str, "select status from directory_users where id = :id", id=user_id)


def groups_of_directory(tx: Tx, directory_id: int) -> list[tuple[int, str]]:
    """Return the ids and names of a directory's groups."""
    rows = tx.rows("select id, name from directory_groups where directory_id = :dir order by id", dir=directory_id)
    return [(int(str(group_id)), str(name)) for group_id, name in rows]


def groups_by_sid(tx: Tx, domain_id: int, sids: Sequence[str]) -> dict[str, str]:
    """Return the names of a domain's groups by their security identifiers. A SID without a group is absent. So is a
    group whose name another group of the domain has too, because rules compare names."""
    sql = (
        "select g.sid, g.name from directory_groups g where g.domain_id = :d and g.sid <> '' "
        f"and g.sid in {LISTED_TEXTS} and not exists (select 1 from directory_groups o where o.domain_id = :d "
        "and o.name_key = g.name_key and o.id <> g.id) order by g.id"
    )
    return {str(sid): str(name) for sid, name in tx.rows(sql, d=domain_id, ids=listed(sids))}


def everyone_in(tx: Tx, group_id: int, directory_id: int) -> list[int]:
    """Return the ids of all people in a group and its nested groups."""
    return [int(str(row[0])) for row in tx.rows(INSIDE + _PEOPLE_INSIDE, g=group_id, dir=directory_id)]


def names_of_own_groups(tx: Tx, user: User) -> list[str]:
    """Return the names of the groups that a person is a direct member of."""
    sql = (  # cross joins, because SQLite would read all groups of the directory before the members
        "select distinct g.name from directory_users u cross join directory_members m cross join directory_groups g "
        "where u.id = :user and m.directory_id = u.directory_id and m.member_key in (u.dn_key, u.uid_key) and "
        "g.directory_id = m.directory_id and g.dn_key = m.group_key order by g.name limit :most"
    )
    return [str(row[0]) for row in tx.rows(sql, user=user.id, most=MAX_GROUPS)]


def all_groups(tx: Tx, principal: Principal) -> frozenset[str] | None:
    """Return the case-folded names of a person's groups, and of all groups around these groups. Return None if there
    are more than MAX_GROUPS such groups."""
    sql = (
        f"{_ABOVE}select g.name, g.name_key from (select k from above limit :most) as known "
        "left join directory_groups g on g.directory_id = :dir and g.dn_key = known.k"
    )
    rows = tx.rows(sql, user=principal.id, dir=principal.directory_id, most=MAX_GROUPS)
    if len(rows) >= MAX_GROUPS:
        return None
    return frozenset(fold(str(name)) if key is None else str(key) for name, key in rows if name is not None)


def principals(tx: Tx, domain_id: int, keys: Sequence[str]) -> list[Principal]:
    """Return the people that a login name refers to.

    keys: case-folded forms of the login name. The first key is the name that the user typed. If the first key is the
    login name of any people, return only these people. Otherwise return the people who have one of the keys as login
    name or alias.
    """
    own = tx.all(Principal, _PRINCIPALS, d=domain_id, key=keys[0], alias=0)
    if own:
        return own
    found = {
        each.id: each
        for key in keys
        for alias in (0, 1)
        for each in tx.all(Principal, _PRINCIPALS, d=domain_id, key=key, alias=alias)
    }
    return list(found.values())


def identified(tx: Tx, domain_id: int, identifier: str) -> list[Principal]:
    """Return the people of cloud directories that have an identifier (`imports.lines.identifiers_of`)."""
    found = tx.all(Principal, _PRINCIPALS, d=domain_id, key=identifier, alias=IDENTIFIER)
    return [each for each in found if each.is_cloud]


def sids(tx: Tx, user_id: int) -> tuple[str, ...]:
    """Return the security identifiers of a person of a cloud directory, in upper case."""
    sql = "select name_key from directory_names where user_id = :id and is_alias = :alias and name_key like 'sid:%'"
    return tuple(sorted(str(row[0])[len("sid:") :].upper() for row in tx.rows(sql, id=user_id, alias=IDENTIFIER)))


def inhabited(tx: Tx) -> frozenset[int]:
    """Return the ids of the domains that have people from directories."""
    sql = "select domain_id from counters where name = :name and value > 0"
    return frozenset(int(str(row[0])) for row in tx.rows(sql, name=USER_COUNT))


# --- after an import ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GroupCount:
    """A group with two numbers of members: the stored number, and the current number."""

    id: int
    members: int
    now: int


def counted(tx: Tx, directory_id: int, after: int, limit: int) -> list[GroupCount]:
    """Count the direct members of a directory's groups. Only members that are in the store are counted. after: the last
    group id of the previous page."""
    sql = (
        "select g.id, g.members, (select count(*) from (select u.id, 0 as kind from directory_members m join "
        "directory_users u on u.directory_id = m.directory_id and u.dn_key = m.member_key "
        "where m.directory_id = g.directory_id and m.group_key = g.dn_key union "
        "select u.id, 0 from directory_members m join directory_users u on u.directory_id = m.directory_id and "
        "u.uid_key = m.member_key where m.directory_id = g.directory_id and m.group_key = g.dn_key union "
        "select c.id, 1 from directory_members m join directory_groups c on c.directory_id = m.directory_id and "
        "c.dn_key = m.member_key where m.directory_id = g.directory_id and m.group_key = g.dn_key) as inside) as now "
        "from directory_groups g where g.directory_id = :dir and g.id > :after order by g.id limit :limit"
    )
    return tx.all(GroupCount, sql, dir=directory_id, after=after, limit=limit)


def set_members(tx: Tx, counts: Sequence[GroupCount]) -> None:
    """Store the numbers of members of groups."""
    for each in counts:
        tx.execute("update directory_groups set members = :now where id = :id", now=each.now, id=each.id)


@dataclass(frozen=True, slots=True)
class MappedPerson:
    """A person, and the digest of the mapping that produced the person's fields."""

    id: int
    mapping: bytes


def mapped(tx: Tx, directory_id: int, after: int, limit: int) -> list[MappedPerson]:
    """Return people of a directory, sorted by id. after: the last person id of the previous page."""
    sql = "select id, mapping from directory_users where directory_id = :dir and id > :after order by id limit :limit"
    return tx.all(MappedPerson, sql, dir=directory_id, after=after, limit=limit)


def groups_with_mapping(tx: Tx, directory_id: int) -> list[Group]:
    """Return the groups of a directory that have a mapping, sorted by id."""
    own = "domain_id = (select domain_id from directories where id = :dir) and directory_id = :dir"  # for the index
    sql = f"{_GROUP_SELECT} where {own} and mapping <> '{{}}' order by id"
    return tx.all(Group, sql, dir=directory_id)


def attributes_wanted(tx: Tx, directory_id: int, mapping: str) -> frozenset[str]:
    """Return the attributes that the mappings of a directory and of its groups use. The mapping of the directory is
    given as JSON."""
    mappings = [json.loads(each) for each in (mapping, *(of.mapping for of in groups_with_mapping(tx, directory_id)))]
    mappings += mappings_of_files(tx, directory_id).values()
    return frozenset(name for each in mappings for taken in each.values() for name in attributes_in(taken))


def must_fit(tx: Tx, directory_id: int, fields: Mapping[str, str]) -> None:
    """Check that a directory and its groups use at most MAX_MAPPED attributes if new fields are mapped. Raises
    Conflict if they would use more."""
    mapping = tx.value(str, "select mapping from directories where id = :id", id=directory_id) or "{}"
    wanted = attributes_wanted(tx, directory_id, mapping)
    added = {name for taken in fields.values() for name in attributes_in(taken)} - wanted
    if added and len(wanted) + len(added) > MAX_MAPPED:
        raise Conflict(f"a directory and its groups map at most {MAX_MAPPED} attributes")


def set_group_mapping(tx: Tx, group_id: int, mapping: str) -> None:
    """Set the mapping of a group."""
    tx.execute("update directory_groups set mapping = :mapping where id = :id", mapping=mapping, id=group_id)


# --- mappings of groups by name, for files --------------------------------------------------------------------------


def mappings_of_files(tx: Tx, directory_id: int) -> dict[str, dict[str, str]]:
    """Return the mappings that files have for groups of a directory, by the name of the group. A group may not exist
    yet, or have another mapping meanwhile."""
    text = tx.value(str, "select group_mappings from directories where id = :id", id=directory_id)
    found: dict[str, dict[str, str]] = json.loads(text or "{}")
    return found


def named_mappings(tx: Tx, directory_id: int) -> dict[str, dict[str, str]]:
    """Return the mapping of each group of a directory that has one, by the name of the group; also of groups that do
    not exist yet. Of several groups with one name, the first with a mapping counts."""
    waiting = {fold(name): (name, mapping) for name, mapping in mappings_of_files(tx, directory_id).items()}
    sql = f"select name_key from directory_groups where directory_id = :dir and name_key in {LISTED_TEXTS}"
    present = {str(key) for (key,) in tx.rows(sql, dir=directory_id, ids=listed(waiting))}
    found = {key: own for key, own in waiting.items() if key not in present}
    for each in groups_with_mapping(tx, directory_id):
        found.setdefault(fold(each.name), (each.name, json.loads(each.mapping)))
    return {name: mapping for _, (name, mapping) in sorted(found.items())}


def set_named_mappings(tx: Tx, directory_id: int, mappings: Mapping[str, Mapping[str, str]]) -> None:
    """Set the mapping of each group of a directory by its name. Other groups get none."""
    by_key = {fold(name): json.dumps(mapping) for name, mapping in mappings.items()}
    for each in groups_with_mapping(tx, directory_id):
        if fold(each.name) not in by_key:
            set_group_mapping(tx, each.id, "{}")
    for key, mapping in by_key.items():
        sql = "update directory_groups set mapping = :mapping where directory_id = :dir and name_key = :key"
        tx.execute(sql, mapping=mapping, dir=directory_id, key=key)
    _set_mappings_of_files(tx, directory_id, mappings)


def forget_mapping_of_files(tx: Tx, of: Group) -> None:
    """Forget the mapping that files have for a group, because an admin sets another one."""
    known = mappings_of_files(tx, of.directory_id)
    kept = {name: mapping for name, mapping in known.items() if fold(name) != fold(of.name)}
    if kept != known:
        _set_mappings_of_files(tx, of.directory_id, kept)


def _set_mappings_of_files(tx: Tx, directory_id: int, mappings: Mapping[str, Mapping[str, str]]) -> None:
    sql = "update directories set group_mappings = :mappings where id = :id"
    tx.execute(sql, mappings=json.dumps(mappings), id=directory_id)
