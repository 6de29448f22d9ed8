"""When directories are read: every so many minutes, or at times of the day (minutes after midnight, in a zone).

`full_every`: each so-many-th reading is of everything, 0 for none but the first; `runs`: readings since. `next_at` is
when the next one is due; two nodes that see it both, one wins.
"""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

SCHEMA = """
create table directory_schedules (
    directory_id integer primary key references directories (id), domain_id integer not null references domains (id),
    every_minutes integer not null, times text not null, zone text not null, full_every integer not null,
    runs integer not null default 0, next_at integer not null, updated_at integer not null
);
create index directory_schedules_due on directory_schedules (next_at);
create index directory_schedules_domain on directory_schedules (domain_id);
"""


def apply(db: Database) -> None:
    """Make it."""
    execute_all(db, SCHEMA)
