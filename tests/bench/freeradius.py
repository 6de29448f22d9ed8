"""FreeRADIUS as the peer, configured for speed as its documentation advises.

All variants check a password in clear text from a file with `pap`, on a thread pool of 5 to 32. The recording variant
also does Sallyport's job: before an answer leaves, rlm_sql_sqlite upserts the device and inserts the event, into a
database in WAL mode. The two servers still differ. FreeRADIUS has the advantage that release 3.2.1 does not sign its
replies and that its event has fewer columns. It has the disadvantage that its two statements are two transactions,
because `%{sql:}` takes any connection of the pool. A trigger on the event's table would join them and raise the rate by
half, but rlm_sql does not come with such a trigger. The variant with a second factor uses rlm_rest, which asks a
provider over HTTP and waits for its answer.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.peers.postgres import USER, Server, postgres_rows
from tests.ports import free_port

from .child import Running
from .radiusd import THREADS, listen, running_radiusd, write_users
from .settings import BenchmarkError

SECTIONS = """\
modules {{
    always noop {{
        rcode = noop
    }}
    pap {{
    }}
    files {{
        usersfile = {directory}/authorize
    }}
{modules}}}
server bench {{
{listen}    authorize {{
        files
        {method}
    }}
    authenticate {{
        {method}
    }}
    post-auth {{
{accepted}        Post-Auth-Type REJECT {{
{rejected}            noop
        }}
    }}
{sections}}}
"""

# rlm_sql_sqlite sets no pragma, so a connection has SQLite's compile-time default, which is synchronous=FULL in WAL
# mode too (pragma compile_options: DEFAULT_WAL_SYNCHRONOUS=2), as Sallyport has it. It is set all the same: another
# build may differ. Writers meet at SQLite's single write lock; at the default of 200 ms many would give up.
SQLITE = """\
        dialect = "sqlite"
        driver = "rlm_sql_sqlite"
        sqlite {{
            filename = "{database}"
            busy_timeout = 20000
        }}
        open_query = "PRAGMA synchronous = FULL"
"""
POSTGRES = """\
        dialect = "postgresql"
        driver = "rlm_sql_postgresql"
        server = "127.0.0.1"
        port = {port}
        login = "{user}"
        radius_db = "{database}"
"""
SQL = """\
    sql {{
{engine}        read_clients = no
        read_groups = no
        sql_user_name = "%{{User-Name}}"
        pool {{
            start = 33
            min = 33
            max = 33
            spare = 0
            uses = 0
            lifetime = 0
            idle_timeout = 0
        }}
    }}
"""

# A connection for each thread, as the package's mods-available/rest has it. The provider answers 204 for yes.
REST = """\
    rest {{
        connect_uri = "{url}"
        connect_timeout = 4.0
        post-auth {{
            uri = "{url}"
            method = 'post'
            body = 'json'
            data = '{{"user": "%{{User-Name}}", "source": "%{{NAS-Identifier}}"}}'
            timeout = 30
        }}
        pool {{
            start = 5
            min = 5
            max = {threads}
            spare = 10
            uses = 0
            lifetime = 0
            idle_timeout = 60
            retry_delay = 1
        }}
    }}
"""
ASK = """\
        if (&User-Name !~ /^user[0-9][0-9]?$/) {
            rest
        }
"""

SCHEMA = """\
create table device (
    domain integer not null, ip text not null, client_ip text not null, nas_identifier text not null,
    last_seen bigint not null, requests bigint not null,
    primary key (domain, ip, client_ip, nas_identifier)
) {clustered};
create table event (
    id {id}, domain integer not null, at bigint not null,
    user_name text not null, station text not null, nas text not null, reply text not null
);
create index event_domain_at on event (domain, at);
"""

COUNTS = "select (select count(*) from event), (select coalesce(sum(requests), 0) from device)"
PEER = "peer"
"""The database of FreeRADIUS on a PostgreSQL server."""

UPSERT_DEVICE = (
    "INSERT INTO device VALUES (1, '%{Packet-Src-IP-Address}', '%{NAS-IP-Address}', '%{NAS-Identifier}', %l, 1)"
    " ON CONFLICT (domain, ip, client_ip, nas_identifier)"
    " DO UPDATE SET last_seen = excluded.last_seen, requests = device.requests + 1"
)
INSERT_EVENT = (
    "INSERT INTO event (domain, at, user_name, station, nas, reply) VALUES"
    " (1, %l, '%{User-Name}', '%{Calling-Station-Id}', '%{NAS-Identifier}', '%{reply:Packet-Type}')"
)
# Each statement must change one row; otherwise the request stays without an answer, as Sallyport would leave it.
RECORD = f"""\
        if (("%{{sql:{UPSERT_DEVICE}}}" != "1") || ("%{{sql:{INSERT_EVENT}}}" != "1")) {{
            update control {{
                &Response-Packet-Type := Do-Not-Respond
            }}
        }}
