"""FreeRADIUS with the accounting of its package: rlm_sql_sqlite with the package's schema and queries.

A Start inserts a row into radacct; an interim record and a Stop update it. Each of these is a transaction of its own,
which is on disk before the answer leaves. WAL mode, synchronous=FULL and the pool are those of the recording variant of
logins, which is quicker than the defaults of the package. FreeRADIUS keeps one row for each session; Sallyport keeps
each record as well.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.ports import free_port

from .child import Running
from .freeradius import Extras, records, run_freeradius
from .radiusd import listen
from .settings import BenchmarkError

DIRECTORIES = ("/etc/freeradius/3.0", "/etc/raddb", "/etc/freeradius")
MAIN = "mods-config/sql/main/sqlite"

# The module `expr` has the functions that the queries and acct_unique call.
FUNCTIONS = """\
    expr {
    }
"""
TABLES = """\
        radius_db = "radius"
        acct_table1 = "radacct"
        acct_table2 = "radacct"
        postauth_table = "radpostauth"
        authcheck_table = "radcheck"
        groupcheck_table = "radgroupcheck"
        authreply_table = "radreply"
        groupreply_table = "radgroupreply"
        usergroup_table = "radusergroup"
        client_table = "nas"
        group_attribute = "SQL-Group"
        delete_stale_sessions = yes
        $INCLUDE {queries}
    }}
"""

# preacct makes the key of a session like the package's policy acct_unique for a request without a Class.
SECTIONS = """\
    preacct {
        update request {
            &Acct-Unique-Session-Id := "%{md5:%{User-Name},%{Acct-Session-ID},\
%{%{NAS-IPv6-Address}:-%{NAS-IP-Address}},%{NAS-Identifier},%{NAS-Port-ID},%{NAS-Port}}"
        }
    }
    accounting {
        sql
    }
"""

RECORDS = (
    "select (select count(*) from radacct) + (select count(*) from radacct where acctinputoctets > 0) "
    "+ (select count(*) from radacct where acctstoptime is not null)"
)


def package_file(name: str) -> Path:
    """Return a file of the package's configuration of rlm_sql_sqlite.

    Raises BenchmarkError if it is missing or cannot be read.
    """
    for directory in DIRECTORIES:
        path = Path(directory, MAIN, name)
        try:
            path.read_bytes()
        except OSError:
            continue
        return path
    raise BenchmarkError(f"{MAIN}/{name} of the package freeradius is missing, or only root may read it")


def count_records(database: Path) -> int:
    """Return the number of records in the sessions. They are starts, stops, and interim updates that came a minute or
    more after the start.
    """
    with closing(sqlite3.connect(database)) as connection:
        return int(connection.execute(RECORDS).fetchone()[0])


@contextmanager
def accounting_freeradius(directory: Path) -> Iterator[Running]:
    """Run FreeRADIUS with accounting into the table radacct."""
    database, port = directory / "accounting.db", free_port()
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("pragma journal_mode = wal")
        connection.executescript(package_file("schema.sql").read_text())
    head = records(database).modules.rstrip().removesuffix("}")
    modules = FUNCTIONS + head + TABLES.format(queries=package_file("queries.conf"))
    extras = Extras(modules, sections=listen(port, "acct") + SECTIONS)
    with run_freeradius(directory, users=1, extras=extras) as (_, process):
        yield Running("FreeRADIUS, radacct", port, process, lambda: count_records(database))
