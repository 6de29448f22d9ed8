"""Indexes of references between tables."""

from sqlite_utils import Database

from sallyport.store.schema import REFERENCES, statements_of
from sallyport.store.schema.dialect import SqliteDialect


def apply(db: Database) -> None:
    """Create the indexes."""
    for statement in statements_of(REFERENCES, SqliteDialect()):
        db.execute(statement)