"""


@dataclass(frozen=True, slots=True)
class Extras:
    """The parts that a variant adds to the configuration: modules, the steps before an accept and a reject, and further
    sections of the server. method: the module that checks the password.
    """

    modules: str = ""
    accepted: str = ""
    rejected: str = ""
    sections: str = ""
    method: str = "pap"
    threads: int = THREADS


def records(database: Path) -> Extras:
    """Return the parts that record each answer in a database."""
    return _records(SQLITE.format(database=database))


def _records(engine: str) -> Extras:
    return Extras(SQL.format(engine=engine), RECORD, RECORD)


def asks(url: str, threads: int) -> Extras:
    """Return the parts that ask a second factor at a URL for all users except user0 to user99. Each request waits in a
    thread of the pool.
    """
    return Extras(REST.format(url=url, threads=threads), ASK, threads=threads)


def create_database(path: Path) -> None:
    """Create the tables. The database file stays in WAL mode."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("pragma journal_mode = wal")
        database.executescript(SCHEMA.format(id="integer primary key", clustered="without rowid"))


def count_events(path: Path) -> int:
    """Return the number of recorded answers. Raises BenchmarkError if the devices have counted another number of
    requests.
    """
    with closing(sqlite3.connect(path)) as database:
        return _checked(*database.execute(COUNTS).fetchone())


def _checked(events: int, requests: int) -> int:
    if events != requests:
        raise BenchmarkError(f"FreeRADIUS recorded {events} events, but {requests} requests of devices")
    return int(events)


@contextmanager
def freeradius(directory: Path, *, users: int, recording: bool) -> Iterator[Running]:
    """Run FreeRADIUS with or without recording."""
    name = "FreeRADIUS, recording" if recording else "FreeRADIUS, nothing recorded"
    database = directory / "events.db"
    if recording:
        create_database(database)
    with run_freeradius(directory, users=users, extras=records(database) if recording else Extras()) as (port, process):
        counter = (lambda: count_events(database)) if recording else None
        yield Running(name=name, port=port, process_id=process, count_events=counter)


@contextmanager
def postgres_freeradius(directory: Path, server: Server, *, users: int) -> Iterator[Running]:
    """FreeRADIUS that records in a database of its own on a PostgreSQL server."""
    server.execute(f"create database {PEER}")
    for statement in SCHEMA.format(id="bigserial primary key", clustered="").split(";\n"):
        if statement.strip():
            server.execute(statement, PEER)
    extras = _records(POSTGRES.format(port=server.port, user=USER, database=PEER))
    with run_freeradius(directory, users=users, extras=extras) as (port, process):
        counter = lambda: _checked(*postgres_rows(server.url(PEER), COUNTS, ())[0])  # noqa: E731
        yield Running(name="FreeRADIUS, PostgreSQL", port=port, process_id=process, count_events=counter)


@contextmanager
def asking_freeradius(directory: Path, url: str, *, users: int, threads: int) -> Iterator[Running]:
    """Run FreeRADIUS with a second factor through rlm_rest. It records nothing."""
    with run_freeradius(directory, users=users, extras=asks(url, threads)) as (port, process):
        yield Running(name=f"FreeRADIUS, {threads:,} threads", port=port, process_id=process, count_events=None)


@contextmanager
def run_freeradius(directory: Path, *, users: int, extras: Extras) -> Iterator[tuple[int, int]]:
    """Run FreeRADIUS with all of its files in an empty directory, and yield its port and process."""
    port = free_port()
    write_users(directory, {f"user{number}": f"pass{number}" for number in range(users)})
    sections = SECTIONS.format(
        directory=directory, listen=listen(port), modules=extras.modules, accepted=extras.accepted,
        rejected=extras.rejected, sections=extras.sections, method=extras.method,
    )  # fmt: skip
    with running_radiusd(directory, sections, threads=extras.threads) as process:
        yield port, process
