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
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.peers.slapd import free_port
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
"""The number of databases that are kept; each has 10 MB. Older databases belong to tests that have ended."""


def programs() -> Path | None:
    """Return the directory of the newest PostgreSQL that is installed, or None."""
    found = sorted(Path("/usr/lib/postgresql").glob("[0-9]*/bin/initdb"), key=lambda path: int(path.parts[4]))
    return found[-1].parent if found else None


needs_postgres = pytest.mark.skipif(programs() is None, reason="no PostgreSQL: apt-get install postgresql")


@dataclass
class Server:
    """A cluster in a directory. A test can start, kill and stop it."""

    directory: Path
    port: int
    settings: dict[str, str]

    def make(self) -> None:
        """Make the cluster."""
        self._run("initdb", "-U", USER, "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8")
        lines = [f"{name} = {value}" for name, value in {**self.settings, "port": str(self.port)}.items()]
        with (self.directory / "data" / "postgresql.conf").open("a") as file:
            file.write("\n".join([*lines, "unix_socket_directories = ''", ""]))

    def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        self._run("pg_ctl", "-w", "-l", str(self.directory / "log"), "start")

    def standby(self, directory: Path, *, primary_port: int = 0) -> "Server":
        """Return a running standby that pg_basebackup has copied from this server. From now on, each commit of this
        server waits for the standby.

        directory: an empty directory. primary_port: the port at which the standby reaches this server, if it is another
        than the port of this server.
        """
        _give_away(directory)
        standby = Server(directory, free_port(), self.settings)
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
        subprocess.run(command, check=True, capture_output=True, cwd=self.directory, **user)  # type: ignore[call-overload]


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


def made(directory: Path, settings: dict[str, str]) -> Server:
    """Return a new cluster that is running.

    directory: an empty directory.
    """
    _give_away(directory)
    server = Server(directory, free_port(), settings)
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
        server().stop("immediate")
        shutil.rmtree(server().directory, ignore_errors=True)


_numbers = count(1)
_names: list[str] = []


def database_in(directory: Path, *, is_empty: bool = False) -> str:
    """Return the address of a directory's database on the shared server. The first call creates the database.

    is_empty: whether the database has no schema.
    """
    address = directory / "address"
    if not address.exists():
        name = f"t{next(_numbers)}"
        _names.append(name)
        for old in _names[:-KEPT]:
            with suppress(psycopg.errors.ObjectInUse):  # by a service that several tests share
                server().execute(f"drop database {old}")
                _names.remove(old)
        server().execute(f"create database {name} template {'template1' if is_empty else template()}")
        address.write_text(server().url(name))
    return address.read_text()


@cache
def template() -> str:
    """Return the name of a database that has the schema. Copying it takes less time than creating the schema."""
    from sallyport.store.postgres.connection import connect
    from sallyport.store.postgres.migration import migrate

    server().execute("create database schema")
    with connect(server().url("schema")) as connection:
        migrate(connection)
    return "schema"


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
