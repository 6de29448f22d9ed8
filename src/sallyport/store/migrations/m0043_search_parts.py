"""Texts of four letters, and mail domains, are searched as the shorter ones are: that index is made anew. It had one to
three letters where `m0037_short_search` has run in an earlier version."""

from sqlite_utils import Database

from sallyport.base.text import fold
from sallyport.store.migrations.m0037_short_search import SEARCHED
from sallyport.store.search import short_parts


def apply(db: Database) -> None:
    """Let the rows that are there be found."""
    for name, select in SEARCHED.items():
        table = f"{name}_search_short"
        db.execute(f"insert into {table} ({table}) values ('delete-all')")  # noqa: S608
        db.conn.executemany(
            f"insert into {table} (rowid, pieces) values (?, ?)",  # noqa: S608
            (
                (row_id, short_parts(number, [*map(fold, texts)]))
                for row_id, number, *texts in db.execute(f"{select} order by id")
            ),
        )
