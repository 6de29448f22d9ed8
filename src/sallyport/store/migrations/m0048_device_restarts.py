"""Devices that have started anew and of which sessions are still to end."""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

SCHEMA = """
create table device_restarts (
    device_id integer primary key, domain_id integer not null, at integer not null, after integer not null
);
"""


def apply(db: Database) -> None:
    """Make the table."""
    execute_all(db, SCHEMA)
