"""The baseline of the SQLite schema: all tables, and the search indexes of SQLite."""

from sqlite_utils import Database

from sallyport.store.schema import SEARCHED, limits, statements
from sallyport.store.schema.dialect import SqliteDialect

MERGED_BY_HAND = "directory_users_search"
"""The search index to which imports add many rows. `SearchIndex.merge` merges it in small parts, so that logins do not
wait."""


def apply(db: Database) -> None:
    """Create all tables, indexes, triggers and search indexes."""
    for statement in (*statements(SqliteDialect()), *limits.triggers()):
        db.execute(statement)
    db.execute("insert into config_version (id, version) values (1, 1)")
    for name in SEARCHED:
        options = "tokenize = 'trigram case_sensitive 1', columnsize = 0"
        db.execute(f"create virtual table {name}_search using fts5 (texts, {options})")
    db.execute(f"insert into {MERGED_BY_HAND} ({MERGED_BY_HAND}, rank) values ('automerge', 0)")  # noqa: S608
