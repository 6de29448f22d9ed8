"""The table of the realms of domains."""

from sqlite_utils import Database

from sallyport.store.schema import DOMAIN_REALMS, statements_of
from sallyport.store.schema.dialect import SqliteDialect


def apply(db: Database) -> None:
    """Create the table, and fill it with the realms of all domains."""
    for statement in statements_of(DOMAIN_REALMS, SqliteDialect()):
        db.execute(statement)
