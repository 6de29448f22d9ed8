"""Who checks the passwords of a domain, where that is somebody else."""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

SCHEMA = """
create table first_factors (
    domain_id integer not null references domains (id) on delete cascade, kind text not null, fields blob not null,
    changed_at integer not null, primary key (domain_id, kind)
) without rowid;
"""


def apply(db: Database) -> None:
    """Make it."""
    execute_all(db, SCHEMA)
