"""Who is locked out after failures, until when."""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

SCHEMA = """
create table lockouts (
    id integer primary key autoincrement, domain_id integer not null, kind text not null, name_key text not null,
    name text not null, since integer not null, until integer not null, failures integer not null,
    unique (domain_id, kind, name_key)
);
create index lockouts_until on lockouts (until);
"""


def apply(db: Database) -> None:
    """Make them."""
    execute_all(db, SCHEMA)
