"""The totals of searches (`store.search`): of one piece by the index itself, of all others by what has changed since
they were counted."""

from sqlite_utils import Database

from sallyport.store.migrations.m0037_short_search import SEARCHED
from sallyport.store.migrations.statements import execute_all

LOG = """
create table search_changes (
    seq integer primary key, mark integer not null default (random()), name text not null, domain_id integer not null,
    letters text not null, change integer not null
);
insert into search_changes (name, domain_id, letters, change) values ('', 0, '', 0);
"""


def apply(db: Database) -> None:
    """Make the log, with a first entry, and the tables that count."""
    execute_all(db, LOG)
    for name in SEARCHED:
        for table in (f"{name}_search", f"{name}_search_short"):
            db.execute(f"create virtual table {table}_terms using fts5vocab ({table}, row)")
