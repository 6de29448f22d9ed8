"""Login rules of domains."""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

SCHEMA = """
create table login_rules (
    id integer primary key autoincrement, domain_id integer not null references domains (id), name text not null,
    priority integer not null, enabled integer not null, action text not null, definition text not null,
    attributes blob not null, created_at integer not null, updated_at integer not null
);
create index login_rules_order on login_rules (domain_id, id);
"""


def apply(db: Database) -> None:
    """Make them."""
    execute_all(db, SCHEMA)
