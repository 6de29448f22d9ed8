"""Kept answers without an index of their times."""

from sqlite_utils import Database

from sallyport.store.schema import ANSWERS_BY_ID, statements_of
from sallyport.store.schema.dialect import SqliteDialect


def apply(db: Database) -> None:
    """Drop the index."""
    for statement in statements_of(ANSWERS_BY_ID, SqliteDialect()):
        db.execute(statement)
