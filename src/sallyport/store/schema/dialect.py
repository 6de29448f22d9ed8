"""The parts of the schema's SQL that differ between the engines."""

from collections.abc import Iterator, Sequence
from typing import Protocol


class Dialect(Protocol):
    """The parts of the schema's SQL that differ between the engines.

    id: the type of a key that the engine assigns, and never assigns again. rowid: the type of any other numeric key.
    clustered: the end of a table's declaration; with it, the rows are stored in the order of the key. text: the type of
    a text that is compared by code points.
    """

    id: str
    rowid: str
    clustered: str
    text: str

    def trigger(self, name: str, event: str, statements: Sequence[str]) -> Iterator[str]:
        """Yield the SQL that creates a trigger. event: when the trigger runs, such as `after insert on devices`."""

    def abort(self, message: str) -> str:
        """Return the statement with which a trigger aborts a change. message: the error message."""


class SqliteDialect:
    """The SQL for SQLite where the two engines differ."""

    id = "integer primary key autoincrement"
    rowid = "integer primary key"
    clustered = "without rowid"
    text = "text"

    def trigger(self, name: str, event: str, statements: Sequence[str]) -> Iterator[str]:
        yield f"create trigger {name} {event} begin {'; '.join(statements)}; end"

    def abort(self, message: str) -> str:
        return f"select raise(abort, '{message}')"
