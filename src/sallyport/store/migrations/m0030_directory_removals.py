"""Imports that would remove most of what a directory has stop before they do (`directory.imports.model.Removals`)."""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

SCHEMA = """
alter table directory_jobs add column removals integer not null default 0;
"""


def apply(db: Database) -> None:
    """Add it."""
    execute_all(db, SCHEMA)
