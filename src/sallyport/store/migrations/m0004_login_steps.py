"""The steps of a login in its event: the rule that decided, and the time for which the login waited."""

from sqlite_utils import Database

from sallyport.store.schema import LOGIN_STEPS, statements_of
from sallyport.store.schema.dialect import SqliteDialect


def apply(db: Database) -> None:
    """Add the columns. SQLite changes no row for this."""
    for statement in statements_of(LOGIN_STEPS, SqliteDialect()):
        db.execute(statement)
