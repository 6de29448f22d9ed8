"""The schema that every new store begins with: the tables of all areas, as SQL that SQLite and PostgreSQL both take.

Three parts of a statement differ between the engines and are written as marks: `{id}`, a key that is never used twice;
`{rowid}`, a key that the program assigns or that may be used again; `{clustered}`, a table stored in the order of its
key. Two parts are SQLite's alone: `limits`, triggers that count rows, and `migrations.m0001_baseline`, the search.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

FILES: Final = ("tenancy", "inventory", "endpoints", "agents", "directory", "did", "login")
"""In this order, since a table stands behind those that it refers to."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The SQL of an engine for the parts that differ."""

    id: str
    rowid: str
    clustered: str


SQLITE: Final = Dialect("integer primary key autoincrement", "integer primary key", "without rowid")


def statements(dialect: Dialect) -> Iterator[str]:
    """Yield the statements that create all tables and indexes, in an engine's dialect."""
    for name in FILES:
        text = files(__package__).joinpath(f"{name}.sql").read_text()
        for mark, written in (("id", dialect.id), ("rowid", dialect.rowid), ("clustered", dialect.clustered)):
            text = text.replace(f"{{{mark}}}", written)
        yield from (statement for statement in text.split(";\n") if statement.strip())
