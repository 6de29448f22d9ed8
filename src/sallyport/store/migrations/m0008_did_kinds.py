"""The index of a domain's issuers and holders."""

from sqlite_utils import Database

from sallyport.store.schema import DID_KINDS, statements_of
from sallyport.store.schema.dialect import SqliteDialect


def apply(db: Database) -> None:
    """Create the index."""
    for statement in statements_of(DID_KINDS, SqliteDialect()):
        db.execute(statement)
