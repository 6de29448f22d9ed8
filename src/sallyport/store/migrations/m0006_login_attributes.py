"""The attributes of a login's answer in its event."""

from sqlite_utils import Database

from sallyport.store.schema import LOGIN_ATTRIBUTES, statements_of
from sallyport.store.schema.dialect import SqliteDialect


def apply(db: Database) -> None:
    """Add the column. SQLite changes no row for this."""
    for statement in statements_of(LOGIN_ATTRIBUTES, SqliteDialect()):
        db.execute(statement)
