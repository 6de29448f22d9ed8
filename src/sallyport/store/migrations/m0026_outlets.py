"""How far each outlet of events is: the id of the last event that it delivered, by the outlet's URL."""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

SCHEMA = """
create table event_outlets (name text primary key, event_id integer not null);
"""


def apply(db: Database) -> None:
    """Make it."""
    execute_all(db, SCHEMA)
