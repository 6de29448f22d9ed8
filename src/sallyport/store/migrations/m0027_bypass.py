"""The stations that MAC authentication bypass lets in."""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

SCHEMA = """
create table bypass_stations (
    id integer primary key autoincrement, domain_id integer not null, station text not null, name text not null,
    added_at integer not null,
    unique (domain_id, station)
);
"""


def apply(db: Database) -> None:
    """Make them."""
    execute_all(db, SCHEMA)
