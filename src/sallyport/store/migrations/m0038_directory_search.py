"""The search over the people of directories is merged in small parts (`store.search.SearchIndex.merge`), no longer by
itself: a login that came beside an import waited for it."""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

SEARCH = "insert into directory_users_search (directory_users_search, rank) values ('automerge', 0);"


def apply(db: Database) -> None:
    """Turn it off."""
    execute_all(db, SEARCH)
