"""The table of the rate limits of sign-ins to the console."""

from sqlite_utils import Database

from sallyport.store.schema import SIGN_IN_ATTEMPTS, statements_of
from sallyport.store.schema.dialect import SqliteDialect


def apply(db: Database) -> None:
    """Create the table."""
    for statement in statements_of(SIGN_IN_ATTEMPTS, SqliteDialect()):
        db.execute(statement)
