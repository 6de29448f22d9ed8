"""The indexes for writes of bounded length."""

from sqlite_utils import Database

from sallyport.store.schema import BOUNDED_WRITES, statements_of
from sallyport.store.schema.dialect import SqliteDialect


def apply(db: Database) -> None:
    """Create the indexes."""
    for statement in statements_of(BOUNDED_WRITES, SqliteDialect()):
        db.execute(statement)
