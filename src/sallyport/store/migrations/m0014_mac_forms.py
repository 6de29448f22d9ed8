"""The forms of MAC authentication bypass of RADIUS clients."""

from sqlite_utils import Database

from sallyport.store.schema import MAC_FORMS, statements_of
from sallyport.store.schema.dialect import SqliteDialect


def apply(db: Database) -> None:
    """Add the columns. SQLite changes no row for this."""
    for statement in statements_of(MAC_FORMS, SqliteDialect()):
        db.execute(statement)
