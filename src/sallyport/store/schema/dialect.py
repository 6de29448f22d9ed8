"""The parts of the schema's SQL that differ between the engines."""

from collections.abc import Iterator, Sequence
from typing import Protocol


class Dialect(Protocol):
    """The SQL that differs between the engines. id: a key that is never reused. rowid: a key that the program assigns
    or that may be used again. clustered: the end of the declaration of a table whose rows are stored in the order of
    the key. text: the type of a text that is compared by its code points."""

    id: str
    rowid: str
    clustered: str
    text: str

    def trigger(self, name: str, event: str, statements: Sequence[str]) -> Iterator[str]:
        """Yield the SQL that creates a trigger. event: the event of the trigger, such as `after insert on devices`."""

    def abort(self, message: str) -> str:
        """Return the statement by which a trigger aborts the change, with this error message."""


class SqliteDialect:
    """The words of SQLite."""

    id = "integer primary key autoincrement"
    rowid = "integer primary key"
    clustered = "without rowid"
    text = "text"

    def trigger(self, name: str, event: str, statements: Sequence[str]) -> Iterator[str]:
        yield f"create trigger {name} {event} begin {'; '.join(statements)}; end"

    def abort(self, message: str) -> str:
        return f"select raise(abort, '{message}')"
