"""PostgreSQL, the engine for several nodes: version 15 or later, through psycopg 3 in threads.

connection   opening a connection, and the conversion between Python's and PostgreSQL's values
dialer       reconnecting after a connection was lost, not all nodes at once
transaction  the `Tx` of this engine: named parameters, and inserts of many rows by arrays
engine       the store: a pool of readers, and the connections that write
writer       one connection that writes, with a thread of its own: group commit
link         the connection of a writer; finds out the result of a commit if the answer is lost
server       what the server must offer, and what may be lost when a standby takes over
migration    the history of the schema, and how two versions run at the same time
dump         backups by pg_dump
schema       the tables of `store.schema` in the SQL of this engine, its functions and its triggers

There are three writers. The journal commits logins. The pulse writes heartbeats and leases. The third writer
does all other writes, and takes an advisory lock in each transaction. So at most one node changes the configuration at
a time. Work that reads before it writes is therefore as safe as with the only writer of SQLite.

If the answer to a COMMIT is lost, the transaction may have been committed. Each transaction of a writer stores its
number in the writer's row of `lanes`. After a reconnect, the row shows whether the transaction was committed.

If the server hangs, the connections are closed after a few seconds (`engine.HUNG_S`). The journal notices this,
because it tests its connection several times a second. The store counts as not ready even earlier, after
`engine.LATE_S`.
"""

from sallyport.base.extras import check_extra


def check_driver() -> None:
    """Raise ConfigError if psycopg is not installed, because PostgreSQL needs it."""
    check_extra("a PostgreSQL database", "postgres", "psycopg")
