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

Writes have three lanes. The journal's lane commits logins. The pulse writes heartbeats and leases. The third lane does
all other writes, and takes an advisory lock in each transaction. So at most one node changes the configuration at a
time. Work that reads before it writes is therefore as safe as with the only writer of SQLite.

A COMMIT whose answer is lost may have succeeded. Each transaction of a lane stores its number in the lane's row of
`lanes`; after a reconnect, the row tells whether the transaction was kept.

If the server hangs, the connections to it are given up after a few seconds (`engine.HUNG_S`). The journal notices this,
because it tests its connection several times a second. The store counts as not ready even earlier, after
`engine.LATE_S`.
"""
