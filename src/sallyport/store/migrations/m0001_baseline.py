"""The schema of a new store, and the search that only SQLite has."""

from sqlite_utils import Database

from sallyport.store.schema import SEARCHED, limits, statements
from sallyport.store.schema.dialect import SqliteDialect

MERGED_BY_HAND = "directory_users_search"
"""Search index to which imports write many rows. `SearchIndex.merge` merges it in small parts, so that logins do not
wait long."""


def apply(db: Database) -> None:
    """Create everything."""
    for statement in (*statements(SqliteDialect()), *limits.triggers()):
        db.execute(statement)
    db.execute("insert into config_version (id, version) values (1, 1)")
    for name in SEARCHED:
        options = "tokenize = 'trigram case_sensitive 1', columnsize = 0"
        db.execute(f"create virtual table {name}_search using fts5 (texts, {options})")
    db.execute(f"insert into {MERGED_BY_HAND} ({MERGED_BY_HAND}, rank) values ('automerge', 0)")  # noqa: S608
