"""SQL for roles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sallyport.areas.policy.roles.role import MAX_CHARACTERS, MAX_ROLES, Role, read, written
from sallyport.base.errors import Conflict
from sallyport.base.text import fold
from sallyport.store.model import LISTED, Tx, columns_of, listed


@dataclass(frozen=True, slots=True)
class _Row:
    """A role without its sets. updated_at: each change of the sets increases it."""

    id: int
    domain_id: int
    name: str
    name_key: str
    updated_at: int


@dataclass(frozen=True, slots=True)
class _Sets:
    id: int
    sets: str


_COLUMNS = ", ".join(columns_of(_Row))


@dataclass(frozen=True, slots=True)
class RoleTable:
    """The roles of all domains. domains: by domain id and case-folded name, in the order of the names; domains without
    roles are absent. read: by id, each row with its role, so that a reload reads only the sets that have changed."""

    domains: Mapping[int, Mapping[str, Role]] = field(default_factory=dict)
    read: Mapping[int, tuple[_Row, Role]] = field(default_factory=dict)


def load(tx: Tx, before: RoleTable) -> RoleTable:
    """Return the roles of all domains. before: an earlier result, which is not changed."""
    rows = tx.all(_Row, f"select {_COLUMNS} from login_roles order by domain_id, name_key")
    known = {row.id: before.read[row.id][1] for row in rows if row.id in before.read and before.read[row.id][0] == row}
    sets = _sets(tx, [row.id for row in rows if row.id not in known])
    found: dict[int, tuple[_Row, Role]] = {}
    domains: dict[int, dict[str, Role]] = {}
    for row in rows:
        role = known.get(row.id) or Role(row.domain_id, row.name, read(sets[row.id]))
        found[row.id] = (row, role)
        domains.setdefault(row.domain_id, {})[row.name_key] = role
    return RoleTable(domains, found)


def _sets(tx: Tx, ids: Sequence[int]) -> dict[int, str]:
    """Return the sets of roles as text, by the id of the role."""
    sql = f"select id, sets from login_roles where id in {LISTED}"
    return {each.id: each.sets for each in tx.all(_Sets, sql, ids=listed(ids))} if ids else {}


def get(tx: Tx, domain_id: int, name: str) -> Role | None:
    """Return a domain's role, or None if the domain has no role of this name. Case is ignored."""
    sql = f"select {_COLUMNS} from login_roles where domain_id = :domain and name_key = :key"
    row = tx.one(_Row, sql, domain=domain_id, key=fold(name))
    return None if row is None else Role(row.domain_id, row.name, read(_sets(tx, [row.id])[row.id]))


def names(tx: Tx, domain_id: int) -> list[str]:
    """Return the names of a domain's roles."""
    sql = "select name from login_roles where domain_id = :domain order by name_key"
    return [str(name) for (name,) in tx.rows(sql, domain=domain_id)]


def put(tx: Tx, role: Role, at: int) -> None:
    """Insert a role, or replace the sets of the role with the same name. Raises Conflict if the domain would have too
    many roles, or too many characters in all its roles. at: the time in microseconds."""
    tx.execute(
        "insert into login_roles (domain_id, name, name_key, sets, updated_at) "
        "values (:domain, :name, :key, :sets, :at) on conflict (domain_id, name_key) "
        "do update set sets = excluded.sets, updated_at = case when excluded.updated_at > login_roles.updated_at "
        "then excluded.updated_at else login_roles.updated_at + 1 end",
        domain=role.domain_id,
        name=role.name,
        key=fold(role.name),
        sets=written(role.sets),
        at=at,
    )
    if (tx.value(int, "select count(*) from login_roles where domain_id = :d", d=role.domain_id) or 0) > MAX_ROLES:
        raise Conflict(f"a domain has at most {MAX_ROLES} roles: remove some first")
    length = tx.value(int, "select sum(length(sets)) from login_roles where domain_id = :d", d=role.domain_id) or 0
    if length > MAX_CHARACTERS:
        raise Conflict(f"the roles of a domain have at most {MAX_CHARACTERS} characters in all: remove some first")


def delete(tx: Tx, role: Role) -> None:
    """Delete a role."""
    sql = "delete from login_roles where domain_id = :domain and name_key = :key"
    tx.execute(sql, domain=role.domain_id, key=fold(role.name))
