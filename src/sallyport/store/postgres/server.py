"""Checks of a PostgreSQL server: it must allow enough connections, and each connection must have a session of its own.

This module also finds out which writes may be lost when a standby server takes over (failover).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import psycopg

from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.base.errors import StoreError
from sallyport.store.foreign import CLOCKS_US
from sallyport.store.postgres.connection import POOLER, Connection, as_ours, connect


@dataclass(frozen=True, slots=True)
class Server:
    """Facts about a PostgreSQL server.

    most: the number of connections that ordinary users may open. nodes: the number of live nodes of Sallyport. commit:
    the value of synchronous_commit. standbys: the value of synchronous_standby_names. replicas: the number of connected
    standby servers. ahead_us: the time by which the clock of this host is certainly ahead of the server's clock, in
    microseconds; negative if it is behind.
    """

    most: int
    nodes: int
    commit: str
    standbys: str
    replicas: int
    ahead_us: int = 0


def check(url: str, connections: int) -> None:
    """Check that a process can use the server. connections: the number of connections that the process opens.

    Raises StoreError if the server cannot be reached or used.
    """
    try:
        with connect(url) as connection:
            most = _most(connection)
            if connections > most:
                raise StoreError(
                    f"this process needs {connections} connections, and the database server gives {most} "
                    "(max_connections without the reserved ones): raise max_connections"
                )
            if _is_pooled_by_transaction(connection, url):
                raise StoreError(
                    "the database is behind a pooler in transaction mode, such as PgBouncer, where announcements and "
                    f"locks do not work: {POOLER}"
                )
    except psycopg.Error as error:
        raise as_ours(error) from error


def _most(connection: Connection) -> int:
    reserved = "coalesce(current_setting('reserved_connections', true)::bigint, 0)"
    row = connection.execute(
        "select current_setting('max_connections')::bigint - "
        f"current_setting('superuser_reserved_connections')::bigint - {reserved}"
    ).fetchone()
    return 0 if row is None else int(str(row[0]))


def _is_pooled_by_transaction(connection: Connection, url: str) -> bool:
    """Return whether connections share server sessions, as with a pooler in transaction mode. The test opens a second
    connection while the first is idle."""
    before = _process(connection)
    if before == connection.info.backend_pid:
        return False
    with connect(url) as other, other.transaction():
        return _process(other) == before or _process(connection) != before


def _process(connection: Connection) -> int:
    row = connection.execute(b"select pg_backend_pid()").fetchone()
    return 0 if row is None else int(str(row[0]))


def inspect(url: str, clock: Clock = now_us) -> Server:
    """Return the facts about a server with a store. clock: the clock of this host. Raises StoreError."""
    try:
        with connect(url) as connection:
            most = _most(connection)
            before = clock()
            row = connection.execute(
                "select (select count(*) from nodes where seen_at > now_us() - 5000000), "
                "current_setting('synchronous_commit'), current_setting('synchronous_standby_names'), "
                "(select count(*) from pg_stat_replication), now_us()"
            ).fetchone()
            after = clock()
    except psycopg.Error as error:
        raise as_ours(error) from error
    assert row is not None  # noqa: S101  the query has no condition
    nodes, commit, standbys, replicas, now = row
    ahead_us = max(0, before - int(str(now))) or min(0, after - int(str(now)))
    return Server(most, int(str(nodes)), str(commit), str(standbys), int(str(replicas)), ahead_us)


def doubts(server: Server, connections: int) -> Iterator[str]:
    """Yield warnings about a server, for an admin. connections: the number of connections of a node."""
    if server.nodes * connections > server.most:
        yield (
            f"{server.nodes} nodes use up to {server.nodes * connections} connections, but the server allows "
            f"{server.most}: raise max_connections"
        )
    if abs(server.ahead_us) > CLOCKS_US:
        way = "ahead of" if server.ahead_us > 0 else "behind"
        yield (
            f"the clock of this host is {abs(server.ahead_us) // SECOND} s {way} the clock of the database, but "
            "one-time codes, lock-outs and the end of tokens need the right time: synchronize both clocks (chrony)"
        )
    if server.commit == "off":
        yield "synchronous_commit is off: a crash of the server loses answers of the last second; set it to on"
    elif server.commit == "local" and server.standbys:
        yield "synchronous_commit is local: a failover may lose answers that were sent; set it to on"
    elif server.replicas and not server.standbys:
        yield (
            "the standbys of the server replicate asynchronously (synchronous_standby_names is empty): a failover "
            "may lose the last device registrations, events and used codes; name a synchronous standby"
        )
