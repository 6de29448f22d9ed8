"""Events and accounting records are append-only: what was recorded is read, and deleted when its time is over."""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

# A trigger's body stays on one line: statements are told apart by the line's end.
SCHEMA = """
create trigger events_append_only before update on events
    begin select raise(abort, 'events are append-only'); end;
create trigger accounting_records_append_only before update on accounting_records
    begin select raise(abort, 'accounting records are append-only'); end;
"""


def apply(db: Database) -> None:
    """Make them. `transform()` drops triggers: a later step that uses it on these tables makes them anew."""
    execute_all(db, SCHEMA)
