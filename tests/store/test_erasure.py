"""The rows of a removed domain: the list has every table, all of the domain's rows go, and no others."""

import sqlite3

import pytest

from sallyport.store.connections import SqliteTx
from sallyport.store.erasure import KEPT, counts
from sallyport.store.schema import SEARCHED
from sallyport.store.search import SearchIndex
from tests.areas import declared
from tests.store.test_limits import Rows, rows

__all__ = ["rows"]

ROWS, _ = declared()
LISTED = {each.table for each in ROWS} | {part.table for each in ROWS for part in each.parts}
OUTSIDE = {
    *KEPT, "access_tokens", "administrators", "answers", "authorities", "certificate_files", "config_version",
    "configured_items", "configured_slices", "console_sessions", "domains", "identities", "issued_certificates",
    "limits", "organizations", "outlet_places", "password_policies", "radius_client_history", "radius_clients",
    "revocation_entries", "revocation_lists", "revoked_certificates", "settled_time", "sign_in_attempts", "tenant_rows",
    "tenants",
}  # fmt: skip
"""Tables whose rows belong to a tenant or to the installation."""


def tables(connection: sqlite3.Connection) -> set[str]:
    """Return the tables of the schema, without those of the search."""
    named = connection.execute("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'")
    return {name for (name,) in named if "_search" not in name and not name.startswith("_")}


def everything(connection: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    """Return all rows of all tables."""
    found = ((name, connection.execute(f"select * from {name}")) for name in tables(connection))  # noqa: S608
    return {name: sorted(each, key=repr) for name, each in found}


def erased(connection: sqlite3.Connection, domain_id: int) -> int:
    """Delete the rows of a domain; return the number of slices."""
    tx, slices = SqliteTx(connection), 0
    for each in ROWS:
        while each.erase(tx, domain_id):
            slices += 1
    return slices


def test_every_table_with_rows_of_a_domain_is_listed(rows: Rows) -> None:
    """A table of the schema is in the list, is a part of one there, or belongs to a tenant or the installation."""
    assert tables(rows.connection) == LISTED | OUTSIDE
    with_domain = {
        name
        for name in tables(rows.connection)
        if any(column[1] == "domain_id" for column in rows.connection.execute(f"pragma table_info({name})"))
    }
    assert with_domain - set(KEPT) == {each.table for each in ROWS}


def test_the_keys_are_those_of_the_schema(rows: Rows) -> None:
    """A row is found by the primary key of its table."""
    keys = {each.table: each.key for each in ROWS} | {part.table: part.key for each in ROWS for part in each.parts}
    for table, key in keys.items():
        columns = rows.connection.execute(f"pragma table_info({table})").fetchall()
        primary = [column[1] for column in sorted(columns, key=lambda column: column[5]) if column[5]]
        assert primary == key.split(", "), table


def test_what_is_searched_is_removed_from_the_search(rows: Rows) -> None:
    """Each searched table is marked, and the texts of its rows go with them."""
    assert {each.table for each in ROWS if each.searched} == set(SEARCHED)
    user = rows.add("endpoint_users", 1)
    domain = rows.parents["domains", 1]
    tx, index = SqliteTx(rows.connection), SearchIndex("endpoint_users_search")
    index.add(tx, domain, user, ["somebody"])
    index.add(tx, domain + 1, 5, ["somebody"])
    erased(rows.connection, domain)
    assert rows.connection.execute("select count(*) from endpoint_users_search").fetchone() == (1,)


@pytest.mark.parametrize("several", [1, 250], ids=["one row", "several slices"])
def test_nothing_is_left_and_nothing_else_is_taken(rows: Rows, several: int) -> None:
    """Rows of each table are deleted with the domain and its limits' counts; the other tenant's rows stay as they
    are."""
    connection = rows.connection
    connection.execute("update limits set most = 1000000")
    for table in sorted(LISTED):
        rows.add(table, 2)
    before = everything(connection)
    domain = rows.add("domains", 1)
    rows.parents["domains", 1] = domain
    many = {"events", "devices", "endpoint_instance_users"}
    with_domain = {each.table for each in ROWS}
    for table in sorted(LISTED):
        for _ in range(several if table in many else 1):
            own: dict[str, object] = {"domain_id": domain} if table in with_domain else {}
            rows.add(table, 1, **own, **({"id": "one"} if table in {"challenges", "stepups"} else {}))
    assert {name for name, _ in counts(SqliteTx(connection), ROWS, domain)} == {each.name for each in ROWS if each.name}
    domains = [row[0] for row in connection.execute("select id from domains where tenant_id = 1")]
    slices = sum(erased(connection, each) for each in domains)
    assert (slices > len(LISTED)) == (several > 1)
    connection.execute("delete from domains where tenant_id = 1")
    after = everything(connection)
    tenants_own = {"authorities", "radius_clients", "password_policies", "access_tokens", "tenant_rows"}
    assert {name: found for name, found in after.items() if name not in tenants_own} == {
        name: found for name, found in before.items() if name not in tenants_own
    }
    left = dict(connection.execute("select name, value from tenant_rows where tenant_id = 1 and value > 0"))
    assert set(left) <= {"radius_clients", "password_policies", "access_tokens"}


def test_the_tokens_of_wallets_go_with_them(rows: Rows) -> None:
    """A wallet's access token is deleted with the wallet, and no other token is."""
    rows.add("access_tokens", 1)
    rows.add("wallets", 1)
    tokens = rows.ids("access_tokens")
    erased(rows.connection, rows.parents["domains", 1])
    assert rows.ids("access_tokens") == tokens[:1]
