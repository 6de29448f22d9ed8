"""How far each outlet is with what it carries: logins, and the audit trail."""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

SCHEMA = """
create table outlet_places (
    name text not null, type text not null, last_id integer not null, primary key (name, type)
);
insert into outlet_places (name, type, last_id) select name, 'login', event_id from event_outlets;
drop table event_outlets;
"""


def apply(db: Database) -> None:
    """Make it of the table of before."""
    execute_all(db, SCHEMA)
