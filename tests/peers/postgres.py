"""A PostgreSQL server for the tests. Each test process has its own cluster in a temporary directory.

Its disk is not synchronized, so that thousands of databases can be made quickly. Tests of durability start their own
server.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

from sallyport.store.model import Store
from tests.ports import free_port
from tests.waiting import eventually

USER = "sallyport"
SETTINGS = {
    "listen_addresses": "'127.0.0.1'",
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "max_connections": "300",
    "autovacuum": "off",
}
"""Settings of a server whose data are not needed after the test."""
NOBODY = 65534
KEPT = 20
"""The number of databases that are left as they are, for the tests that run. Older ones belong to tests that have
ended, unless a service of several tests is connected to them.
"""
FIRST_OBJECT = 16_384
"""The lowest object id of objects that are not PostgreSQL's own."""


def programs() -> Path | None:
    """Return the directory of the newest PostgreSQL that is installed, or None."""
    found = sorted(Path("/usr/lib/postgresql").glob("[0-9]*/bin/initdb"), key=lambda path: int(path.parts[4]))
    return found[-1].parent if found else None


needs_postgres = pytest.mark.skipif(programs() is None, reason="no PostgreSQL: apt-get install postgresql")


@dataclass
class Server:
    """A cluster in a directory. A test can start, kill and stop it. environ: further environment variables."""

    directory: Path
    port: int
    settings: dict[str, str]
    environ: dict[str, str] = field(default_factory=dict)

    def make(self) -> None:
        """Make the cluster."""
        self._run("initdb", "-U", USER, "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8")
        lines = [f"{name} = {value}" for name, value in {**self.settings, "port": str(self.port)}.items()]
        with (self.directory / "data" / "postgresql.conf").open("a") as file:
            file.write("\n".join([*lines, "unix_socket_directories = ''", ""]))

    def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        self._run("pg_ctl", "-w", "-l", str(self.directory / "log"), "start")

    def standby(
        self, directory: Path, *, primary_port: int = 0, port: int = 0, environ: dict[str, str] | None = None
    ) -> "Server":
        """Return a running standby that pg_basebackup has copied from this server. From now on, each commit of this
        server waits for the standby.

        directory: an empty directory. primary_port: the port at which the standby reaches this server, if it is another
        than the port of this server. port: of the standby; 0: a free one. environ: the standby's own variables.
        """
        _give_away(directory)
        standby = Server(directory, port or free_port(), self.settings, environ or {})
        source = f"host=127.0.0.1 user={USER} port="
        standby._run("pg_basebackup", "--checkpoint=fast", "--no-sync", "-d", f"{source}{self.port}")
        with (directory / "data" / "postgresql.conf").open("a") as file:
            file.write(f"port = {standby.port}\nprimary_conninfo = '{source}{primary_port or self.port}'\n")
        (directory / "data" / "standby.signal").touch()
        standby.start()
        self.execute("alter system set synchronous_standby_names = '*'")
        self.execute("select pg_reload_conf()")
        eventually(self._has_synchronous_standby)
        return standby

    def _has_synchronous_standby(self) -> bool:
        sql = "select 1 from pg_stat_replication where sync_state = 'sync' and state = 'streaming'"
        return bool(postgres_rows(self.url(), sql, ()))

    def promote(self) -> None:
        """Let this standby accept writes."""
        self._run("pg_ctl", "-w", "promote")

    def kill(self) -> None:
        """End it as the loss of its machine does: no process of it writes anything more."""
        processes = self._signal(signal.SIGKILL)
        eventually(lambda: not any(map(runs, processes)))
        (self.directory / "data" / "postmaster.pid").unlink()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let its processes stand still: connections stay, and nothing answers."""
        self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> list[int]:
        """Send a signal to all its processes, and return them."""
        first = int((self.directory / "data" / "postmaster.pid").read_text().split()[0])
        found = [
            first,
            *(int(path.parent.name) for path in Path("/proc").glob("[0-9]*/stat") if _parent(path) == first),
        ]
        for each in found:
            with suppress(ProcessLookupError):
                os.kill(each, number)
        return found

    def stop(self, mode: str = "fast") -> None:
        """Stop the server, and wait until it has ended.

        mode: the mode of pg_ctl; `immediate` ends the server as a crash does.
        """
        self._run("pg_ctl", "-w", "-m", mode, "stop")

    def url(self, database: str = "postgres") -> str:
        """Return the address of a database."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    def execute(self, sql: str, database: str = "postgres") -> None:
        """Run a statement outside a transaction."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute(sql.encode())

    def _run(self, program: str, *words: str) -> None:
        folder = programs()
        assert folder is not None
        command = [str(folder / program), "-D", str(self.directory / "data"), *words]
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
        environ = {**os.environ, **self.environ}
        subprocess.run(command, check=True, capture_output=True, cwd=self.directory, env=environ, **user)  # type: ignore[call-overload]


def runs(process_id: int) -> bool:
    """Return whether a process has not ended; a process that is not waited for stays as a zombie."""
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _parent(path: Path) -> int:
    """Return the parent of the process with this status file, or 0 if the process has ended."""
    try:
        return int(path.read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def made(directory: Path, settings: dict[str, str], environ: dict[str, str] | None = None) -> Server:
    """Return a new cluster that is running.

    directory: an empty directory.
    """
    _give_away(directory)
    server = Server(directory, free_port(), settings, environ or {})
    server.make()
    server.start()
    return server


def _give_away(directory: Path) -> None:
    """Let the user of the servers write into a directory."""
    directory.chmod(0o755)
    if os.getuid() == 0:
        os.chown(directory, NOBODY, NOBODY)


@cache
def server() -> Server:
    """Return the server that the tests in this process share. `close` ends it."""
    return made(Path(tempfile.mkdtemp(prefix="sallyport-postgres-")), SETTINGS)


def close() -> None:
    """End the shared server if there is one, and delete its files."""
    if server.cache_info().currsize:
        if _administration.cache_info().currsize:
            _administration().close()
        server().stop("immediate")
        shutil.rmtree(server().directory, ignore_errors=True)


_numbers = count(1)
_used: list[str] = []
"""The databases with the schema that tests have got, the oldest first."""
_left: list[str] = []
"""Databases with the schema that processes have left that have ended."""


def database_in(directory: Path, *, is_empty: bool = False) -> str:
    """Return the address of a directory's database on the shared server. The first call provides the database.

    is_empty: whether the database has no schema.
    """
    address = directory / "address"
    if not address.exists():
        name = _created("template1") if is_empty else _with_schema()
        address.write_text(server().url(name))
    return address.read_text()


def _created(source: str) -> str:
    """Return the name of a new database that is a copy of another."""
    name = f"t{os.getpid()}_{next(_numbers)}"
    _administration().execute(f"create database {name} template {source}".encode())
    return name


def _with_schema() -> str:
    """Return the name of a database with the schema and without a test's rows.

    To empty the database of a test that has ended takes a tenth of the time of a new one.
    """
    initial = template()
    for old in [name for name in [*_left, *_used[:-KEPT]] if not _is_connected(name)]:
        (_left if old in _left else _used).remove(old)
        if initial.restore(old):
            _used.append(old)
            return old
        _administration().execute(f"drop database {old}".encode())
    _used.append(_created(initial.name))
    return _used[-1]


def _is_connected(database: str) -> bool:
    found = _administration().execute("select 1 from pg_stat_activity where datname = %s", [database])
    return found.fetchone() is not None


@cache
def _administration() -> psycopg.Connection:
    """Return the connection that makes and drops databases of the shared server."""
    return psycopg.connect(server().url(), autocommit=True)


@dataclass
class Template:
    """A database that has the schema, and what it contains."""

    name: str

    def __post_init__(self) -> None:
        with psycopg.connect(server().url(self.name)) as connection:
            self.catalog = _catalog(connection)
            self.sequences = _sequences(connection)
            self.rows = {table: _copied(connection, table) for table in _tables_with_pages(connection)}

    def restore(self, database: str) -> bool:
        """Give a copy the rows and sequences of this database again.

        Return False, with the copy unchanged, if a test has changed its schema.
        """
        with psycopg.connect(server().url(database), autocommit=True) as connection:
            if _catalog(connection) != self.catalog:
                return False
            tables = _tables_with_pages(connection)
            connection.execute("set session_replication_role = replica")  # without triggers
            for table in tables:
                connection.execute(f"delete from {table}".encode())  # noqa: S608
            if tables:
                connection.execute(f"vacuum {', '.join(tables)}".encode())
            for table, rows in self.rows.items():
                with connection.cursor().copy(f"copy {table} from stdin".encode()) as copy:
                    copy.write(rows)
            for sequence in _sequences(connection) - self.sequences:
                name, start = sequence[:2]
                last = next(each[2] for each in self.sequences if each[0] == name)
                connection.execute("select setval(%s, %s, %s)", (name, last or start, last is not None))
        return True


def _catalog(connection: psycopg.Connection) -> Sequence[object]:
    """Return what each change of the schema changes: the number of objects and the newest transaction that wrote
    one."""
    objects = {"pg_class": "oid", "pg_attribute": "attrelid", "pg_trigger": "oid", "pg_proc": "oid"}
    columns = [
        f"(select (count(*), max(xmin::text::bigint))::text from {table} where {column} >= {FIRST_OBJECT})"  # noqa: S608
        for table, column in objects.items()
    ]
    row = connection.execute(f"select {', '.join(columns)}".encode()).fetchone()
    assert row is not None
    return row


def _sequences(connection: psycopg.Connection) -> set[tuple[str, int, int | None]]:
    """Return the name, the first and the last value of each sequence; None as the last value if it was not used."""
    found = connection.execute("select sequencename::text, start_value, last_value from pg_sequences")
    return {(name, start, last) for name, start, last in found}


def _tables_with_pages(connection: psycopg.Connection) -> list[str]:
    """Return the tables that have or had rows since they were vacuumed."""
    found = connection.execute(
        "select quote_ident(relname) from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace"
        " and pg_relation_size(oid) > 0"
    )
    return [name for (name,) in found]


def _copied(connection: psycopg.Connection, table: str) -> bytes:
    with connection.cursor().copy(f"copy {table} to stdout".encode()) as copy:
        return b"".join(bytes(each) for each in copy)


@cache
def template() -> Template:
    """Return the database that has the schema. Copying it takes less time than creating the schema."""
    from sallyport.store.postgres.connection import connect
    from sallyport.store.postgres.migration import migrate

    _administration().execute("create database schema")
    with connect(server().url("schema")) as connection:
        migrate(connection)
    return Template("schema")


def share() -> None:
    """Start the server, with the schema, for the processes that this one forks. Each names its databases apart."""
    template()
    _administration().close()
    _administration.cache_clear()


def databases_of_ended() -> list[str]:
    """Return the databases of forked processes that have ended, after the end of their connections."""
    with psycopg.connect(server().url(), autocommit=True) as connection:
        found = connection.execute(
            "select datname from pg_database where datname like 't%\\_%' order by oid"
        ).fetchall()
        names = [name for (name,) in found if not runs(int(name[1:].partition("_")[0]))]
        sql = "select pg_terminate_backend(pid) from pg_stat_activity where datname = any(%s)"
        connection.execute(sql, [names])
    return names


def adopt(names: Sequence[str]) -> None:
    """Let this forked process use databases again that other processes have left."""
    _left[:] = names


async def set_database_clock(store: Store, at: int) -> None:
    """Stop the clock of a test's database at a time in microseconds, or move the stopped clock. The nodes read it with
    `now_us()`; the server's own clock continues."""
    sql = f"create or replace function now_us() returns bigint language sql volatile parallel safe return {at}::bigint"
    await store.write(lambda tx: tx.execute(sql))


def postgres_rows(url: str, sql: str, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
    """Return rows of a database.

    sql: a statement with a question mark for each parameter.
    """
    with psycopg.connect(url) as connection:
        return connection.execute(sql.replace("%", "%%").replace("?", "%s").encode(), parameters).fetchall()


def postgres_execute(url: str, sql: str, parameters: Sequence[object]) -> None:
    """Run one statement in a database.

    sql: a statement with a question mark for each parameter.
    """
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.replace("%", "%%").replace("?", "%s").encode(), parameters)
