"""Where everything is kept: one writer with group commit, many readers, typed rows.

    await store.read(work)     work(tx) in a worker thread, on a read-only connection
    await store.write(work)    work(tx) in a worker thread, in a transaction shared with other callers

A write returns once its transaction is on disk, never before; that wait cannot be cancelled, so a caller never
believes that something was undone which was kept. The writer takes what has queued up (at most 500 items), runs
each in a savepoint, commits once and wakes all callers: thousands of small writes a second cost a few hundred
synchronizations. An item that raises fails alone, as long as the transaction stands; where the engine rolled all
of it back (disk full, I/O error), all items fail and nobody is answered.

model      Tx and Store as protocols, which PostgreSQL will meet too
sqlite     the embedded engine
migrate    brings a database to the schema of this program, or refuses one that is newer
snapshot   small tables held in memory, exact after each change
vault      sealing of secrets under the master key
directory  the data directory, its lock and the space kept in reserve
"""
