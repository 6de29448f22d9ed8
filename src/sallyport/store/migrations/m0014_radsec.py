"""By which certificate a RADIUS client is known over TLS."""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

SCHEMA = """
alter table radius_clients add column tls_name text not null default '';
alter table radius_clients add column tls_fingerprint text not null default '';
create unique index radius_clients_tls_name on radius_clients (tls_name) where tls_name <> '';
create unique index radius_clients_tls_fingerprint on radius_clients (tls_fingerprint) where tls_fingerprint <> '';
"""


def apply(db: Database) -> None:
    """Make them."""
    execute_all(db, SCHEMA)
