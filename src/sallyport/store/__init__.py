"""The store of all data. It has one writer with group commit, many readers, and typed rows.

    await store.read(work)     work(tx) in a worker thread, on a read-only connection
    await store.read_now(work) a short read of a page or a key, on the event loop
    await store.search(work)   a read of many rows, with a time limit; few such reads run at the same time
    await store.write(work)    work(tx) in the writer's thread, in a transaction shared with other callers
    store.submit(work, done)   a write of the journal, with a callback; on the event loop if the queue is empty

A write returns when its transaction is on disk. The wait cannot be cancelled, so a caller always learns whether its
write was committed. The writer takes the items of its queue (at most 500), runs each item in a savepoint, commits once,
and wakes all callers. So thousands of small writes a second cost only a few hundred fsync calls. If an item raises an
error and the transaction can continue, only this item fails. If the engine rolls back the transaction (full disk, I/O
error), all its items fail.

model        Tx and Store as protocols
sqlite       the embedded engine: `connections` opens and reads, `writer` writes
postgres     the engine on a database server; `check_driver` checks that its driver is installed
turns        a fair order of the tenants' reads and writes
transfer     copying all rows of an installation from one engine to the other
copies       backup and restore while the service runs
schema       the tables, and triggers that enforce the limits of a tenant
migrations   upgrade of a database to the schema of this program; refuses a newer one
snapshot     small tables held in memory, and reloaded after each change
audit        the audit trail: each change writes its entry in its own transaction
counters     stored numbers of rows, so that lists need not be counted
search       substring search, and pages of lists
slices       long writes, split into short transactions
erasure      the deletion of the rows of a removed domain
vault        encryption of secrets under the master key; `sealed` reads the sealed columns, `rotation` changes the key
foreign      changes that another node has made
operations   local operations for backup, restore and rotation; `cli` has their commands
data_folder  the data directory, its lock and the reserved disk space
"""
