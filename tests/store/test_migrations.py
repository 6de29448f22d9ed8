"""Steps of the schema that change rows."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlite_utils import Database

from sallyport.store.migrations import ALL


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A new database without any table."""
    with closing(sqlite3.connect(tmp_path / "s.db")) as connection:
        yield Database(connection, execute_plugins=False)


def test_tls_names_of_before_get_their_canonical_form(database: Database) -> None:
    """A name with a final dot is known by its form without it; a name whose form another client has stays as it is."""
    ALL.apply(database, stop_before="m0044_issued_certificates")
    database.execute("insert into organizations (id, name, created_at) values (1, 'o', 0)")
    database.execute("insert into tenants (id, organization_id, number, name, created_at) values (1, 1, 1, 't', 0)")
    given = ("a.example", "a.example.", "b.example..", "b.example.", "2001:db8:0::1", "", ".")
    for number, name in enumerate(given, 1):
        database.execute(
            "insert into radius_clients (id, tenant_id, name, name_key, network, secret, all_domains, product, "
            "require_message_authenticator, limit_proxy_state, password_verified, created_at, tls_name) "
            "values (:id, 1, :id, :id, :id, x'', 1, '', 'auto', 'auto', 0, 0, :name)",
            {"id": number, "name": name},
        )
    ALL.apply(database)
    names = [name for (name,) in database.execute("select tls_name from radius_clients order by id")]
    assert names == ["a.example", "a.example.", "b.example", "b.example.", "2001:db8::1", "", "."]
