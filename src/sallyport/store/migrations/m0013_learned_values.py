"""The age of the learned values of devices, and the detail of an event."""

from sqlite_utils import Database

from sallyport.store.schema import LEARNED_VALUES, statements_of
from sallyport.store.schema.dialect import SqliteDialect


def apply(db: Database) -> None:
    """Add the columns. The known challenge support stays known for a month."""
    for statement in statements_of(LEARNED_VALUES, SqliteDialect()):
        db.execute(statement)
