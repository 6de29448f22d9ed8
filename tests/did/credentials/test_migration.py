"""What the schema's step for places makes of the credentials that are there."""

import sqlite3
from contextlib import closing
from pathlib import Path

from sqlite_utils import Database

from sallyport.did.credentials import repo
from sallyport.store.connections import SqliteTx
from sallyport.store.migrate import migrate
from sallyport.store.migrations import ALL
from sallyport.store.search import Stretch
from tests.endpoints.test_migration import BEFORE

DIDS = """
insert into domains (id, tenant_id, name, directory_name, enforcement_mode, fallback_action, first_factor, status,
    realms, created_at, name_key) values (4, 1, 'branch', '', 'monitor', 'deny', 'local', 'active', '', 0, 'branch');
insert into dids (id, tenant_id, domain_id, did, kind, method, name, description, created_at, updated_at)
    values (1, 1, 3, 'did:key:z', 'Issuer', 'key', 'i', '', 0, 0);
insert into credential_schemas (id, tenant_id, domain_id, author_id, uuid, name, content, created_at)
    values (1, 1, 3, 1, 'u', 's', '{}', 0);
insert into status_lists (id, issuer_id, uuid, bits) values (1, 1, 'u', x'00');
"""
CREDENTIAL = """
insert into credentials (id, tenant_id, domain_id, issuer_id, issuer_did, schema_id, uuid, name, status, holder_did,
    epm_username, list_id, list_index, issued_at, updated_at)
    values (:id, 1, :domain, 1, 'did:key:z', 1, :id, 'n', 'ACTIVE', 'did:key:h', '', 1, :id, 0, 0)
"""


def test_credentials_of_before_have_their_places() -> None:
    """In the order of their ids, in each domain from the beginning, and any page has its own; DIDs are counted."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        ALL.apply(Database(connection, execute_plugins=False), stop_before="m0023_credential_places")
        connection.executescript(BEFORE + DIDS)
        for number, domain in ((1, 3), (2, 4), (5, 3), (7, 3), (8, 4)):
            connection.execute(CREDENTIAL, {"id": number, "domain": domain})
        migrate(connection, Path("memory"))
        tx = SqliteTx(connection)
        found = [repo.entries(tx, Stretch(domain, offset, 2))[0] for domain, offset in ((3, 0), (3, 2), (4, 0))]
        assert [[each.id for each in page] for page in found] == [[1, 5], [7], [2, 8]]
        counted = tx.rows("select name, value from counters where name like 'dids%' order by name")
        assert counted == [("dids", 1), ("dids#0000000000000", 1)]
