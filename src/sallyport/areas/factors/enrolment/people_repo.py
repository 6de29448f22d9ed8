"""The SQL that finds the people of a domain or of a group that have no factor."""

from dataclasses import dataclass
from typing import Final

from sallyport.areas.directory.entry.status import Status
from sallyport.areas.directory.stored.repo import everyone_in
from sallyport.areas.factors.enrolment.link import NotEnrolled
from sallyport.base.text import fold
from sallyport.store.model import LISTED, Tx, Value, listed

_NO_PASSKEY: Final = (
    "not exists (select 1 from passkeys p where p.domain_id = :d and p.user_key = {key} and p.rp_id = :host)"
)
# The mail address of an endpoint user is that of the person of a directory with the same name, if there is only one.
_EMAIL: Final = (
    "coalesce((select case when min(m.email) = max(m.email) then min(m.email) else '' end from directory_names n "
    "join directory_users m on m.id = n.user_id where n.domain_id = :d and n.name_key = {key} and n.is_alias = 0), '')"
)
_LINK: Final = (
    "coalesce(l.state, '') as link, coalesce(l.problem, '') as problem, l.expires_at from {people} "
    "left join enrolment_links l on l.domain_id = :d and l.user_key = {key}"
)
_LOCAL_KEY, _IMPORTED_KEY = "u.name_key", "n.name_key"
_LOCAL: Final = (
    f"u.name as user_name, {_EMAIL.format(key=_LOCAL_KEY)} as email, "
    f"{_LINK.format(people='endpoint_users u', key=_LOCAL_KEY)} "
    f"where u.domain_id = :d and u.password is not null and u.motp is null and {_NO_PASSKEY.format(key=_LOCAL_KEY)}"
)
_IMPORTED: Final = (
    "u.name as user_name, u.email as email, "
    f"{_LINK.format(people='directory_names n join directory_users u on u.id = n.user_id', key=_IMPORTED_KEY)} "
    f"where n.domain_id = :d and n.is_alias = 0 and u.status = '{Status.ACTIVE}' and u.login not like 'host/%' "
    f"and {_NO_PASSKEY.format(key=_IMPORTED_KEY)} and not exists "
    "(select 1 from endpoint_users e where e.domain_id = :d and e.name_key = n.name_key and e.motp is not null)"
)


@dataclass(frozen=True, slots=True)
class Scope:
    """A selection of people. is_local: whether the domain's people are its endpoint users, and not those of its
    directories. host: the host for which passkeys are made. group: a group's name; empty for all people."""

    domain_id: int
    is_local: bool
    host: str
    group: str = ""


@dataclass(frozen=True, slots=True)
class _Group:
    id: int
    directory_id: int


def groups(tx: Tx, scope: Scope) -> list[_Group]:
    """Return the groups with the name of a scope: endpoint groups, or groups of the domain's directories."""
    key = fold(scope.group)
    if scope.is_local:
        sql = "select id, 0 as directory_id from endpoint_groups where domain_id = :d and name_key = :key"
    else:
        sql = "select id, directory_id from directory_groups where domain_id = :d and name_key = :key order by id"
    return tx.all(_Group, sql, d=scope.domain_id, key=key)


def not_enrolled(tx: Tx, scope: Scope, offset: int, size: int) -> tuple[list[NotEnrolled], int]:
    """Return a page of the people without a factor, ordered by name, and the number of all. If several directories have
    a group with this name, they are the people of all of them."""
    where, parameters = _selected(tx, scope)
    columns, key = (_LOCAL, _LOCAL_KEY) if scope.is_local else (_IMPORTED, _IMPORTED_KEY)
    found = f"select {columns}{where}"
    total = tx.value(int, f"select count(*) from ({found}) as found", **parameters) or 0
    sql = f"{found} order by {key}, u.id limit :size offset :offset"
    return tx.all(NotEnrolled, sql, **parameters, size=size, offset=offset), total


def _selected(tx: Tx, scope: Scope) -> tuple[str, dict[str, Value]]:
    """Return the condition that a person is in the group of a scope, and the parameters."""
    parameters: dict[str, Value] = {"d": scope.domain_id, "host": scope.host}
    if not scope.group:
        return "", parameters
    found = groups(tx, scope)
    if scope.is_local:
        parameters["groups"] = listed(each.id for each in found)
        inside = LISTED.replace(":ids", ":groups")
        where = f" and u.id in (select user_id from endpoint_group_users where group_id in {inside})"
        return where, parameters
    parameters["ids"] = listed({person for each in found for person in everyone_in(tx, each.id, each.directory_id)})
    return f" and u.id in {LISTED}", parameters


def email_of(tx: Tx, domain_id: int, user_key: str) -> str:
    """Return the mail address that the directories of a domain have of a person. Return an empty text if there is none,
    or if several people have the name."""
    return tx.value(str, f"select {_EMAIL.format(key=':key')}", d=domain_id, key=user_key) or ""
