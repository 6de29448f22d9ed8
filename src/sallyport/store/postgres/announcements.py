"""Announcements between nodes. A transaction that changes rows notifies all nodes that keep such rows in memory.

A trigger sends `KIND DOMAIN` on the channel CHANNEL, or `KIND 0 ID` for a prompt. Domain 0 stands for all domains.
PostgreSQL delivers the announcement at the commit; equal announcements of a transaction are delivered once. A commit
with an announcement takes a lock of the whole database server. Therefore the rows that a login writes are not
announced, with one exception. A prompt is announced if the login's request waits at a node that does not own the
prompt.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sallyport.store.foreign import CERTIFICATES, CONFIGURATION, KEYS, PRINCIPALS, PROMPTS, REPLACED, TOKENS, USERS

CHANNEL: Final = "sallyport"
_OWN: Final = "{row}.domain_id"


@dataclass(frozen=True, slots=True)
class _Announced:
    """A table whose changes are announced.

    events: the events of the trigger, as SQL after the word `after`. domain: SQL for the domain of a row, and for the
    text that follows the domain in the announcement. when: SQL condition for the rows that are announced.
    """

    kind: str
    table: str
    events: str
    domain: str = "0"
    when: str = "true"


def _through(table: str, column: str) -> str:
    return f"coalesce((select domain_id from {table} where id = {{row}}.{column}), 0)"


_ANY: Final = "insert or update or delete"
_OF_PEOPLE: Final = "domain_id, directory_id, dn, dn_key, uid_key, login, name, email, upn, status, cloud, updated_at"
_OF_GROUPS: Final = "domain_id, directory_id, dn, dn_key, name, updated_at"
_ANNOUNCED: Final = (
    _Announced(CONFIGURATION, "config_version", "update"),
    _Announced(REPLACED, "restores", "update"),
    _Announced(CERTIFICATES, "certificate_files", "insert or update of version or delete"),
    _Announced(USERS, "endpoint_users", "insert or delete or update of name, name_key, password, motp", _OWN),
    _Announced(USERS, "endpoint_groups", "delete or update of name, active", _OWN),
    _Announced(USERS, "endpoint_group_users", _ANY, _through("endpoint_groups", "group_id")),
    _Announced(USERS, "endpoint_credential_policies", _ANY, _through("endpoint_groups", "group_id")),
    _Announced(TOKENS, "access_tokens", "update or delete"),
    _Announced(KEYS, "api_keys", "delete or update of revoked_at, expires_at, successor_of, instance_id"),
    # an import marks each unchanged row (`seen`), and counts the members of groups: no login depends on these
    _Announced(PRINCIPALS, "directory_users", f"insert or delete or update of {_OF_PEOPLE}", _OWN),
    _Announced(PRINCIPALS, "directory_names", _ANY, _through("directory_users", "user_id")),
    _Announced(PRINCIPALS, "directory_groups", f"insert or delete or update of {_OF_GROUPS}", _OWN),
    _Announced(PRINCIPALS, "directory_members", _ANY, _through("directories", "directory_id")),
    _Announced(
        PROMPTS,
        "prompts",
        "update of waiter, outcome",
        "'0 ' || {row}.id",
        "new.waiter <> new.owner or new.waiter <> old.waiter",
    ),
)


def triggers() -> Iterator[str]:
    """Yield the SQL that creates the functions and triggers of all announcements."""
    for each in _ANNOUNCED:
        yield from _created(each)


def replaced(kind: str) -> Iterator[str]:
    """Yield the SQL that creates the functions and triggers of a kind again, because their events have changed."""
    for each in _ANNOUNCED:
        if each.kind == kind:
            yield f"drop trigger if exists {_name(each)} on {each.table}"
            yield f"drop function if exists {_name(each)}()"
            yield from _created(each)


def _name(announced: _Announced) -> str:
    return f"{announced.table}_announced_{announced.kind}"


def _created(each: _Announced) -> Iterator[str]:
    name = _name(each)
    new, old = (each.domain.format(row=row) for row in ("new", "old"))
    domain = new if new == old else f"case when tg_op = 'DELETE' then {old} else {new} end"
    body = f"begin perform pg_notify('{CHANNEL}', '{each.kind} ' || {domain}); return null; end"
    yield f"create function {name}() returns trigger language plpgsql as $$ {body} $$"
    rows = f"for each row when ({each.when})"
    yield f"create trigger {name} after {each.events} on {each.table} {rows} execute function {name}()"
