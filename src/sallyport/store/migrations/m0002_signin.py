"""The tables of the console: local administrators and sessions."""

from sqlite_utils import Database

from sallyport.store.schema import SIGN_IN, statements_of
from sallyport.store.schema.dialect import SqliteDialect


def apply(db: Database) -> None:
    """Create the tables."""
    for statement in statements_of(SIGN_IN, SqliteDialect()):
        db.execute(statement)
