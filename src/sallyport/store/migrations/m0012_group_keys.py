"""The names of directory groups in the form for comparison."""

from sqlite_utils import Database

from sallyport.store.schema import GROUP_KEYS, statements_of
from sallyport.store.schema.dialect import SqliteDialect


def apply(db: Database) -> None:
    """Add the column, and fill it."""
    for statement in statements_of(GROUP_KEYS, SqliteDialect()):
        db.execute(statement)
