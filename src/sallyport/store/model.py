"""What the areas see of the store. SQL is written for both engines: named parameters, explicit columns, UTC integer
microseconds, JSON as text, `on conflict ... returning`. Beside the functions that both have there is `fold(text)`: text
without case in every script, where `lower` knows the letters a to z alone and has the indexes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol, TypeVar

from sallyport.base.text import fold

Value = int | float | str | bytes | None
NOTHING: Final[Mapping[str, Value]] = {}
T = TypeVar("T")
V = TypeVar("V", int, float, str, bytes)


class Tx(Protocol):
    """One transaction, valid inside the work that it was given to."""

    def execute(self, sql: str, /, **parameters: Value) -> int:
        """Run a statement; the number of rows it changed."""

    def one(self, shape: Callable[..., T], sql: str, /, **parameters: Value) -> T | None:
        """The first row as `shape(column=value, ...)`, or None."""

    def all(self, shape: Callable[..., T], sql: str, /, **parameters: Value) -> list[T]:
        """Every row as `shape(column=value, ...)`."""

    def rows(self, sql: str, /, **parameters: Value) -> list[tuple[Value, ...]]:
        """Every row as it is: the quick way, for the hot path."""

    def value(self, kind: type[V], sql: str, /, **parameters: Value) -> V | None:
        """The first column of the first row; None without a row or for null."""

    def insert(
        self,
        table: str,
        columns: Sequence[str],
        rows: Iterable[Sequence[Value]],
        *,
        same: Mapping[str, Value] = NOTHING,
        on_conflict: str = "",
    ) -> None:
        """Insert many rows: the quick way, for the hot path and imports. same: further columns that all rows have the
        same value in. on_conflict: such as `on conflict (id) do update set ...`; no two of the rows may meet in it."""

    def others_wait(self) -> bool:
        """Return whether an answer waits for this transaction. Work in many steps then ends with its present step."""


Work = Callable[[Tx], T]
Done = Callable[[T | None, BaseException | None], None]
"""Called on the event loop with the result, or with the error."""


def without_case(column: str, text: str) -> tuple[str, str]:
    """SQL for a column without case, and the text in the same form, to compare them: by an index where that will do."""
    return (f"lower({column})", text.lower()) if text.isascii() else (f"fold({column})", fold(text))


class Store(Protocol):
    """Where everything is kept."""

    @property
    def changes(self) -> int:
        """Grows with each commit: where it is what it was before the last look, another look finds nothing new. What
        another program writes does not count."""

    async def read(self, work: Work[T]) -> T:
        """Run `work` on a consistent view of the committed rows. StoreError."""

    async def read_now(self, work: Work[T]) -> T:
        """`read` for what a key or a page of at most 100 rows bounds to about 1 ms. The embedded engine runs it on the
        event loop, without a checkpoint; what takes longer than expected begins again in a thread. So `work` may run
        twice. StoreError."""

    async def search(self, work: Work[T]) -> T:
        """`read` for work on many rows: few at a time, of each acting party in turn (`base.actor`), for a bounded time.
        StoreError."""

    async def write(self, work: Work[T]) -> T:
        """Run `work` and return once it is on disk. It may run beside others' work in one transaction, and is
        undone alone when it raises. StoreError: nothing of it was kept."""

    def submit(self, work: Work[T], done: Done[T]) -> None:
        """`write` without a task that waits: `done(result, error)` is called on the event loop, in the order of the
        submissions, possibly before this returns. `work` must be short: it may run on the event loop, and runs before
        all that was passed to `write`."""
