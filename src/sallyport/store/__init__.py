"""The store of all data. It has one writer with group commit, many readers, and typed rows.

    await store.read(work)     work(tx) in a worker thread, on a read-only connection
    await store.read_now(work) work that reads a page or a key, on the event loop
    await store.search(work)   work that reads many rows; few run at a time, with a time limit
    await store.write(work)    work(tx) in the writer's thread, in a transaction shared with other callers
    store.submit(work, done)   the same for the journal, without a task; on the event loop if no other write waits

A write returns when its transaction is on disk. That wait cannot be cancelled, so a caller always learns whether its
write was kept. The writer takes the items of its queue (at most 500), runs each in a savepoint, commits once and wakes
all callers. So thousands of small writes a second cost only a few hundred synchronizations. If an item raises an error
and the transaction can continue, only this item fails. If the engine rolls back the transaction (full disk, I/O error),
all its items fail.

model        Tx and Store as protocols
sqlite       the embedded engine: `connections` opens and reads, `writer` writes
postgres     the engine on a database server; `extra` checks that its driver is installed
turns        the order in which tenants may use either engine
transfer     copying all rows of an installation from one engine to the other
copies       backup and restore while it runs
schema       the tables, and triggers that enforce the limits of a tenant
migrations   upgrade of a database to the schema of this program; refuses a newer one
snapshot     small tables held in memory, exact after each change
audit        the audit trail: each change writes its entry in its own transaction
counters     stored totals of whole lists
search       the search for parts of texts, and pages of lists
slices       long writes in short transactions
erasure      the deletion of the rows of a removed domain
vault        sealing of secrets under the master key; `rotation` seals all under a new one
directory    the data directory, its lock and the reserved disk space
"""
