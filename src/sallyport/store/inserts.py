"""Statements that insert one row. A repository names each column once, as a keyword argument.

    insert_row(tx, "wallets", domain_id=3, username="ann", url="")

Many rows at once, and rows whose values the database computes, have SQL of their own.
"""

from collections.abc import Iterable

from sallyport.store.model import Tx, Value


def insert_row(tx: Tx, table: str, /, **columns: Value) -> int:
    """Insert a row, and return its id."""
    row_id = tx.value(int, f"{_insert(table, columns)} returning id", **columns)
    assert row_id is not None  # noqa: S101  an insert returns its row
    return row_id


def insert_new(tx: Tx, table: str, key: str, /, **columns: Value) -> int | None:
    """Insert a row, and return its id. Return None, and change nothing, if there is a row with the same key.

    key: the columns of a unique key, separated by commas.
    """
    return tx.value(int, f"{_insert(table, columns)} on conflict ({key}) do nothing returning id", **columns)


def put_row(tx: Tx, table: str, key: str, /, *, kept: str = "", **columns: Value) -> None:
    """Insert a row. If there is a row with the same key, give it the new values.

    key: the columns of a unique key, separated by commas. kept: the columns, separated by commas, whose values stay if
    there is such a row.
    """
    same = {*key.split(", "), *kept.split(", ")}
    changes = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in same)
    tx.execute(f"{_insert(table, columns)} on conflict ({key}) do update set {changes}", **columns)


def _insert(table: str, columns: Iterable[str]) -> str:
    names = list(columns)
    return f"insert into {table} ({', '.join(names)}) values ({', '.join(f':{name}' for name in names)})"  # noqa: S608
