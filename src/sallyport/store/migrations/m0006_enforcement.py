"""Modes that end by themselves, what was before the break-glass, and the Service-Type of logins.

`reverts_at` is set while a mode waits for its confirmation; `revert_mode` and `revert_fallback` are what the domain
goes back to then, `revert_set_at` says since when it waits. `glass_mode` and `glass_fallback` are what a domain was set
to when the break-glass took it; null where it did not, or where an admin has set the mode since. `service_type` is what
login rules and the preview of an enforcement look at; null where it was absent, or not recorded yet.
"""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

SCHEMA = """
alter table domains add column reverts_at integer;
alter table domains add column revert_set_at integer;
alter table domains add column revert_mode text;
alter table domains add column revert_fallback text;
alter table domains add column glass_mode text;
alter table domains add column glass_fallback text;
alter table events add column service_type integer;
"""


def apply(db: Database) -> None:
    """Make them."""
    execute_all(db, SCHEMA)
