"""The columns of the store that contain sealed values. Each area declares its columns (`Area.sealed`). A test compares
the declarations with the code."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from sallyport.store.model import Tx, Value
from sallyport.store.vault import Vault

BATCH: Final = 200


@dataclass(frozen=True, slots=True)
class Sealed:
    """A column of sealed values.

    key: the columns of the primary key. identity: the format string of a value's identity (see `Vault.seal`). is_vital:
    whether a restore needs every value to be readable, because a start or the sign-in of an admin fails otherwise.
    """

    table: str
    column: str
    key: tuple[str, ...]
    identity: str
    is_vital: bool = False

    def identity_of(self, row: tuple[Value, ...]) -> str:
        """Return the identity of the value in a row of `rows_of`."""
        return self.identity.format(*row[:-1])


def check_keys(tx: Tx, columns: Iterable[Sealed], *vaults: Vault) -> None:
    """Check that each vault can open the sealed values of a store that is about to replace the current one.

    The check opens every vital value, and one value of each column and key version. Raises SecretError.
    """
    for column in columns:
        rows = _every_row(tx, column) if column.is_vital else _one_of_each_version(tx, column)
        for row in rows:
            for vault in vaults:
                vault.open(sealed_of(row), column.identity_of(row))


def _one_of_each_version(tx: Tx, column: Sealed) -> Iterator[tuple[Value, ...]]:
    version = f"substr({column.column}, 1, 1)"
    sql = f"select distinct {version} from {column.table} where {column.column} is not null"  # noqa: S608
    for (each,) in tx.rows(sql):
        sql = (
            f"select {', '.join(column.key)}, {column.column} from {column.table} "  # noqa: S608
            f"where {column.column} is not null and {version} = :version limit 1"
        )
        yield from tx.rows(sql, version=each)


def _every_row(tx: Tx, column: Sealed) -> Iterator[tuple[Value, ...]]:
    after: tuple[Value, ...] | None = None
    while rows := rows_of(column, after, tx):
        yield from rows
        after = rows[-1][:-1]


def rows_of(column: Sealed, after: tuple[Value, ...] | None, tx: Tx) -> list[tuple[Value, ...]]:
    """Return up to BATCH rows of a column, sorted by key. Each row contains the key columns and the sealed value.
    after: the key of the last row of the previous call; None for the first call."""
    names = ", ".join(column.key)
    further, given = "", dict[str, Value]()
    if after is not None:
        given = dict(zip(column.key, after, strict=True))
        further = f" and ({names}) > ({', '.join(f':{name}' for name in column.key)})"
    sql = (
        f"select {names}, {column.column} from {column.table} where {column.column} is not null{further} "  # noqa: S608
        f"order by {names} limit {BATCH}"
    )
    return tx.rows(sql, **given)


def sealed_of(row: tuple[Value, ...]) -> bytes:
    """Return the sealed value of a row of `rows_of`."""
    return row[-1] if isinstance(row[-1], bytes) else b""
