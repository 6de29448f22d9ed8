"""The deletion of factors when the name of an endpoint user, or of a person of a directory, becomes free, so that the
next user of the name does not get them."""

from collections.abc import Sequence
from typing import Final

from sallyport.areas.users.accounts.account import DIRECTORY
from sallyport.areas.users.repo import clear_seed
from sallyport.store import audit
from sallyport.store.model import LISTED, Tx, listed
from sallyport.store.slices import SLICE

TABLES: Final[Sequence[tuple[str, str]]] = (
    ("passkeys", "id"),
    ("passkey_challenges", "binding_hash"),
    ("bypass_codes", "id"),
    ("remembered_stations", "id"),
    ("prompt_pauses", "id"),
    ("enrolment_links", "id"),
    ("people_sessions", "id"),
)
"""The tables with factors, links and sign-ins of people, each with its primary key. Their rows have the columns
domain_id and user_key."""
_OF_USERS: Final = (
    "select {table}.{key} from {table} join endpoint_users u on u.domain_id = {table}.domain_id "  # noqa: S608
    "and u.name_key = {table}.user_key where u.id in " + LISTED + " limit {slice}"
)
_OF_NAME: Final = " where domain_id = :d and user_key = :key"
_SEEDED: Final = f" from endpoint_users where domain_id = :d and name_key = :key and source = '{DIRECTORY}'"
_EACH: Final = [
    *(f"exists (select 1 from {table}{_OF_NAME})" for table, _ in TABLES),  # noqa: S608
    f"exists (select 1{_SEEDED})",
]
_OF_ENDPOINT_USER: Final = (
    "first_factor = 'local' and exists (select 1 from endpoint_users where domain_id = :d and name_key = :key "  # noqa: S608
    f"and source <> '{DIRECTORY}')"
)
_HELD: Final = f"select 1 from domains where id = :d and not ({_OF_ENDPOINT_USER}) and ({' or '.join(_EACH)})"  # noqa: S608


def release_names(tx: Tx, user_ids: Sequence[int]) -> int:
    """Delete up to SLICE rows of each table under the names of endpoint users. Return the number of deleted rows.

    The function is called before users are deleted, and before other users can get their names, until it returns 0. A
    person of a directory with an endpoint user of the same name, such as for one-time codes, also loses the rows.
    """
    deleted = 0
    for table, key in TABLES:
        some = _OF_USERS.format(table=table, key=key, slice=SLICE)
        deleted += tx.execute(f"delete from {table} where {key} in ({some})", ids=listed(user_ids))  # noqa: S608
    return deleted


def release_name(tx: Tx, domain_id: int, name: str, at: int) -> None:
    """Delete the rows of each table under a case-folded name, and the seed of the app. A person of a directory has had
    the name. If the first factor is `local`, an endpoint user of this name keeps the rows."""
    if not tx.rows(_HELD, d=domain_id, key=name):
        return
    for table, _ in TABLES:
        tx.execute(f"delete from {table}{_OF_NAME}", d=domain_id, key=name)  # noqa: S608
    user_id = tx.value(int, f"select id{_SEEDED}", d=domain_id, key=name)
    if user_id is not None:
        clear_seed(tx, user_id, at)
    audit.record_in(tx, "user.factors.release", domain_id, f"user {name}", at=at)
