"""Checks of the database: schema, integrity, times of events, and limits of tenants."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlite_utils import Database

from sallyport.base.clock import SECOND, iso
from sallyport.base.errors import StoreError
from sallyport.cli.checks.model import Examination, Finding, ok, problem, warning
from sallyport.settings.limits import HISTORIES
from sallyport.store.connections import open_connection
from sallyport.store.migrations import ALL, incompatibility
from sallyport.store.postgres import check_driver

AHEAD_S = 60


def check_database(examination: Examination) -> Iterator[Finding]:
    """Check that the database can be opened and has the schema of this program."""
    path = examination.settings.database_path
    if examination.settings.database_url:
        yield from _server(examination.settings.database_url)
    elif not path.exists():
        yield ok(f"{path} does not exist yet: the first start creates it")
    else:
        yield _schema_finding(path, schema_of(path))


def check_integrity(examination: Examination) -> Iterator[Finding]:
    """Check the integrity of the database file. The check reads the whole file, so it is skipped while a service
    runs."""
    path = examination.settings.database_path
    if examination.settings.database_url:
        yield ok("skipped: PostgreSQL checks its own files")
    elif examination.process_id is not None:
        yield ok("skipped while the service runs")
    elif path.exists():
        with closing(open_connection(path, read_only=True)) as connection:
            try:
                said = [str(row[0]) for row in connection.execute("pragma quick_check(3)")]
            except sqlite3.Error as error:
                said = [str(error)]
        yield ok("whole") if said == ["ok"] else problem(f"{path} is damaged: {'; '.join(said)}; restore a backup")
    else:
        yield ok("nothing to look at")


def check_records(examination: Examination) -> Iterator[Finding]:
    """Check that no event is in the future. An event in the future shows that the clock was set back, or that the clock
    was wrong when the event was recorded."""
    if not is_current(examination):
        yield ok("nothing to look at")
        return
    ((newest,),) = _rows(examination, "select max(at) from events")
    if newest is not None and newest > (time.time() + AHEAD_S) * SECOND:
        yield problem(
            f"the newest event is in the future ({iso(newest)}): the clock is wrong, or was wrong then; set the "
            "clock (chrony)"
        )
    else:
        yield ok("no event yet" if newest is None else f"the newest event has the time {iso(newest)}")


def check_limits(examination: Examination) -> Iterator[Finding]:
    """Check that no tenant has used 90 % or more of one of its limits."""
    if not is_current(examination):
        yield ok("nothing to look at")
        return
    sql = (
        "select organization_id, number, r.name, r.value, l.most from tenant_rows r join limits l on l.name = r.name "
        "join tenants t on t.id = r.tenant_id where r.value > 0 and r.value * 10 >= l.most * 9"
    )
    used = [row for row in _rows(examination, sql) if row[2] not in HISTORIES]
    for organization, tenant, name, value, most in used:
        yield warning(
            f"organization {organization}, tenant {tenant}: {value} of {most} {name}; raise the setting limits.{name}, "
            "or delete some"
        )
    if not used:
        yield ok("no tenant has used 90 % of a limit")


def is_current(examination: Examination) -> bool:
    """Return whether the database exists and has the current schema. Opening such a database changes nothing. Raises
    StoreError if the file is not a database."""
    if examination.settings.database_url:
        from sallyport.store.postgres.migration import inspect

        found = inspect(examination.settings.database_url)
        return found.has_store and not found.pending
    path = examination.settings.database_path
    return path.exists() and schema_of(path).current


@dataclass(frozen=True, slots=True)
class Schema:
    """The schema of a database file.

    applied, pending: the names of migrations. incompatibility: the reason why this program cannot use the database. It
    is empty if the program can use the database.
    """

    applied: frozenset[str]
    pending: tuple[str, ...]
    incompatibility: str

    @property
    def current(self) -> bool:
        """Return whether the schema is current. If so, opening the database changes nothing."""
        return bool(self.applied) and not self.pending and not self.incompatibility


def schema_of(path: Path) -> Schema:
    """Return the schema of a database. Raises StoreError if the file is not a database."""
    with closing(open_connection(path, read_only=True)) as connection:
        try:
            database = Database(connection, execute_plugins=False)
            applied = frozenset(each.name for each in ALL.applied(database))
            pending = tuple(each.name for each in ALL.pending(database))
        except sqlite3.Error as error:
            raise StoreError(f"{path}: {error}") from error
    return Schema(applied, pending, incompatibility(path, applied))


def _schema_finding(path: Path, schema: Schema) -> Finding:
    if schema.incompatibility:
        return problem(schema.incompatibility)
    if not schema.applied:
        return problem(
            f"{path} is not a database of Sallyport; set another database, or restore a backup: sallyport db restore"
        )
    if schema.pending:
        names = ", ".join(schema.pending)
        return warning(f"{path} has an older schema: the next start, or sallyport db migrate, applies {names}")
    return ok(f"{path}, schema {max(schema.applied)}")


def _server(url: str) -> Iterator[Finding]:
    """Check a PostgreSQL database. Raises ConfigError if the extra `postgres` is not installed. Raises StoreError."""
    check_driver()
    from sallyport.store.postgres import server
    from sallyport.store.postgres.engine import CONNECTIONS
    from sallyport.store.postgres.migration import inspect

    found = inspect(url)
    if not found.has_store:
        yield ok(f"{found.name} is empty: the first start creates the tables")
        return
    if found.pending:
        steps = ", ".join(found.pending)
        yield warning(f"{found.name} has an older schema: the next start, or sallyport db migrate, applies {steps}")
        return
    about = server.inspect(url)
    doubts = [f"{found.name}: {each}" for each in server.doubts(about, CONNECTIONS)]
    if found.newer:
        doubts.append(f"{found.name} has the schema of a newer version: upgrade this node, and restart it")
    if not found.has_trigrams:
        doubts.append(
            f"{found.name} searches without an index: create the extension pg_trgm before the first start, or move the "
            "installation to a database that has it (sallyport db copy)"
        )
    yield from map(warning, doubts)
    if not doubts:
        yield ok(f"{found.name}, {'synchronous' if about.standbys else 'no'} replication")


def _rows(examination: Examination, sql: str) -> list[tuple[Any, ...]]:
    """Run a query on the database file, and return the rows. The file must have the current schema."""
    if examination.settings.database_url:
        from sallyport.store.postgres.migration import rows

        return rows(examination.settings.database_url, sql)
    with closing(open_connection(examination.settings.database_path, read_only=True)) as connection:
        return connection.execute(sql).fetchall()
