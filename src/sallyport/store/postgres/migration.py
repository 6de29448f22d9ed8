"""The history of the schema, and the upgrade of a database to the newest schema while nodes of the previous release
run.

`beside` of a step names the oldest program that works with the new schema. The name of a program is the last step that
the program knows.

    expand    adds objects that the previous release ignores: `beside` is the last step of the previous release
    contract  removes objects that this release does not use any more: `beside` is the last step of this release

A database stores `beside` of each step. So an older program can find out whether it works with steps that it does not
know. A step is not applied while a node runs that does not work with the new schema.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import psycopg

from sallyport.base.errors import SchemaError
from sallyport.store.foreign import DEAD_US
from sallyport.store.postgres import schema
from sallyport.store.postgres.connection import OLDEST, Connection, as_ours, connect
from sallyport.store.schema import PACKAGE, step_files

MIGRATION: Final = 0x53414C4C59 + 1
"""The advisory lock of a migration."""
WAIT_S: Final = 3
"""Maximum time in seconds for which a step waits for a table. Meanwhile the logins of running nodes wait too."""


@dataclass(frozen=True, slots=True)
class MigrationStep:
    """A step of the schema.

    apply: makes the change in a transaction. beside: names the oldest program that works with the new schema, by the
    last step that this program knows; empty if no earlier program works with the new schema.
    """

    name: str
    apply: Callable[[Connection], object]
    beside: str = ""


Steps = Sequence[MigrationStep]

BASELINE: Final = "p0001_baseline"


def steps_of(folders: Sequence[Path] = (PACKAGE,)) -> Steps:
    """Return the baseline and the steps of the areas in the folders, oldest step first."""
    later = step_files("p", folders, has_nodes=True)
    return (
        MigrationStep(BASELINE, schema.create),
        *(MigrationStep(each.name, partial(schema.apply, step=each), beside=BASELINE) for each in later),
    )


STEPS: Final = steps_of()
"""The history of the schema. A released step is never changed."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """The state of a database.

    name: the name of the database, the host and the version of its server; it contains no password. pending: the names
    of the steps that the next start applies. newer: the names of applied steps that this program does not know. The
    program still works with these steps.
    """

    name: str
    has_store: bool
    has_trigrams: bool
    pending: tuple[str, ...]
    newer: tuple[str, ...]


def inspect(url: str) -> Inspection:
    """Return the state of a database. Raises SchemaError or StoreError if the database cannot be used."""
    with connect(url) as connection:
        info = connection.info
        name = f"database {info.dbname} on {info.host}, PostgreSQL {info.server_version // 10000}"
        there = connection.execute("select 1 from pg_extension where extname = 'pg_trgm'").fetchone()
        applied, known = usable_steps(connection), [step.name for step in STEPS]
        pending = tuple(step for step in known if step not in applied)
        return Inspection(name, bool(applied), there is not None, pending, _unknown(applied, STEPS))


def exists(url: str) -> bool:
    """Return whether the database contains a store. Raises SchemaError or StoreError if the database cannot be used."""
    with connect(url) as connection:
        return has_store(connection)


def has_store(connection: Connection) -> bool:
    """Return whether the database contains a store. Raises SchemaError if the database cannot be used."""
    return bool(usable_steps(connection))


def rows(url: str, sql: str) -> list[tuple[object, ...]]:
    """Return the rows of a query. Raises StoreError."""
    try:
        with connect(url) as connection:
            return connection.execute(sql.encode()).fetchall()
    except psycopg.Error as error:
        raise as_ours(error) from error


def migrate(connection: Connection, steps: Steps = STEPS) -> list[str]:
    """Apply the pending steps, and return their names. Only one process at a time does this.

    Raises SchemaError if the server or the database cannot be used, or if a node is running that does not work with a
    step. Nothing has changed then. Raises StoreError if a step fails, or waits too long for a table.
    """
    try:
        with connection.transaction():
            connection.execute(f"select pg_advisory_xact_lock({MIGRATION})")
            connection.execute(f"set local statement_timeout = 0; set local lock_timeout = '{WAIT_S}s'")
            applied = usable_steps(connection, steps)
            pending = [step for step in steps if step.name not in applied]
            if applied and pending:
                _make_way(connection, pending, steps)
            for step in pending:
                step.apply(connection)
                connection.execute(
                    "insert into schema_steps (name, beside, applied_at) values ($1, $2, now())",
                    [step.name, step.beside],
                )
    except psycopg.Error as error:
        raise as_ours(error) from error
    return [step.name for step in pending]


def check_current(connection: Connection, steps: Steps = STEPS) -> None:
    """Check that the program knows every step of the database. Then it also knows all rows. Raises SchemaError if the
    program does not know a step."""
    if newer := _unknown(usable_steps(connection, steps), steps):
        raise SchemaError(
            f"the database has the schema of a newer version ({', '.join(newer)}): run the command on a node of that "
            "version"
        )


def usable_steps(connection: Connection, steps: Steps = STEPS) -> dict[str, str]:
    """Return `beside` of each applied step, by the name of the step. Raises SchemaError if the server is too old, if
    the database belongs to another program, or if the schema is too new for this program."""
    _check_server(connection)
    found = connection.execute("select tablename from pg_tables where schemaname = current_schema()").fetchall()
    tables = {str(name) for (name,) in found}
    if not tables:
        return {}
    if "schema_steps" not in tables:
        raise SchemaError("the database has tables of another program: name an empty database")
    applied = {
        str(name): str(beside)
        for name, beside in connection.execute("select name, beside from schema_steps order by name")
    }
    known = {step.name for step in steps}
    if too_new := [step for step in _unknown(applied, steps) if applied[step] not in known]:
        raise SchemaError(
            f"the database was written by a newer version (it has {', '.join(too_new)}): install that version again, "
            "or restore a backup that this version has made into an empty database"
        )
    return applied


def _unknown(applied: Mapping[str, str], steps: Steps) -> tuple[str, ...]:
    return tuple(sorted(applied.keys() - {step.name for step in steps}))


def _check_server(connection: Connection) -> None:
    if connection.info.server_version < OLDEST:
        raise SchemaError(
            f"the database server is PostgreSQL {connection.info.server_version // 10000}; version 15 or later is "
            "needed"
        )
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise SchemaError(f"the encoding of the database is {encoding}: create it with encoding UTF8")


def _make_way(connection: Connection, pending: Steps, steps: Steps) -> None:
    """Raise SchemaError if a running node does not work with the pending steps. Also end the sessions of nodes that do
    not work with the pending steps and have sent no heartbeat for some time. If such a node still runs, it stops at its
    next heartbeat."""
    order = {step.name: number for number, step in enumerate(steps)}
    least = max(order.get(step.beside, order[step.name]) for step in pending)
    nodes = connection.execute(
        f"select id, name, version, schema, seen_at > now_us() - {DEAD_US} from nodes order by name".encode()
    ).fetchall()
    old = [row for row in nodes if order.get(str(row[3]), len(steps)) < least]
    running = [f"{name} ({version})" for _, name, version, _, is_alive in old if is_alive]
    if running:
        names = ", ".join(step.name for step in pending)
        raise SchemaError(
            f"running nodes do not work with the new schema ({names}): {', '.join(running)}; stop them, or upgrade "
            "them to the release before this one first"
        )
    connection.execute("update nodes set session = '' where id = any($1::bigint[])", [[row[0] for row in old]])
