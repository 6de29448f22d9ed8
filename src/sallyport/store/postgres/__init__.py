"""PostgreSQL, the engine for several nodes: version 15 or later, through psycopg 3 in threads.

connection   opening a connection, and the conversion between Python's and PostgreSQL's values
dialer       opening a lost connection again, without a rush of all nodes
transaction  the `Tx` of this engine: named parameters, and inserts of many rows by arrays
engine       the store: a pool of readers, and the lanes of writes
lane         one connection that writes, with its thread: group commit
link         the connection of a lane, and the look-up of a commit without an answer
server       what the server must offer, and what its failover may lose
migration    the history of the schema, and two versions beside each other
dump         backups by pg_dump
schema       the tables of `store.schema` in the SQL of this engine, its functions and its triggers

Writes have three lanes. The journal's lane commits logins. The pulse has heartbeats and leases. The other lane has all
other writes, and takes an advisory lock in each transaction: at most one node changes the configuration at a time, so
that work that reads before it writes is as safe as with SQLite's one writer.

A COMMIT whose answer is lost may have succeeded. Each transaction of a lane stores its number in the lane's row of
`lanes`; after a reconnect, the row tells whether the transaction was kept.

A server that hangs is given up after a few seconds (`engine.HUNG_S`): the journal tries its connection several times a
second, so it notices. Before that, the store is not ready after `engine.LATE_S`.
"""
