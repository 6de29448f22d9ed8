"""Dynamic authorization: where a RADIUS client takes it, which domains disconnect whoever loses their access, and who
is still to be disconnected."""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

SCHEMA = """
alter table radius_clients add column coa_port integer not null default 3799;
alter table domains add column disconnect_on_revoke integer not null default 0;
create table revocations (
    id integer primary key autoincrement, domain_id integer not null, user_name text not null, reason text not null,
    at integer not null
);
"""


def apply(db: Database) -> None:
    """Make them."""
    execute_all(db, SCHEMA)
