"""What the schema's step for endpoints makes of the users that are there."""

import sqlite3
from contextlib import closing
from pathlib import Path

from sqlite_utils import Database

from sallyport.endpoints.users import repo
from sallyport.endpoints.users.model import UserQuery
from sallyport.store.connections import SqliteTx
from sallyport.store.migrate import migrate
from sallyport.store.migrations import ALL

BEFORE = """
insert into organizations (id, name, created_at) values (1, '', 0);
insert into tenants (id, organization_id, number, name, created_at) values (1, 1, 1, '', 0);
insert into domains (id, tenant_id, name, directory_name, enforcement_mode, fallback_action, first_factor, status,
    realms, created_at, name_key) values (3, 1, 'corp', '', 'monitor', 'deny', 'local', 'active', '', 0, 'corp');
insert into endpoint_users (domain_id, name, name_key, user_type, credential_type, created_at, updated_at)
    values (3, 'Ann-Marie', 'ann-marie', 'Local', 'Password', 1, 1), (3, 'bob', 'bob', 'Local', 'Password', 2, 2);
"""


def test_users_of_before_are_found_and_counted() -> None:
    """By parts of their names and by their columns, with the total of all."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        ALL.apply(Database(connection, execute_plugins=False), stop_before="m0011_endpoints")
        connection.executescript(BEFORE)
        migrate(connection, Path("memory"))
        tx = SqliteTx(connection)
        for query, names in (
            (UserQuery(3), ["Ann-Marie", "bob"]),
            (UserQuery(3, "name", "N-MAR"), ["Ann-Marie"]),
            (UserQuery(3, "source", "local"), ["Ann-Marie", "bob"]),
            (UserQuery(3, "assigned", "0"), ["Ann-Marie", "bob"]),
        ):
            rows, total = repo.page(tx, query)
            assert ([row.name for row in rows], total) == (names, len(names))
        assert tx.rows("select name, value from counters where name like 'endpoint_users#%'") == [
            ("endpoint_users#0000000000000", 2)
        ]
        connection.execute("insert into endpoint_users_search (endpoint_users_search) values ('integrity-check')")
