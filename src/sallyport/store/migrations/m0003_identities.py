"""The table of people who sign in to the console through an identity provider."""

from sqlite_utils import Database

from sallyport.store.schema import IDENTITIES, statements_of
from sallyport.store.schema.dialect import SqliteDialect


def apply(db: Database) -> None:
    """Create the table, and add its columns to the sessions."""
    for statement in statements_of(IDENTITIES, SqliteDialect()):
        db.execute(statement)
