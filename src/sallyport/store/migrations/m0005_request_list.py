"""The index of a domain's presentation requests by their age."""

from sqlite_utils import Database

from sallyport.store.schema import REQUEST_LIST, statements_of
from sallyport.store.schema.dialect import SqliteDialect


def apply(db: Database) -> None:
    """Create the index."""
    for statement in statements_of(REQUEST_LIST, SqliteDialect()):
        db.execute(statement)
